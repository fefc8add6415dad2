"""A folder of MT-Bench: votes beside questions, answers and reference answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.logs.log_description import limits_of, recognised_line
from tasks.logs.log_reader import Log, read_log

CATEGORIES = {"81": "writing", "111": "math"}


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def answers(model: str) -> list[dict[str, Any]]:
    turns = [f"{model} says one.", f"{model} says two."]
    return [
        {"question_id": int(key), "model_id": model, "choices": [{"index": 0, "turns": turns}]}
        for key in CATEGORIES
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in which the judge and two people disagree on question 111 in both turns."""
    lines(
        tmp_path / "bench/question.jsonl",
        [
            {"question_id": int(key), "category": category, "turns": [f"{key}: one?", "And two?"]}
            for key, category in CATEGORIES.items()
        ],
    )
    for model in ("a", "b"):
        lines(tmp_path / f"bench/model_answer/{model}.jsonl", answers(model))
    lines(tmp_path / "bench/reference_answer/gpt-4.jsonl", answers("gpt-4")[1:])
    votes = [
        {
            "question_id": int(key),
            "model_a": "a",
            "model_b": "b",
            "winner": "model_b" if who == "gpt4_pair" and key == "111" else "model_a",
            "judge": who,
            "turn": turn,
        }
        for key in CATEGORIES
        for who in ("gpt4_pair", "expert_0", "expert_1")
        for turn in (1, 2)
    ]
    lines(tmp_path / "bench/model_judgment/votes.jsonl", votes)
    return tmp_path / "bench"


@pytest.fixture
def log(folder: Path) -> Log:
    found = read_log(folder)
    assert found is not None
    return found


def test_questions_and_answers_are_recognised(log: Log) -> None:
    assert "5 files, 12 rows, judge gpt4_pair" in recognised_line(log)
    limits = "\n".join(limits_of(log))
    assert "2 questions, answers of 2 models and reference answers" in limits
    assert "not recognised" not in limits


def test_votes_have_the_category_of_their_question(log: Log) -> None:
    pairs = log.ratings.select("cluster", "category").unique().sort("cluster").rows()
    assert pairs == [("111", "math"), ("81", "writing")]


def test_a_turn_has_its_own_texts_first(log: Log) -> None:
    texts = {
        dataset: json.loads(found)
        for item, found, dataset in log.texts.rows()
        if item.startswith("111")
    }
    assert [*texts["bench/turn1"].items()] == [
        ("question", "111: one?"),
        ("anchor", "a says one."),
        ("target", "b says one."),
        ("reference", "gpt-4 says one."),
    ]
    second = texts["bench/turn2"]
    assert second["question"] == "And two?"
    assert second["target"] == "b says two."
    assert second["question, turn 1"] == "111: one?"
    assert second["reference, turn 1"] == "gpt-4 says one."


@pytest.mark.parametrize("command", [("measure",), ("calibrate", "--no-save")])
def test_disagreements_have_their_texts_and_slices(folder: Path, command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, [*command, str(folder), "--slice", "category"])
    assert done.exit_code == 0, done.output
    first, second = done.stdout.split("gpt4_pair / bench/turn2 against")
    assert "question: 111: one?" in first
    assert "question: And two?" in second
    assert "81: one?" not in done.stdout
    assert "math" in second


def test_grades_have_the_answer_that_is_graded(folder: Path) -> None:
    (folder / "model_judgment/votes.jsonl").unlink()
    grades = [
        {
            "question_id": int(key),
            "model": "b",
            "judge": ["gpt-4", "single-v1"],
            "score": 7,
            "judgment": "[[7]]",
            "user_prompt": "?",
            "turn": 1,
        }
        for key in CATEGORIES
    ]
    lines(folder / "model_judgment/gpt-4_single.jsonl", grades)
    log = read_log(folder)
    assert log is not None
    assert [*log.ratings["category"].sort()] == ["math", "writing"]
    (texts,) = log.texts.filter(item="111/b")["texts"]
    assert json.loads(texts)["answer"] == "b says one."
