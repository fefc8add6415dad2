import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.prompts import PROMPTS, Prompt

FORM = Prompt(
    prompt="plain",
    kind="pair",
    source="here",
    system="Be {question} fair.",
    user="{question}|{answer_a}|{answer_b}|{{other}}|{answer_a}",
)


def test_places_are_filled_in_the_user_message_only() -> None:
    assert FORM.messages("Q", "one", "two") == [
        {"role": "system", "content": "Be {question} fair."},
        {"role": "user", "content": "Q|one|two|{{other}}|one"},
    ]


def test_an_empty_system_message_is_left_out() -> None:
    bare = FORM.model_copy(update={"system": ""})
    assert [message["role"] for message in bare.messages("Q", "one", "two")] == ["user"]


@given(st.text(), st.text(), st.text())
def test_no_text_is_read_as_a_place(question: str, first: str, second: str) -> None:
    texts = [f"{{answer_b}}{question}", f"{{question}}{first}\\1", f"{{answer_a}}{second}"]
    user = FORM.messages(*texts)[-1]["content"]
    assert user == f"{texts[0]}|{texts[1]}|{texts[2]}|{{{{other}}}}|{texts[1]}"


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
