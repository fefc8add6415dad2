"""Commands that are given the name of a calibration where they need a study."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from printed_commands import in_short

from flows.cli.main import main

Run = Callable[..., Result]
PASSES = ("pass", "fail", "pass")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return what runs a command on a warehouse with the calibrations ``one`` and ``two``."""
    warehouse = ("--warehouse", str(tmp_path / "w.duckdb"))
    for name, people in (("one", ["anna"]), ("two", ["anna", "bert"])):
        rows = [
            [
                f"t{at}",
                PASSES[at % 3],
                *(PASSES[(at + shift) % 2] for shift, _ in enumerate(people)),
            ]
            for at in range(40)
        ]
        lines = [",".join(row) for row in [["id", "judge", *people], *rows]]
        table = tmp_path / f"{name}.csv"
        table.write_text("\n".join(lines), encoding="utf-8")
        given = [word for person in people for word in ("--human", person)]
        done = CliRunner().invoke(main, ["calibrate", str(table), *given, *warehouse])
        assert done.exit_code == 0, done.output
    return lambda *words: CliRunner().invoke(main, [*words, *warehouse])


@pytest.mark.parametrize("name", ["one", "two"])
@pytest.mark.parametrize("words", [("gate",), ("plan",), ("plan", "--name"), ("audit",)])
def test_a_calibration_is_no_study(run: Run, words: tuple[str, ...], name: str) -> None:
    done = run(*words, name)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert f"{name!r} is a calibration" in done.stderr
    assert f"`voirdire report {name}`" in in_short(done.stderr)
    assert "pydantic" not in done.stderr


def test_errors_name_calibrations_only_where_the_command_takes_them(run: Run) -> None:
    for command in ("gate", "calibrate"):
        assert "Known: none." in run(command, "thre").stderr
    assert "Known: one, two." in run("report", "thre").stderr


def test_show_names_the_view_that_a_calibration_has(run: Run) -> None:
    for view in ((), ("--invalid",), ("--all",)):
        done = run("show", "one", *view, "--judge", "judge")
        assert done.exit_code == 0
        reported = " ".join(done.output.split())
        assert "No perturbation" not in reported
        assert "'one' is a calibration" in reported
        assert "--judge judge --disagree" in reported
    assert "people: " in run("show", "one", "--disagree").output


def test_show_knows_a_calibration_in_which_nobody_differs(run: Run, tmp_path: Path) -> None:
    rows = [f"t{at},{PASSES[at % 3]},{PASSES[at % 3]}" for at in range(20)]
    (tmp_path / "same.csv").write_text("\n".join(["id,judge,human", *rows]), encoding="utf-8")
    assert run("calibrate", str(tmp_path / "same.csv")).exit_code == 0
    shown = run("show", "same")
    assert (shown.exit_code, "'same' is a calibration" in shown.output) == (0, True)
    said = "No label of study same that differs from people's is saved"
    assert said in run("show", "same", "--disagree").output


def test_a_question_about_audits_names_the_one_that_a_calibration_answers(run: Run) -> None:
    done = run("sql", "--ask", "which_judge", "--set", "study=one")
    named = re.search(r"`voirdire (sql --ask who_\w+ --set study=one)\b", done.stderr)
    assert done.exit_code == 0
    assert named, done.stderr
    assert "agreement" in run(*named[1].split()).stdout


@pytest.mark.parametrize(("column", "option"), [("judge", "--human"), ("human", "--judge")])
def test_doctor_says_that_a_table_may_hold_labels(tmp_path: Path, column: str, option: str) -> None:
    table = tmp_path / "w1.csv"
    table.write_text(f"id,{column},anna,bert\nt1,pass,pass,fail\n", encoding="utf-8")
    done = CliRunner().invoke(main, ["doctor", str(table)])
    assert done.exit_code == 2
    assert f"`voirdire calibrate w1.csv {option} COLUMN`" in done.stderr
