import json

import pytest

from tasks.judging.verdict_parser import parse_json
from tasks.prompting.prompt import RESPONSE_FORMAT
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES
from tasks.simulation.judge import answer, as_object
from tasks.simulation.traits import Traits

PROMPT = PROMPTS["pair_json_v1"]


def test_it_asks_for_an_object_and_shows_the_answers_like_the_plain_one() -> None:
    assert PROMPT.params == {"response_format": RESPONSE_FORMAT}
    assert PROMPTS["pair_v1"].params == {}
    assert PROMPT.user == PROMPTS["pair_v1"].user
    assert "[[A]]" not in PROMPT.system


def test_a_system_message_of_the_judge_comes_first() -> None:
    system, _ = PROMPT.messages("Q", "one", "two", before="Be strict.")
    assert system["content"] == f"Be strict.\n\n{PROMPT.system}"


def test_a_simulated_judge_gives_the_same_verdict_as_an_object() -> None:
    traits = Traits(**JUDGES["offline/honest"].params["traits"])
    messages = PROMPT.messages("What is 2 + 2?", "Four.", "It is 4.")
    for repeat in range(20):
        reply = json.loads(as_object(answer(messages, traits, repeat), ["reason", "verdict"]))
        assert answer(messages, traits, repeat).endswith(f"[[{reply['verdict']}]]")
        assert "Simulated" in reply["reason"]


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ('{"reason": "x", "verdict": "A"}', "first"),
        ('{"verdict": "B", "reason": ""}', "second"),
        ('```json\n{"reason": "x", "verdict": "C"}\n```', "tie"),
        ('{"reason": "x", "verdict": "b"}', "invalid"),
        ('{"reason": "x", "verdict": "tie"}', "invalid"),
        ('{"reason": "x", "verdict": "A", "verdict": "B"}', "invalid"),
        (
            '{"reason": "I cannot judge. I cannot judge.", "verdict": "A", "verdict": "B"}',
            "invalid",
        ),
        ('{"reason": "x", "reason": "y", "verdict": "A"}', "invalid"),
        ('{"verdict": "A"}', "invalid"),
        ('{"reason": null, "verdict": "A"}', "invalid"),
        ('{"reason": ["x"], "verdict": "A"}', "invalid"),
        ('{"reason": "x", "verdict": "A", "certainty": 1}', "invalid"),
        ('{"reason": "x", "verdict": ["A"]}', "invalid"),
        ("{}", "invalid"),
        ('Here it is: {"verdict": "A"}', "invalid"),
        ('{"verdict": "A"', "invalid"),
        ('{"reason": "x", "verdict": "D"}', "invalid"),
        ('{"reason": "x", "verdict": 1}', "invalid"),
        ('["A"]', "invalid"),
        ("[[A]]", "invalid"),
        ("", "invalid"),
        ("[" * 100_000, "invalid"),
        ("I cannot judge this.", "abstain"),
    ],
)
def test_only_a_whole_object_is_a_verdict(reply: str, choice: str) -> None:
    assert parse_json(reply) == choice
