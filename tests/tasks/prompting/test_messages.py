import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.judging.turns import as_context, earlier_turn
from tasks.prompting.prompt import Prompt, frame_mark
from tasks.prompts import PROMPTS

FORM = Prompt(
    prompt="plain",
    kind="pair",
    source="here",
    system="Be {question} fair.",
    user="{question}|{answer_a}|{answer_b}|{{other}}|{answer_a}",
)
SINGLE = Prompt(prompt="one", kind="binary", source="here", user="{question}|{answer}")


def _worded(**texts: str) -> Prompt:
    return Prompt(**{**SINGLE.model_dump(), **texts})


def test_places_are_filled_in_both_messages() -> None:
    assert FORM.messages("{answer_a}", "one", "two", before="Use {question}.") == [
        {"role": "system", "content": "Use {question}.\n\nBe {answer_a} fair."},
        {"role": "user", "content": "{answer_a}|one|two|{other}|one"},
    ]


def test_a_place_may_stand_in_the_system_message_alone() -> None:
    form = _worded(system="Is {answer} right ({mark})? {reference}", user="{{Go}}.")
    assert form.places == {"answer", "mark", "reference"}
    system, user = (each["content"] for each in form.messages("Q", "A", reference="R"))
    assert system == f"Is A right ({frame_mark('Q', 'A', 'R')})? R"
    assert user == "{Go}."


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"system": "Judge {answer} for {questoin}."}, "system: {questoin} is not a placeholder"),
        ({"system": "{answer_a}", "user": "{x}"}, "user: {x} is not a placeholder; {answer} is m"),
        ({"system": "Judge.", "user": "Go."}, "{answer} is missing. Placeholders: {question}, "),
        ({"user": "{answer} {turns_a}"}, "{turns_a} is not a placeholder. Placeholders: {qu"),
    ],
)
def test_unknown_and_missing_places_are_named(texts: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        _worded(**texts)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("{{word}}", "{word}"),
        ("{{answer}}", "{answer}"),
        ("{{Word}} {{_x1}}", "{Word} {_x1}"),
        ("{{{word}}}", "{{word}}"),
        ('{"a": {"b": 1}} {} {{}} {{ a }} {{"a": 1}} {{a b}}', None),
        ('{"better": {choice}} {{word}', None),
        ('{"better": {{choice}}}', '{"better": {choice}}'),
        ('{"q": {question}}', '{"q": Q}'),
    ],
)
def test_a_word_in_double_braces_is_sent_in_single_ones(text: str, sent: str | None) -> None:
    form = _worded(system=text, user=f"{text}|{{answer}}")
    system, user = (each["content"] for each in form.messages("Q", "A {{x}}"))
    assert system == (text if sent is None else sent)
    assert user == f"{system}|A {{{{x}}}}"


def test_the_turn_before_is_plain_text() -> None:
    context = as_context("Where, {answer}?", ("Here.", "There."), None)
    pair = {"sample": "d/q/a2", "context": context}
    asked = {"earlier": earlier_turn(pair, "target")}
    single = _worded(user="{turns}|{question}|{answer}").messages("Q", "A", **asked)
    assert single[-1]["content"] == "User: Where, {answer}?\n\nAssistant: There.|Q|A"
    pair_form = FORM.model_copy(update={"user": "{turns_a}|{turns_b}"})
    assert pair_form.messages("Q", "A", "B", **asked)[-1]["content"] == (
        "User: Where, {answer}?\n\nAssistant: There.|User: Where, {answer}?\n\nAssistant: Here."
    )


def test_an_empty_system_message_is_left_out() -> None:
    bare = FORM.model_copy(update={"system": ""})
    assert [message["role"] for message in bare.messages("Q", "one", "two")] == ["user"]


@given(st.text(), st.text(), st.text())
def test_no_text_is_read_as_a_place(question: str, first: str, second: str) -> None:
    texts = [f"{{answer_b}}{question}", f"{{question}}{first}\\1", f"{{answer_a}}{second}"]
    user = FORM.messages(*texts)[-1]["content"]
    assert user == f"{texts[0]}|{texts[1]}|{texts[2]}|{{other}}|{texts[1]}"


@pytest.mark.parametrize(
    "change", [{"kind": "triple"}, {"sytem": "typo"}, {"user": None}, {"prompt": 3}]
)
def test_a_prompt_with_another_field_or_kind_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Prompt(**{**FORM.model_dump(), **change})


@pytest.mark.parametrize("name", PROMPTS)
def test_every_prompt_shows_all_that_it_is_about(name: str) -> None:
    prompt = PROMPTS[name]
    assert prompt.source
    answers = ("{answer}",) if prompt.pointwise else ("{answer_a}", "{answer_b}")
    for place in ("{question}", *answers):
        assert prompt.user.count(place) == 1
        assert place not in prompt.system
