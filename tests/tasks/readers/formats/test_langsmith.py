"""Feedback as LangSmith exports it."""

from typing import Any


def test_sources_and_values(read: Any, rated: Any) -> None:
    row = {
        "id": "f1",
        "run_id": "r1",
        "session_id": "s",
        "key": "correct",
        "score": 1,
        "value": None,
        "comment": "",
        "feedback_source": {"type": "model", "metadata": {}, "user_id": None},
    }
    person = {"type": "app", "user_id": "ann"}
    log = read(
        [
            row,
            {**row, "id": "f2", "score": 0, "feedback_source": person},
            {**row, "id": "f3", "key": "tone", "score": None, "value": "warm"},
            {**row, "id": "f4", "key": "safe", "score": True},
            {**row, "id": "f5", "run_id": "r2", "score": None},
            {**row, "id": "f6", "feedback_source": {"type": "api"}},
        ]
    )
    assert rated(
        log, "item", "criterion", "judge", "human", "kind", "label", "value", "invalid"
    ) == [
        ("r1", "correct", "ann", True, "number", "0", 0.0, None),
        ("r1", "correct", "langsmith evaluator", False, "number", "1", 1.0, None),
        ("r1", "safe", "langsmith evaluator", False, "label", "true", 1.0, None),
        ("r1", "tone", "langsmith evaluator", False, "label", "warm", None, None),
        (
            "r2",
            "correct",
            "langsmith evaluator",
            False,
            "label",
            None,
            None,
            "neither a score nor a value",
        ),
    ]
    assert list(log.left_out.values()) == [1]
