"""What a terminal receives: no control characters, whoever chose the names in the data."""

import json
import os
import pty
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from flows.cli.main import main
from schemas.judging import VoteLog
from warehouse.store import Saving, Warehouse

EVIL = "ada\x1b]0;title\x07\x9b31m\x1b[2J"
SHOWN = "ada\N{REPLACEMENT CHARACTER}]0;title"


@pytest.fixture
def folder(tmp_path: Path, make_vote_log: Any) -> Path:
    """Votes, labels and a judge whose names or words could command a terminal."""
    rows = [
        {"judge": EVIL, "sample": f"s{n:02}", "shown_first": side}
        for n in range(12)
        for side in ("anchor", "target")
    ]
    log = make_vote_log(rows)
    columns = ["judge", "sample", "cluster", "shown_first", "repeat", "choice"]
    log.select(columns).write_parquet(tmp_path / "votes.parquet")
    labels = {f"item-{n}": "ab"[n % 3 == 0] for n in range(30)}
    for name, annotators in (("people", ("Ann", "Bob", "Cid")), ("judges", (EVIL,))):
        (tmp_path / f"{name}.json").write_text(json.dumps(dict.fromkeys(annotators, labels)))
    Warehouse(tmp_path / "w.duckdb").save([Saving(VoteLog, log)], run="r", study="mine")
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "desk.toml").write_text(
        '[provider]\napi_base = "http://127.0.0.1:9/v1"\n[judges.one]\nmodel = "hosted_vllm/one"\n'
        f"about = {json.dumps(EVIL)}\n"
    )
    return tmp_path


@pytest.fixture
def on_a_terminal(here: Callable[..., Any], folder: Path) -> Callable[..., str]:
    """Return what runs a command whose output is a terminal, and returns what that was sent."""
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
    places = {
        "VOIRDIRE_WAREHOUSE": str(folder / "w.duckdb"),
        "VOIRDIRE_PROVIDERS": str(folder / "providers"),
    }

    def run(*words: str, **more: str) -> str:
        own, its = pty.openpty()
        sent: list[bytes] = []
        reader = Thread(target=lambda: sent.extend(_read(own)))
        reader.start()
        with (
            here(folder, {**os.environ, **plain, **places, **more}),
            os.fdopen(its, "w", encoding="utf-8") as screen,
            redirect_stdout(screen),
            redirect_stderr(screen),
        ):
            assert screen.isatty()
            with pytest.raises(SystemExit) as ended:
                main(words, prog_name="voirdire")
        reader.join()
        os.close(own)
        text = b"".join(sent).decode()
        assert not ended.value.code, text
        return text

    return run


def _read(terminal: int) -> Iterator[bytes]:
    """Yield what is written to a terminal until the last who wrote to it has ended."""
    with suppress(OSError):
        while True:
            yield os.read(terminal, 65536)


WHICH = "voirdire: This runs study quick, as no study is named, and saves it as"
LINE = re.compile(r"audit tiny: (started|ended after .+|[a-z].+, \d+ of \d+ ballots .+)")
"""The last tenth of the ballots may be reported when votes are counted or measured already."""
TINY = ("audit", "--judge", "offline/fair", "--limit", "5", "--name", "tiny")


def screen_of(sent: str) -> list[str]:
    """Return the lines that a terminal shows: only what moves the cursor or erases is obeyed."""
    rows, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", sent):
        if part == "\n":
            row += 1
            rows += [""] * (row == len(rows))
        elif part == "\r":
            column = 0
        elif part[0] != "\x1b":
            kept = rows[row].ljust(column)
            rows[row] = kept[:column] + part + kept[column + len(part) :]
            column += len(part)
        elif part[-1] == "A":
            row -= int(part[2:-1] or 1)
        elif part[-1] == "K":
            rows[row] = ""
    return [line.rstrip() for line in rows]


