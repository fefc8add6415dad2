"""What commands say of logs of other tools: numbers within their range, and what they rest on."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main


def run(*words: object, code: int = 0) -> str:
    """Return the output of a command, its lines joined by one blank."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("judge", ["pass pass pass", "pass fail pass"])
def test_kappa_is_at_least_minus_one(tmp_path: Path, judge: str) -> None:
    path = tmp_path / "labels.csv"
    rows = [f"{a},{b}" for a, b in zip(judge.split(), ["pass", "fail", "pass"], strict=True)]
    path.write_text("\n".join(["judge,human", *rows, ""]), encoding="utf-8")
    done = CliRunner().invoke(main, ["calibrate", str(path), "--no-save", "--format", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)[0]["with_people"]["measures"]
    [kappa] = [row for row in found if row["statistic"] == "kappa"]
    # One verdict only: with h at most .94 (Wilson, one of three, two independent ones) and q .66
    # the formula gives less than -1. All agree: the lower end is that of the agreement, above -1.
    if judge == "pass pass pass":
        assert kappa["low"] == -1
    assert -1 <= kappa["low"] <= kappa["estimate"] <= kappa["high"] <= 1


def test_agreement_with_a_column_of_labels_names_the_labels(tmp_path: Path) -> None:
    rows = [
        {"id": at, "subset": "chat", "scores_chosen": 0.5, "scores_rejected": at % 2}
        for at in range(16)
    ]
    said = run("measure", lines(tmp_path / "rb.jsonl", rows))
    # The right answer wins half of the pairs: no better than by chance.
    assert "no ratings of people: agreement with people cannot be computed" in said
    assert "Agreement with the labels is inconclusive" in said
    assert "Agreement with people is" not in said


def test_doctor_and_measure_give_the_same_mean_of_repeated_items(tmp_path: Path) -> None:
    # Item a has 1, 1, 1 and 5, item b 4: the mean of items is (2 + 4) / 2, that of ratings 12 / 5.
    path = tmp_path / "grades.csv"
    path.write_text("id,grade\na,1\na,1\na,1\na,5\nb,4\n", encoding="utf-8")
    for command in ("doctor", "measure"):
        said = run(command, path, "--map=item=id", "--map=value=grade")
        assert "grade 5 0 3.00" in said
        assert "In the mean, the ratings of an item that is repeated count as one." in said


GAME = {"question_id": 1, "model_1": "a", "model_2": "b", "judge": ["gpt", "pair"], "turn": 1}


def test_rows_are_those_of_the_file(tmp_path: Path) -> None:
    games = [
        GAME | {"question_id": at, "g1_winner": "model_1", "g2_winner": "tie"} for at in range(3)
    ]
    pairs = lines(tmp_path / "pairs.jsonl", games)
    assert "FastChat pairwise judgments, 3 rows, 6 votes, judge gpt" in run("doctor", pairs)
    path = tmp_path / "both.csv"
    path.write_text("id,said,person\na,pass,pass\nb,fail,\n", encoding="utf-8")
    maps = ("--map=item=id", "--map=label=said", "--map=human_label=person")
    assert "mapped table, 2 rows, 3 ratings, judge said" in run("doctor", path, *maps)
