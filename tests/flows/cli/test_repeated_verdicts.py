"""Repeats of verdicts that are written as numbers: the majority counts, as of any labels."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main

Given = Mapping[str, Sequence[Any]]
REPEATS = {"a": (1, 1, 0), "b": (0, 0, 1), "c": (1, 1, 1), "d": (0, 0, 0), "e": (1, 0)}
PEOPLE = {"a": 1, "b": 0, "c": 1, "d": 1, "e": 1}
GRADES = dict.fromkeys(PEOPLE, (0.3, 0.4))


def run(*words: object, code: int = 0) -> str:
    """Return the output of a command, its lines joined by one blank."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def langsmith(folder: Path, given: Given) -> list[object]:
    rated = [("model", item, value) for item, values in given.items() for value in values]
    rated += [("app", item, type(rated[0][2])(value)) for item, value in PEOPLE.items()]
    rows = [
        {
            "id": f"f{at}",
            "run_id": item,
            "key": "right",
            "score": value,
            "value": None,
            "feedback_source": {"type": who, "user_id": "ada" if who == "app" else None},
        }
        for at, (who, item, value) in enumerate(rated)
    ]
    path = folder / "log.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return [path]


def inspect_ai(folder: Path, given: Given) -> list[object]:
    samples = []
    for item, values in given.items():
        for at, value in enumerate(values):
            score: dict[str, Any] = {"value": value, "history": []}
            if not at:
                edit = {"value": type(value)(PEOPLE[item]), "provenance": {"author": "ada"}}
                score = {"value": edit["value"], "history": [{"value": value}, edit]}
            samples.append({"id": item, "epoch": at + 1, "scores": {"right": score}})
    head = {"version": 2, "status": "success", "eval": {}, "results": {}, "stats": {}}
    path = folder / "log.json"
    path.write_text(json.dumps({**head, "samples": samples}), encoding="utf-8")
    return [path]


def mapped(folder: Path, given: Given) -> list[object]:
    rows = [
        f"{item},{float(value)},{'' if at else PEOPLE[item]}"
        for item, values in given.items()
        for at, value in enumerate(values)
    ]
    path = folder / "log.csv"
    path.write_text("\n".join(["id,said,person", *rows, ""]), encoding="utf-8")
    return [path, "--map=item=id", "--map=value=said", "--map=human_value=person"]


@pytest.mark.parametrize("write", [langsmith, inspect_ai, mapped])
@pytest.mark.parametrize("kind", [int, float, bool])
def test_numbers_that_are_verdicts_take_the_majority(
    tmp_path: Path, write: Callable[[Path, Given], list[object]], kind: type
) -> None:
    log = write(tmp_path, {item: [*map(kind, values)] for item, values in REPEATS.items()})
    for command in (("measure",), ("calibrate", "--no-save")):
        said = run(command[0], *log, *command[1:])
        # a, b and c agree, d does not, and of e neither verdict has a majority.
        assert "4 items compared; left out: 1 on which the repeats of the judge tie" in said
        assert "agreement .75" in said
        assert "unreadable" not in said.split("4 items compared")[1]


@pytest.mark.parametrize("write", [langsmith, mapped])
def test_unreadable_grades_are_those_of_the_log(
    tmp_path: Path, write: Callable[[Path, Given], list[object]]
) -> None:
    log = write(tmp_path, GRADES)
    said = run("calibrate", *log, "--no-save", code=2)
    assert "a (mean of 0.3, 0.4), b (mean of 0.3, 0.4)" in said
    assert "0.35" not in said
    # One of the options that the message names.
    assert "`--threshold GRADE` counts grades from GRADE on as passes" in said
    read = run("calibrate", *log, "--no-save", "--threshold", "0.5")
    assert "5 items compared" in read
    assert "agreement .20" in read  # only b fails
    assert "5 items compared" in run("calibrate", *log, "--no-save", "--scale", "0", "1")


def test_a_judge_whose_repeats_always_tie_gave_no_invalid_label(tmp_path: Path) -> None:
    log = mapped(tmp_path, {item: [0, 1] for item in PEOPLE})
    said = run("calibrate", *log, "--no-save", code=2)
    assert f"on {len(PEOPLE)} items the repeats of the judge tie, and no other has" in said
    assert "readable" not in said
