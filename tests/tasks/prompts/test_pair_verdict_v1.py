import json

from tasks._parser import parse_json
from tasks.prompts import PROMPTS, RESPONSE_FORMAT, VERDICT_ONLY
from tasks.providers._offline import read_prompt

PROMPT = PROMPTS["pair_verdict_v1"]
LONGER = PROMPTS["pair_json_v1"]


def test_it_is_the_longer_one_without_a_reason() -> None:
    begin, end = PROMPT.system.split('"verdict"')
    assert LONGER.system.startswith(begin)
    assert LONGER.system.endswith(f'"verdict"{end}')
    assert "reason" not in PROMPT.system
    assert PROMPT.user == LONGER.user


def test_its_object_holds_the_verdict_alone() -> None:
    assert PROMPT.params == {"response_format": VERDICT_ONLY}
    assert LONGER.params == {"response_format": RESPONSE_FORMAT}
    schema, longer = (
        form["json_schema"]["schema"] for form in (VERDICT_ONLY, RESPONSE_FORMAT)
    )  # fmt: skip
    assert list(schema["properties"]) == schema["required"] == ["verdict"]
    assert schema["properties"]["verdict"] == longer["properties"]["verdict"]
    read = [
        parse_json(json.dumps({"verdict": word}))
        for word in schema["properties"]["verdict"]["enum"]
    ]
    assert read == ["first", "second", "tie"]


def test_a_simulated_judge_finds_its_way() -> None:
    answers = "Four.\n\nSurely.", "It is 4."
    seen = read_prompt(PROMPT.messages("What is 2 + 2?", *answers)[-1]["content"])
    assert seen == ("What is 2 + 2?", *answers)
