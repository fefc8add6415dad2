import pytest

from tasks.rewriting.paraphrase import Edit, _applied, _leads, _swaps


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("It stops, because it is late.", "It stops, since it is late."),
        ("It stops, because of rain.", "It stops, due to rain."),
        ("It stops because it rains.", "It stops because it rains."),
        ("More than 5 and more than five.", "Over 5 and more than five."),
        ("It is not nearly done, but nearly.", "It isn't nearly done, but almost."),
        ("Therefore, it does not move.", "Thus, it doesn't move."),
        ("Whereas-like non-therefore's", "Whereas-like non-therefore's"),
        ("He CANNOT stay.", "He CAN'T stay."),
        ("about it, about 7 days", "about it, around 7 days"),
    ],
)
def test_swaps(text: str, swapped: str) -> None:
    assert _applied(text, _swaps(text)) == swapped


def test_a_lead_in_stands_before_statements_only() -> None:
    text = "The tide falls. Does it rise? However, it does. go on. Stop!"
    assert [text[edit.start : edit.end] for edit in _leads(text, (0,))] == ["The tide falls."]


def test_edits_that_overlap_are_made_once() -> None:
    assert _applied("abcdef", [Edit(3, 5, "X"), Edit(1, 4, "-")]) == "a-ef"
