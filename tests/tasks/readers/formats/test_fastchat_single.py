"""Single grades as FastChat writes them."""

from typing import Any


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
