"""Commands that a message names can be typed as they stand, also beside ``--warehouse``."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import polars as pl
import pytest
from click.testing import CliRunner

from flows.cli.main import main
from schemas.judging import VoteLog
from tasks.kit.command_line import Command, Commands, say, warehouse_option
from warehouse.store import Saving, Warehouse

Make = Callable[..., pl.DataFrame]
NAMED = re.compile("`voirdire ([^`]+)`")


@pytest.fixture
def place(tmp_path: Path, make_vote_log: Make) -> str:
    """Save votes of study `mine` in a warehouse whose name has a space."""
    path = tmp_path / "my team.duckdb"
    Warehouse(path).save([Saving(VoteLog, make_vote_log([{}]))], run="r1", study="mine")
    return str(path)


def hints_of(*words: str) -> list[list[str]]:
    """Return the commands that a command names in what it prints."""
    printed = CliRunner().invoke(main, words).output.replace("\n", " ")
    return [shlex.split(each) for each in NAMED.findall(printed)]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["show", "mine", "--disagree"], ["calibrate", "mine"]),
        (["calibrate", "mine"], ["booth", "mine"]),
    ],
)
def test_hints_name_the_given_warehouse(words: list[str], named: list[str], place: str) -> None:
    assert [*named, "--warehouse", place] in hints_of(*words, "--warehouse", place)


def test_hints_of_the_default_warehouse_are_short(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", place)
    assert ["calibrate", "mine"] in hints_of("show", "mine", "--disagree")


def test_a_hinted_command_finds_the_study(place: str) -> None:
    [calibrate] = hints_of("show", "mine", "--disagree", "--warehouse", place)
    said = CliRunner().invoke(main, calibrate).output
    assert "study 'mine' has votes of models only" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Run `voirdire other A` first", "Run `voirdire other A --warehouse w.duckdb` first"),
        ("`voirdire other` and `voirdire other B`.", None),
        ("`voirdire other --warehouse mine.duckdb`", "`voirdire other --warehouse mine.duckdb`"),
        ("`voirdire plain A`", "`voirdire plain A`"),
        ("`voirdire nothing A`", "`voirdire nothing A`"),
        ("voirdire other A", "voirdire other A"),
    ],
)
def test_only_commands_with_a_warehouse_take_it(text: str, said: str | None) -> None:
    group = Commands("voirdire")
    group.add_command(Command("plain", callback=lambda: None))

    @click.command("run", cls=Command)
    @warehouse_option
    def run(warehouse: Path | None) -> None:
        """Say the text."""
        del warehouse
        say(text)

    @click.command("other", cls=Command)
    @warehouse_option
    def other(warehouse: Path | None) -> None:
        """Do nothing."""
        del warehouse

    group.add_command(run)
    group.add_command(other)
    both = "`voirdire other --warehouse w.duckdb` and `voirdire other B --warehouse w.duckdb`."
    printed = CliRunner().invoke(group, ["run", "--warehouse", "w.duckdb"]).output
    assert printed == (said or both) + "\n"
    assert CliRunner().invoke(group, ["run"]).output == text + "\n"
