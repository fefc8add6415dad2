"""Single grades as FastChat writes them."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner

from flows.cli.main import main


def test_minus_one_is_no_grade(read: Any, rated: Any) -> None:
    row = {
        "question_id": 81,
        "model": "alpaca",
        "judge": ["gpt-4", "single-v1"],
        "user_prompt": "...",
        "judgment": "Rating: [[7]]",
        "score": 7,
        "turn": 1,
        "tstamp": 1.5,
    }
    log = read(
        [row, {**row, "question_id": 82, "score": -1}, {**row, "question_id": 83, "score": 7.5}]
    )
    assert rated(log, "item", "kind", "label", "value", "invalid") == [
        ("81/alpaca", "number", "7", 7.0, None),
        ("82/alpaca", "number", None, None, "no grade in the reply"),
        ("83/alpaca", "number", "7.5", 7.5, None),
    ]


def test_a_first_row_without_a_judge_is_left_out(tmp_path: Path, read: Any) -> None:
    row = {"model": "alpaca", "user_prompt": "?", "judgment": "[[7]]", "score": 7, "turn": 1}
    rows = [{**row, "question_id": at, "judge": ["gpt-4", "single-v1"]} for at in range(3)]
    del rows[0]["judge"]
    assert read(rows).ratings["judge"].to_list() == ["gpt-4", "gpt-4"]
    done = CliRunner().invoke(main, ["doctor", str(tmp_path / "log.jsonl")])
    said = "left out: ratings without the name of a judge or person (1)"
    assert said in " ".join(done.output.split())


def test_a_grade_outside_the_scale_of_mt_bench_is_invalid(tmp_path: Path, read: Any) -> None:
    row = {"model": "alpaca", "judge": ["gpt-4", "single-v1"], "judgment": "?", "turn": 1}
    scores = [42, 1, 10, 0.5, -1]
    rows = [{**row, "question_id": at, "score": score} for at, score in enumerate(scores)]
    read(rows)
    for command in ("doctor", "measure"):
        done = CliRunner().invoke(main, [command, str(tmp_path / "log.jsonl")])
        said = " ".join(done.output.split())
        assert "grade outside 1 to 10 (2)" in said
        # Five ratings, three of them invalid; the mean of 1 and 10.
        assert "gpt-4 5 3 5.50" in said
    # Under a prompt of one's own the scale is not known.
    own = read([{**each, "judge": ["gpt-4", "strict"]} for each in rows])
    assert own.ratings["value"].to_list() == [42, 1, 10, 0.5, None]


def test_copies_of_rows_are_counted_and_repeats_kept(tmp_path: Path, read: Any) -> None:
    row = {
        "question_id": 81,
        "model": "alpaca",
        "judge": ["gpt-4", "single-v1"],
        "judgment": "Rating: [[7]]",
        "score": 7,
        "turn": 1,
        "tstamp": 1.5,
    }
    again, other = {**row, "tstamp": 2.5}, {**row, "question_id": 82}
    assert read([row, again, row, other, row, other]).ratings["repeat"].to_list() == [0, 1, 0]
    done = CliRunner().invoke(main, ["doctor", str(tmp_path / "log.jsonl")])
    reported = " ".join(done.output.split())
    assert "FastChat single grades, 6 rows, 3 ratings" in reported
    assert "left out: copies of earlier rows (3)" in reported
    assert "gpt-4 3 0 7.00" in reported
    # Without a time, a copy is known by its text.
    rows = [{name: each[name] for name in each if name != "tstamp"} for each in (row, row, other)]
    log = read([*rows, {**rows[0], "judgment": "I rate it [[7]]"}])
    assert dict(log.left_out) == {"copies of earlier rows": 1}


def test_each_model_has_a_mean_grade_of_each_turn(tmp_path: Path, read: Any) -> None:
    grades = {("alpaca", 1): (4, 6), ("alpaca", 2): (1, 3), ("vicuna", 1): (9, 7)}
    rows = [
        {"model": model, "turn": turn, "question_id": at, "judge": ["gpt-4", "single-v1"]}
        | {"judgment": "?", "score": grade}
        for (model, turn), pair in grades.items()
        for at, grade in enumerate(pair)
    ]
    read(rows)
    done = CliRunner().invoke(main, ["measure", str(tmp_path / "log.jsonl")])
    assert done.exit_code == 0, done.output
    table = done.output.partition("Mean ratings of models")[2]
    found = [line.split() for line in table.splitlines() if line.startswith("gpt-4")]
    # The best model of each turn first; 8, 5 and 2 by hand.
    words = [
        [word for word in row if word in {"alpaca", "vicuna", "8.00", "5.00", "2.00"}]
        for row in found
    ]
    assert words == [["vicuna", "8.00"], ["alpaca", "5.00"], ["alpaca", "2.00"]]
