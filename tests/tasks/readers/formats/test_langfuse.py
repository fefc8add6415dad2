"""Scores as Langfuse exports them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.logs.log_reader import read_log


def score(**changes: Any) -> dict[str, Any]:
    return {
        "id": "s1",
        "name": "helpful",
        "value": 0.9,
        "stringValue": None,
        "dataType": "NUMERIC",
        "source": "EVAL",
        "comment": "=1+1",
        "traceId": "t1",
        "observationId": None,
        "authorUserId": None,
        **changes,
    }


def test_judges_and_people_are_kept_apart(read: Any, rated: Any) -> None:
    log = read(
        [
            score(),
            score(id="s2", source="ANNOTATION", authorUserId="ann", value=0.5),
            score(id="s3", source="API"),
            score(id="s4", dataType="TEXT", stringValue="fine"),
            score(id="s5", name="safe", dataType="BOOLEAN", value=1, stringValue="True"),
            score(id="s6", name="tone", dataType="CATEGORICAL", value=None, stringValue="warm"),
            score(id="s7", value=float("nan"), traceId="t2", observationId="o2"),
        ]
    )
    names = ("item", "cluster", "criterion", "judge", "human", "kind", "label", "value", "invalid")
    assert rated(log, *names) == [
        ("o2", "t2", "helpful", "langfuse evaluator", False, "number", None, None, "not a number"),
        ("t1", "t1", "helpful", "ann", True, "number", "0.5", 0.5, None),
        ("t1", "t1", "helpful", "langfuse evaluator", False, "number", "0.9", 0.9, None),
        ("t1", "t1", "safe", "langfuse evaluator", False, "label", "true", 1.0, None),
        ("t1", "t1", "tone", "langfuse evaluator", False, "label", "warm", None, None),
    ]
    assert sorted(log.left_out.values()) == [1, 1]


def test_ids_are_unique(read: Any) -> None:
    log = read([score(), score()])
    assert log.ratings.height == 1
    assert dict(log.left_out) == {"rows that repeat the id and content of an earlier row": 1}
    with pytest.raises(ValueError, match="1 id occurs more than once with different content"):
        read([score(), score(value=0.1)])


def test_the_answer_of_the_api_is_unwrapped(read: Any) -> None:
    assert read({"data": [score()], "meta": {"page": 1}}).ratings.height == 1


def test_a_score_without_a_name_is_of_no_criterion(read: Any, tmp_path: Path, rated: Any) -> None:
    scores = [score(), score(id="s2", name="", traceId="t2", observationId="o2")]
    read(scores)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    in_folder = read_log(folder)
    assert in_folder is not None
    for log in (read(scores), in_folder):
        assert [item for (item,) in rated(log, "item")] == ["t1"]
        assert dict(log.left_out) == {"scores without a name: of no criterion": 1}


def test_the_category_is_that_of_the_metadata(read: Any, rated: Any) -> None:
    log = read([score(metadata={"category": "billing"}), score(id="s2", traceId="t2")])
    assert rated(log, "item", "category") == [("t1", "billing"), ("t2", None)]


def test_a_score_of_nothing_is_left_out_and_counted(read: Any, rated: Any) -> None:
    nothing = dict.fromkeys(("traceId", "observationId", "sessionId", "datasetRunId"))
    log = read([score(), score(id="s2") | nothing, score(id="s3", name="") | nothing])
    assert [item for (item,) in rated(log, "item")] == ["t1"]
    assert dict(log.left_out) == {
        "scores without a name: of no criterion": 1,
        "scores of no observation, trace, session or dataset run: of no item": 1,
    }


def test_a_boolean_may_be_a_number_or_a_word(read: Any, rated: Any) -> None:
    """The API writes 1 and "True"; tables that people export hold the word alone."""
    given = [(1, "True"), (True, "True"), ("False", None), (None, "false"), (2, None), (None, None)]
    log = read(
        [
            score(id=f"s{n}", traceId=f"t{n}", dataType="BOOLEAN", value=value, stringValue=text)
            for n, (value, text) in enumerate(given)
        ]
    )
    assert rated(log, "item", "label", "invalid") == [
        ("t0", "true", None),
        ("t1", "true", None),
        ("t2", "false", None),
        ("t3", "false", None),
        ("t4", None, "no label"),
        ("t5", None, "no label"),
    ]
