import json

from tasks.engine.journal import Reply
from tasks.judge import vote_row
from tasks.judging.verdict_parser import parse_json
from tasks.prompting.prompt import RESPONSE_FORMAT, VERDICT_ONLY
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES
from tasks.simulation.judge import answer, as_object, read_prompt
from tasks.simulation.traits import Traits

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
    schema, longer = (form["json_schema"]["schema"] for form in (VERDICT_ONLY, RESPONSE_FORMAT))
    assert list(schema["properties"]) == schema["required"] == ["verdict"]
    assert schema["properties"]["verdict"] == longer["properties"]["verdict"]
    read = [
        parse_json(json.dumps({"verdict": word}), reason=False)
        for word in schema["properties"]["verdict"]["enum"]
    ]
    assert read == ["first", "second", "tie"]


def test_its_object_is_nothing_else() -> None:
    assert parse_json('{"reason": "x", "verdict": "A"}', reason=False) == "invalid"
    reply = Reply('{"verdict": "B"}')
    assert vote_row("b1", "pair_verdict_v1", reply, None)["choice"] == "second"
    assert vote_row("b1", "pair_json_v1", reply, None)["choice"] == "invalid"


def test_a_simulated_judge_gives_the_verdict_alone() -> None:
    traits = Traits(**JUDGES["offline/honest"].params["traits"])
    messages = PROMPT.messages("What is 2 + 2?", "Four.", "It is 4.")
    for repeat in range(20):
        reply = as_object(answer(messages, traits, repeat), ["verdict"])
        assert answer(messages, traits, repeat).endswith(f"[[{json.loads(reply)['verdict']}]]")
        assert parse_json(reply, reason=False) != "invalid"


def test_a_simulated_judge_finds_its_way() -> None:
    answers = "Four.\n\nSurely.", "It is 4."
    seen = read_prompt(PROMPT.messages("What is 2 + 2?", *answers)[-1]["content"])
    assert seen == ("What is 2 + 2?", *answers)
