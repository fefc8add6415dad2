"""Results as promptfoo writes them, version 3 (test_promptfoo_itself.py reads a log of its own)."""

import json
from typing import Any

import pytest

from tasks.logs.log_description import limits_of, recognised_line


def component(kind: str, *, passed: object = True, **more: Any) -> dict[str, Any]:
    assertion = {"type": kind, **more.pop("assertion", {})}
    return {"pass": passed, "score": 1, "reason": "<script>", "assertion": assertion, **more}


def log_of(*results: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    listed = [
        {
            "testIdx": at,
            "promptIdx": 0,
            "provider": {"id": "openai:gpt-5"},
            "vars": {"question": f"<b>{at}</b>", "more": [at]},
            "response": {"output": f"It is {at}."},
            "success": True,
            "failureReason": 0,
            "gradingResult": {"pass": True, "score": 1, "componentResults": components},
        }
        for at, components in enumerate(results)
    ]
    summary = {"version": 3, "timestamp": "...", "results": listed, "stats": {}, **changes}
    return {"evalId": "e", "results": summary, "config": {}}


def test_people_judges_and_failures(read: Any, rated: Any) -> None:
    rubric = {"assertion": {"provider": "openai:o5", "value": "is kind"}}
    log = read(
        log_of(
            [component("llm-rubric", **rubric), component("human", passed=False)],
            [component("llm-rubric", passed=False, metadata={"graderError": True}, **rubric)],
            [component("contains"), component("not-llm-rubric", passed=False, **rubric)],
        )
    )
    names = ("item", "cluster", "judge", "human", "label", "value", "invalid")
    assert set(rated(log, *names)) >= {
        ("0/0/openai:gpt-5", "0", "llm-rubric by openai:o5", False, "pass", 1.0, None),
        ("1/0/openai:gpt-5", "1", "llm-rubric by openai:o5", False, None, None, "grader error"),
        ("2/0/openai:gpt-5", "2", "not-llm-rubric by openai:o5", False, "fail", 0.0, None),
    }
    together = log.ratings.filter(criterion="overall", human=False)
    assert together.select("label", "invalid").rows() == [
        ("pass", None),
        (None, "grader error"),
        ("fail", None),
    ]
    judged = log.ratings.filter(criterion="llm-rubric")
    assert judged.select("label", "invalid").rows() == [("pass", None), (None, "grader error")]
    people = log.ratings.filter("human")
    assert people.select("judge", "label", "criterion").rows() == [
        ("promptfoo user", "fail", "overall")
    ]
    texts = {"question": "<b>0</b>", "more": "[0]", "output": "It is 0."}
    assert [
        (item, json.loads(text)) for item, text in log.texts.select("item", "texts").rows()
    ] == [("0/0/openai:gpt-5", texts)]
    assert dict(log.left_out) == {"assertions that neither a model nor a person graded": 1}


def test_one_criterion_is_compared_with_people(read: Any) -> None:
    rubric = {"assertion": {"provider": {"id": "openai:o5"}}}
    log = read(log_of([component("llm-rubric", **rubric), component("human")]))
    assert log.ratings["criterion"].null_count() == 2
    assert recognised_line(log) == (
        "promptfoo results, 1 row, 2 ratings, judge llm-rubric by openai:o5, 1 human rating by 1 "
        "person"
    )
    assert "one person: the alternative annotator test needs two or more" in limits_of(log)


def test_metrics_and_several_assertions_are_criteria(read: Any) -> None:
    kind = {"assertion": {"metric": "kind"}}
    log = read(log_of([component("llm-rubric", **kind), component("g-eval"), component("g-eval")]))
    assert set(log.ratings["criterion"]) == {"kind", "g-eval", "g-eval #2"}


def test_a_provider_that_failed_was_not_graded(read: Any) -> None:
    log = log_of([component("llm-rubric")], [])
    log["results"]["results"][1]["failureReason"] = 2
    found = read(log)
    assert found.ratings.height == 1
    assert dict(found.left_out) == {"results without an output, because the provider failed": 1}


def test_another_version_is_an_error(read: Any) -> None:
    with pytest.raises(ValueError, match="results of version 4; version 3 is readable"):
        read(log_of(version=4))


def test_each_result_is_counted_and_has_a_category(read: Any, rated: Any) -> None:
    log = log_of(*([component("llm-rubric")] for _ in range(4)))
    results = log["results"]["results"]
    results[0]["vars"]["category"] = "of a variable"
    results[1]["testCase"] = {"metadata": {"category": "of the test"}}
    results[2] |= {"error": "API error: 500", "gradingResult": None}
    results[3]["gradingResult"] = {"pass": True, "score": 1, "componentResults": []}
    found = read(log)
    assert rated(found, "category") == [("of a variable",), ("of the test",)]
    assert dict(found.left_out) == {
        "results without an output, because the provider failed": 1,
        "results without a graded assertion": 1,
    }


def test_repeats_of_a_test_case_are_a_cluster(read: Any) -> None:
    # `promptfoo eval --repeat 2` numbers the repeats of a test case like other test cases.
    log = log_of(*([component("llm-rubric")] for _ in range(4)))
    for at, result in enumerate(log["results"]["results"]):
        result["vars"] = {"question": f"{at % 2}"}
    found = read(log).ratings.sort("item")
    assert found["item"].to_list() == [f"{at}/0/openai:gpt-5" for at in range(4)]
    assert found["cluster"].to_list() == ["0", "1", "0", "1"]
    # Without variables nothing says which test cases are alike.
    for result in log["results"]["results"]:
        result["vars"] = {}
    assert read(log).ratings.sort("item")["cluster"].to_list() == ["0", "1", "2", "3"]
