import re
from io import StringIO

import pytest
from rich.console import Console

from flows.cli.printing.live import LiveView, shown
from tasks.progress import Status, current_status

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Seen:
    """A live view at a time that the test sets, and what it draws."""

    def __init__(self, width: int, height: int = 30) -> None:
        self.now = 0.0
        self.status = Status("audit mine", lambda: self.now)
        self.file = StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, color_system=None
        )
        self.view = LiveView(self.status, self.console)

    def lines(self) -> list[str]:
        """Return the lines of the next frame."""
        drawn = self.view.frame()
        return ["".join(part.text for part in line).rstrip() for line in drawn.lines]


def test_it_says_step_ballots_rate_time_cost_and_waits() -> None:
    seen = Seen(100)
    seen.status.plan({"emu/one": 40, "emu/two": 40}, cap_usd=2.0)
    seen.now = 10.0
    seen.status.advance("emu/one", 20, 0.5)
    seen.status.waits = lambda: {"emu": "circuit breaker open, tried again in 30 s"}
    first, facts, one, two, wait = seen.lines()
    assert first.endswith("0:10  audit mine: asking judges")
    assert facts == "  20 of 80 ballots (25 %), 2/s, 0:30 left, cost 0.50 of 2.00 USD"
    assert re.fullmatch(r"  emu/one ━{20} +20/40", one)
    assert re.fullmatch(r"  emu/two +0/40", two)
    assert wait == "  emu: circuit breaker open, tried again in 30 s"


def test_every_second_changes_it_while_nothing_happens() -> None:
    seen = Seen(80)
    seen.status.step = "measuring: contrast (12 of 66 statistics)"
    frames = []
    for second in range(200):
        seen.now = float(second)
        frames.append(seen.lines())
    # Not only the spinner, which a screen reader or a slow line may not show.
    assert len({tuple(line[2:] for line in frame) for frame in frames}) == 200
    assert "measuring: contrast (12 of 66 statistics)" in frames[-1][0]


@pytest.mark.parametrize("width", [20, 40, 60, 300])
def test_no_line_is_wider_than_the_terminal_or_than_can_be_read(width: int) -> None:
    seen = Seen(width)
    seen.status.plan({f"provider/a-judge-with-a-rather-long-name-{n}": 10**6 for n in range(3)})
    seen.now = 5.0
    for judge in seen.status.planned:
        seen.status.advance(judge, 1000, 0.25)
    lines = seen.lines()
    assert max(map(len, lines)) <= min(width, 100)
    assert len(lines) >= 5


def test_more_judges_than_rows_leave_room() -> None:
    seen = Seen(80, height=12)
    seen.status.plan({f"j{n:02}": 10 for n in range(20)})
    seen.status.advance("j00", 10)
    lines = seen.lines()
    assert len(lines) < 12
    assert lines[-1] == "  and 14 more judges"
    # What is done is of less interest.
    assert not any("j00" in line for line in lines)


def test_hostile_names_and_errors_are_text() -> None:
    seen = Seen(100)
    evil = "ada\x1b]0;title\x07\x1b[2J"
    seen.status.plan({evil: 3})
    seen.status.step = f"measuring: {evil}\nsecond line"
    assert all(line.isprintable() for line in seen.lines())
    seen.view.tell(f"emu: 500 {evil}")
    said = CONTROL.sub("", seen.file.getvalue())
    assert said == "voirdire: emu: 500 ada?]0;title??[2J\n".replace(
        "?", "\N{REPLACEMENT CHARACTER}"
    )


def test_without_a_terminal_notices_and_progress_say_whose_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown("audit mine", lines=True):
        status = current_status()
        status.tell("emu: 500 \x1b[2J")
        status.step = "asking judges"
    told, started, ended = capsys.readouterr().err.splitlines()
    assert told == "voirdire: emu: 500 \N{REPLACEMENT CHARACTER}[2J"
    assert started == "audit mine: started"
    assert ended.startswith("audit mine: ended after")


def test_a_narrower_terminal_loses_what_it_has_wrapped() -> None:
    seen = Seen(100)
    seen.status.step = "a step that is described in some seventy columns, or a few more of them"
    seen.lines()
    assert not seen.file.getvalue()
    seen.console.width = 50
    seen.lines()
    # One line of 86 columns takes one row more.
    assert seen.file.getvalue() == "\x1b[2K\x1b[1A"
    seen.lines()
    assert seen.file.getvalue() == "\x1b[2K\x1b[1A"


def test_the_cursor_is_back_and_the_terminal_clean_when_it_is_closed() -> None:
    seen = Seen(60)
    with seen.view:
        pass
    sent = seen.file.getvalue()
    assert "audit mine: starting" in sent
    assert sent.rindex("\x1b[?25h") > sent.rindex("\x1b[?25l")
    # The last that is done is to erase the row of the view.
    assert not CONTROL.sub("", sent[sent.rindex("\x1b[2K") :]).strip()
