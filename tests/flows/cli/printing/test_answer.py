"""The last lines of an audit: they can be copied whatever the width of the terminal."""

import subprocess
from io import StringIO
from pathlib import Path

import pytest

from flows.cli.printing.answer import show_places
from flows.cli.printing.live import Printer

COMMAND = "voirdire show 'my first study' --judge offline/dazzled"
SENTENCE = "correct what the errors say, then run the same command again"


def printed(width: int, following: str, *, terminal: bool = True) -> list[str]:
    console = Printer(file=StringIO(), width=width, force_terminal=terminal)
    show_places(console, Path("/none/quick.html"), Path("/of/a/team/long.duckdb"), following)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()[1:]


def test_a_command_is_continued_as_a_shell_expects() -> None:
    lines = printed(40, COMMAND)
    assert lines == [
        "report:    not written",
        "warehouse: /of/a/team/long.duckdb",
        "next:      voirdire show \\",
        "           'my first study' --judge \\",
        "           offline/dazzled",
    ]
    script = "\n".join(lines[2:]).replace("next:      voirdire", "printf '%s|'")
    read = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert read.stdout == "show|my first study|--judge|offline/dazzled|"


@pytest.mark.parametrize("following", [COMMAND, SENTENCE])
def test_elsewhere_it_is_one_line(following: str) -> None:
    assert printed(40, following, terminal=False)[2:] == [f"next:      {following}"]


def test_a_sentence_is_broken_at_spaces() -> None:
    assert printed(40, SENTENCE)[2:] == [
        "next:      correct what the errors say,",
        "           then run the same command",
        "           again",
    ]
