"""Feedback as LangSmith exports it."""

from typing import Any

from tasks.logs.log_description import recognised_lines


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
    # What failed is neither a label nor a grade.
    lines = recognised_lines(log)
    assert lines[1].startswith("- 2 labels and 2 grades: ")
    assert not [line for line in lines if "repeats" in line]
    assert "- invalid, which is no verdict: neither a score nor a value (1)" in lines


def test_items_with_repeats_are_counted(read: Any) -> None:
    row = {"run_id": "r1", "session_id": "s", "key": "correct", "score": 1, "value": None}
    row |= {"comment": "", "feedback_source": {"type": "model", "metadata": {}, "user_id": None}}
    runs = ("r1", "r1", "r1", "r2", "r2", "r3")
    log = read([{**row, "id": f"f{n}", "run_id": run} for n, run in enumerate(runs)])
    (line,) = (line for line in recognised_lines(log) if "repeats" in line)
    assert line.startswith("- 2 items have repeats, which count as one: ")


def test_corrections_are_counted_and_are_no_labels(read: Any) -> None:
    """People correct what they find wrong: corrections alone would show no agreement at all."""
    row = {"session_id": "s", "key": "correct", "score": 1, "value": None, "comment": ""}
    row |= {"feedback_source": {"type": "model", "metadata": {}, "user_id": None}}
    fixed = ({"score": 0}, None, {"score": 0})
    log = read([row | {"id": n, "run_id": n, "correction": fix} for n, fix in enumerate(fixed)])
    assert not log.ratings["human"].any()
    (line,) = (line for line in recognised_lines(log) if "corrected" in line)
    assert line == (
        "- 2 scores corrected by people: not used as labels, because people correct the scores "
        "that they find wrong, so agreement with corrections alone would be near 0 (a label of a "
        "person is feedback of source app)"
    )
