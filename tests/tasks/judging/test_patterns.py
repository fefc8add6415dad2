import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.judging.patterns import Pattern, Pointer

MAP = {"Model 1": "first", "Model 2": "second", "Draw": "tie"}
PATTERN = Pattern(
    map=MAP, pattern=r"(?i)winner:\s*(model [12]|draw)\b", example="Hm. Winner: {verdict}."
)
POINTER = Pointer(map={"1": "first", "2": "second", "true": "tie"}, pointer="/result/a~1b/0")


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("Both are good. Winner: Model 1", "first"),
        ("WINNER:  model 2!", "second"),
        ("winner: draw", "tie"),
        ("Winner: Model 1. Yes, winner: model 1.", "first"),
        ("Winner: Model 1. No, winner: Model 2.", "ambiguous"),
        ("Winner: nobody", "invalid"),
        ("Model 1", "invalid"),
        ("", "invalid"),
        ("I'm sorry, but I cannot help with that.", "abstain"),
    ],
)
def test_a_pattern_reads_what_all_its_matches_say(reply: str, choice: str) -> None:
    assert PATTERN.read(reply) == choice


def test_without_a_group_the_whole_match_is_the_text() -> None:
    whole = Pattern(map={"1": "first", "2": "second"}, pattern="[12]$", example="It is {verdict}")
    assert [whole.read(text) for text in ("So 2", "2 or 1", "1 or so")] == [
        "second",
        "first",
        "invalid",
    ]


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ('{"result": {"a/b": ["1", 5]}}', "first"),
        ('```json\n{"result": {"a/b": [2]}}\n```', "second"),
        ('{"result": {"a/b": [2.0]}}', "second"),
        ('{"result": {"a/b": [true]}}', "tie"),
        ('{"result": {"a/b": {"0": " 2 "}}}', "second"),
        ('{"result": {"a/b": ["3"]}}', "invalid"),
        ('{"result": {"a/b": [["1"]]}}', "invalid"),
        ('{"result": {"a/b": []}}', "invalid"),
        ('{"result": {}}', "invalid"),
        ("[1]", "invalid"),
        ("null", "invalid"),
        ("Winner: 1", "invalid"),
        ("I'm sorry, but I can't help with that.", "abstain"),
    ],
)
def test_a_pointer_reads_one_value(reply: str, choice: str) -> None:
    assert POINTER.read(reply) == choice


@given(st.text())
def test_no_reply_breaks_a_reading(reply: str) -> None:
    for reading in (PATTERN, POINTER):
        assert reading.read(reply) in {"first", "second", "tie", "invalid", "abstain", "ambiguous"}


@given(st.sampled_from(sorted(MAP)))
def test_what_a_reading_writes_it_reads(text: str) -> None:
    assert PATTERN.read(PATTERN.reply(text)) == MAP[text]
    other = Pointer(map=MAP, pointer="/x/y")
    assert json.loads(other.reply(text)) == {"x": {"y": text}}
    assert other.read(other.reply(text)) == MAP[text]


def test_time_grows_with_the_length_of_the_reply_alone() -> None:
    # A backtracking engine would never end on this.
    nested = Pattern(
        map={"1": "first", "2": "second"}, pattern=r"(?:a+)+([12])", example="a{verdict}"
    )
    assert nested.read("a" * 100_000) == "invalid"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pattern": "(?=x)"}, "is not a regular expression of Rust's regex"),
        (
            {"pattern": "("},
            "the pattern '(' is not a regular expression of Rust's regex: unclosed group",
        ),
        ({"pattern": "Verdict: (.*)"}, "reads the example with 'Model 1' as 'invalid'"),
        ({"example": "Winner: nobody"}, "reads the example with 'Model 1' as 'invalid'"),
        ({"map": {"x": "first", "X ": "second"}}, "two texts differ only in case"),
        ({"map": {"x": "first", "y": "tie"}}, "no text is mapped to 'second'"),
        ({"map": {"x": "first", "y": "better"}}, "Input should be 'first', 'second' or 'tie'"),
        ({"flags": "i"}, "Extra inputs are not permitted"),
    ],
)
def test_what_cannot_read_its_own_example_is_refused(change: dict[str, Any], said: str) -> None:
    given = PATTERN.model_dump() | change
    with pytest.raises(ValidationError, match=said.replace("(", r"\(")) as caught:
        Pattern(**given)
    assert "following expression" not in str(caught.value)


@pytest.mark.parametrize("pointer", ["", "verdict", "$.verdict"])
def test_a_pointer_begins_with_a_slash(pointer: str) -> None:
    with pytest.raises(ValidationError, match="pattern"):
        Pointer(map={"1": "first", "2": "second"}, pointer=pointer)
