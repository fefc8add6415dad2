import pytest

from tasks.rewriting.phrases import NEUTRAL
from tasks.rewriting.sentences import extended, led


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The tide falls.", "In short, the tide falls."),
        ("A boat rests.", "In short, a boat rests."),
        ("Paris is a city.", "In short: Paris is a city."),
        ("I sail.", "In short: I sail."),
        ("DNA is long.", "In short: DNA is long."),
        ("the tide falls.", "In short: the tide falls."),
        ("水。", "In short: 水。"),
    ],
)
def test_led_keeps_the_capital_of_names(sentence: str, expected: str) -> None:
    assert led("In short", sentence) == expected


def test_extended_adds_each_sentence_once() -> None:
    made = extended("The tide falls.", 3000, (0, "x"), apart=True)
    assert abs(len(made) - 3000) <= 2
    assert made.startswith("The tide falls.\n\n")
    assert all(made.count(sentence) <= 1 for sentence in NEUTRAL)


def test_extended_does_not_repeat_what_the_text_says() -> None:
    text = " ".join(NEUTRAL[:40])
    made = extended(text, len(text) + 200, (0, "x"), apart=False)
    assert all(made.count(sentence) == 1 for sentence in NEUTRAL[:40])


def test_a_text_without_stop_gets_a_paragraph() -> None:
    assert extended("The tide", 60, (0, "x"), apart=False).startswith("The tide\n\n")
    assert not extended("The tide.", 60, (0, "x"), apart=False).startswith("The tide.\n")
