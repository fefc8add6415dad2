import json

from tasks.prompts import PROMPTS

PROMPT = PROMPTS["rubric_v1"]


def test_it_lists_the_criteria_with_their_scales() -> None:
    user = PROMPT.messages("Why?", "So.")[-1]["content"]
    assert user.startswith(
        "Criteria:\n"
        "- correct (1 to 5): what it says is true\n"
        "- complete (1 to 5): it covers all that was asked\n"
        "- clear (1 to 5): a reader understands it at once\n\n[Question "
    )


def test_the_object_that_it_asks_for_is_read() -> None:
    fields = PROMPT.params["response_format"]["json_schema"]["schema"]["properties"]
    assert {name: of["type"] for name, of in fields.items()} == {
        "reason": "string",
        "correct": "integer",
        "complete": "integer",
        "clear": "integer",
    }
    grades = {"correct": 5, "complete": 4, "clear": 2}
    assert PROMPT.rate(json.dumps({"reason": "Hm.", **grades})) == ("rated", grades)
    off = {**grades, "clear": 6}
    assert PROMPT.rate(json.dumps({"reason": "Hm.", **off})) == ("invalid", off)
    assert PROMPT.rate(json.dumps(grades)).choice == "invalid"
