"""Labels of judges that are no verdicts: invalid in `doctor`, `measure` and `calibrate` alike."""

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main

JUDGE = ["good", "bad", "good", "ERROR: timeout", "N/A", "", " ", "bad", "good", "good"]
PERSON = ["good", "bad", "bad", "good", "bad", "good", "bad", "bad", "good", "good"]
MAP = [f"--map={each}" for each in ("item=id", "label=verdict", "human_label=person")]


def run(*words: object) -> str:
    """Return the output of a command that succeeds, its lines joined by one blank."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def langfuse(folder: Path, *, value: float | None = None) -> list[object]:
    rows = [
        {
            "id": f"{who}{at}",
            "name": "helpful",
            "value": value,
            "stringValue": label,
            "dataType": "CATEGORICAL",
            "source": "ANNOTATION" if who == "ada" else "EVAL",
            "traceId": f"t{at}",
            "authorUserId": "ada" if who == "ada" else None,
        }
        for who, labels in (("gpt", JUDGE), ("ada", PERSON))
        for at, label in enumerate(labels)
    ]
    (folder / "log.json").write_text(json.dumps(rows), encoding="utf-8")
    return [folder / "log.json"]


def langfuse_without_numbers(folder: Path) -> list[object]:
    """Langfuse writes the value 0 for a category that its configuration does not number."""
    return langfuse(folder, value=0)


def langsmith(
    folder: Path,
    judge: list[Any] = JUDGE,
    person: list[Any] = PERSON,
    *,
    field: str = "value",
    other: Sequence[Any] = (),
) -> list[object]:
    rows = [
        {
            "id": f"{who}{at}",
            "run_id": f"r{at}",
            "key": "helpful",
            "score": None,
            "value": None,
            field if not isinstance(label, str) else "value": label,
            "feedback_source": {
                "type": "model" if who == "gpt" else "app",
                "user_id": who,
                "metadata": {},
            },
        }
        for who, labels in (("gpt", judge), ("ada", person), ("bob", other))
        for at, label in enumerate(labels)
    ]
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return [path]


def mapped(folder: Path) -> list[object]:
    with (folder / "log.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "verdict", "person"])
        table.writerows(zip(range(10), JUDGE, PERSON, strict=True))
    return [folder / "log.csv", *MAP]


@pytest.mark.parametrize("write", [langfuse, langfuse_without_numbers, langsmith, mapped])
def test_what_agreement_cannot_read_is_invalid(
    tmp_path: Path, write: Callable[[Path], list[object]]
) -> None:
    log = write(tmp_path)
    examples = 'not a label (2), such as "ERROR: timeout" and "N/A"'
    described, measured = run("doctor", *log), run("measure", *log)
    for said in (described, measured):
        assert examples in said
        # 10 ratings, 4 of them invalid; 4 of 6 pass, and 5 of 10 of the person.
        assert "10 4 .67" in said
        assert "10 0 .50" in said
        assert "good 4, bad 2" in said
    assert ".60 [.30, .84]" in measured  # valid, of 10
    for said in (measured, run("calibrate", *log, "--no-save")):
        assert "6 items compared; left out: 4 with an invalid label of the judge" in said
        assert '("ERROR: timeout")' in said
        assert ".83 [.40, .97]" in said  # 5 of 6 agree


def test_without_people_the_judge_says_which_labels_are_verdicts(tmp_path: Path) -> None:
    log = langsmith(tmp_path, ["pass", "fail", "pass", "N/A", "error: 429"], [])
    for command in ("doctor", "measure"):
        assert "5 2 .67" in run(command, *log)
    names = langsmith(tmp_path, ["warm", "cold", "none of them", "N/A", "Timeout"], [])
    assert "5 2 - cold 1, none of them 1, warm 1" in run("doctor", *names)


def test_a_text_among_grades_is_invalid(tmp_path: Path) -> None:
    log = langsmith(tmp_path, [7, 8, "no grade", 9], [7, 9, 9, 8], field="score")
    for command in ("doctor", "measure"):
        said = run(command, *log)
        assert 'not a label (1), such as "no grade"' in said
        assert "4 1 8.00" in said  # (7 + 8 + 9) / 3
    said = run("measure", *log)
    assert "3 items compared; left out: 1 with an invalid label of the judge" in said


def test_a_name_that_people_give_is_no_failure(tmp_path: Path) -> None:
    people = ["warm", "cold", "N/A", "warm"]
    log = langsmith(tmp_path, ["warm", "warm", "N/A", "ERROR"], people)
    assert "4 1 - warm 2, N/A 1" in run("doctor", *log)
    said = run("measure", *log)
    assert "3 items compared; left out: 1 with an invalid label of the judge" in said
    assert "agreement .67" in said  # 2 of 3


def test_a_threshold_still_reads_words(tmp_path: Path) -> None:
    log = langsmith(tmp_path, ["pass", "fail", "pass", "pass"], [9, 2, 8, 3], field="score")
    said = run("calibrate", *log, "--threshold", "5", "--no-save")
    assert "4 items compared" in said
    assert "agreement .75" in said


def test_repeats_that_tie_are_no_missing_labels(tmp_path: Path) -> None:
    given = {"a": ("C", "C"), "b": ("C", "I"), "c": ("I", "C"), "d": ("I", "I"), "e": (None, None)}
    samples = [
        {
            "id": item,
            "epoch": at + 1,
            "scores": {
                "m": {
                    "value": value,
                    "history": [
                        {"value": value},
                        *([] if at else [{"value": "C", "provenance": {"author": "ada"}}]),
                    ],
                }
            },
        }
        for item, values in given.items()
        for at, value in enumerate(values)
    ]
    path = tmp_path / "log.json"
    head = {"version": 2, "status": "success", "eval": {}, "results": {}, "stats": {}}
    path.write_text(json.dumps({**head, "samples": samples}), encoding="utf-8")
    said = run("calibrate", path, "--no-save")
    assert (
        "2 items compared; left out: 1 with an invalid label of the judge and 2 on which the "
        "repeats of the judge tie (an odd number of repeats ties less often) invalid labels of the "
        "judge: e (no score)."
    ) in said


def test_a_failure_is_no_label_in_the_alternative_annotator_test(tmp_path: Path) -> None:
    said = ["good", "bad"] * 20
    people = [*said, *["good"] * 5]
    log = langsmith(tmp_path, [*said, *["ERROR: timeout"] * 5], people, other=people)
    done = CliRunner().invoke(main, ["calibrate", str(log[0]), "--no-save", "--format", "json"])
    (judge,) = json.loads(done.stdout)
    assert (judge["instances"], judge["unreadable"]) == (40, 5)


def test_a_word_beside_grades_of_a_declared_scale_is_invalid_in_every_table(tmp_path: Path) -> None:
    """It was no grade in the table of ratings, but a fail in the comparison below it."""
    grades = [1 + at % 5 for at in range(40)]
    lines = [
        f"{at},{'maybe' if at < 4 else grade},{'maybe' if at < 8 else grade}"
        for at, grade in enumerate(grades)
    ]
    (tmp_path / "odd.csv").write_text("\n".join(["id,verdict,person", *lines]), encoding="utf-8")
    said = run("measure", tmp_path / "odd.csv", *MAP, "--pass", 5, "--scale", 1, 5)
    # 8 of 36 grades of the judge are 5, and 7 of 32 of people.
    assert re.search(r"verdict 40 4 \.22 \[.{9} fail 28, pass 8 people \(person\) 40 8 \.22 ", said)
    assert "also where a judge gives them: 4 7, 1 6, 2 6, 3 6. Empty" in said
    assert "32 items compared; left out: 4 with an invalid label of the judge and 4 without" in said