@pytest.mark.slow
@pytest.mark.served
def test_an_audit_is_followed_on_a_terminal_and_leaves_results_alone(
    on_a_terminal: Callable[..., str], server: str
) -> None:
    sent = on_a_terminal(*TINY, TERM="xterm", COLUMNS="60", PREFECT_API_URL=server)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent)
    assert "audit tiny: starting" in plain
    assert re.search(r"of \d+ ballots \(\d+ %\)", plain)
    assert "audit tiny: saving" in plain
    assert "audit tiny: writing the report" in plain
    shown = screen_of(sent)
    first, *rest = [line for line in shown if line]
    assert first == WHICH.removesuffix(" saves it as")
    assert "Which judge to use" in rest[:2]
    assert not [line for line in shown if "audit tiny" in line or "ballots (" in line]
    report = shown.index("report:    w-reports/tiny.html")
    warehouse, *following, end = shown[report + 1 :]
    assert warehouse == "warehouse: w.duckdb"
    # A shell reads both lines as one command.
    assert max(map(len, following)) <= 60
    command = r"next: +voirdire show tiny( --judge \S+ --perturbation \w+)?"
    assert re.fullmatch(command, " ".join("\n".join(following).replace("\\\n", "").split()))
    assert not end


def test_messages_are_broken_at_spaces_on_a_terminal_only(
    on_a_terminal: Callable[..., str], folder: Path, voirdire_in: Callable[..., Any]
) -> None:
    words = ("show", "mine", "--disagree")
    whole = (
        "No label of study mine that differs from people's is saved. `voirdire calibrate mine` "
        "compares labels, where people voted or gave labels."
    )
    assert on_a_terminal(*words, COLUMNS="50").split("\r\n") == [
        "No label of study mine that differs from people's",
        "is saved. `voirdire calibrate mine` compares",
        "labels, where people voted or gave labels.",
        "",
    ]
    places = {**os.environ, "VOIRDIRE_WAREHOUSE": str(folder / "w.duckdb"), "COLUMNS": "50"}
    assert voirdire_in(folder, places)(*words).stdout == f"{whole}\n"


def test_a_measurement_says_its_steps(on_a_terminal: Callable[..., str]) -> None:
    sent = on_a_terminal("measure", "votes.parquet", TERM="xterm")
    assert re.search(r"measure votes.parquet: measuring: \w+ \(\d+ of \d+ statistics\)", sent)
    assert not [line for line in screen_of(sent) if "statistics)" in line]


@pytest.mark.slow
@pytest.mark.served
def test_without_a_terminal_an_audit_writes_lines(voirdire: Callable[..., Any]) -> None:
    done = voirdire(*TINY)
    said = done.stderr.splitlines()
    assert said[0] == f"{WHICH} tiny."
    assert said[1] == "audit tiny: started"
    assert said[-1].startswith("audit tiny: ended after")
    assert all(LINE.fullmatch(line) for line in said[1:])
    assert 3 <= len(said) <= 13
    assert "\x1b" not in done.stdout + done.stderr
    *_, report, warehouse, following = done.stdout.splitlines()
    assert report.startswith("report:")
    assert warehouse.startswith("warehouse:")
    assert following.startswith("next:      voirdire show tiny")
    again = voirdire(*TINY).stderr.splitlines()[0]
    assert again == f"{said[0]} `voirdire audit tiny` runs the settings of study tiny."


CALIBRATE = ("calibrate", "--humans", "people.json", "--judges", "judges.json", "--no-save")


@pytest.mark.parametrize(
    "words",
    [
        *[
            ("sql", "select distinct judge from vote_log", "--format", form)
            for form in ("csv", "table", "json")
        ],
        *[
            ("measure", "votes.parquet", "--only", "validity", "--format", form)
            for form in ("csv", "table", "json")
        ],
        *[(*CALIBRATE, "--format", form) for form in ("csv", "table", "json")],
        ("list", "judges"),
        ("list", "desk/one"),
    ],
    ids=" ".join,
)
def test_no_command_commands_a_terminal(
    on_a_terminal: Callable[..., str], words: tuple[str, ...]
) -> None:
    sent = on_a_terminal(*words)
    control = {c for c in sent if not c.isprintable()} - set("\r\n\N{NO-BREAK SPACE}")
    assert control == set()
    # JSON writes them as escapes.
    assert SHOWN in sent or "ada\\u001b]0;title" in sent


@pytest.mark.parametrize("words", [("measure", "votes.parquet", "--only", "validity"), CALIBRATE])
def test_a_file_gets_the_data_as_they_are(
    folder: Path, voirdire_in: Callable[..., Any], words: tuple[str, ...]
) -> None:
    done = voirdire_in(folder, dict(os.environ))(*words, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert EVIL in done.stdout
