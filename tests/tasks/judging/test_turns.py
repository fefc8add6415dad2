import pytest

from tasks.judging.turns import as_context, earlier_turn


@pytest.mark.parametrize(
    ("sample", "shown_first", "first", "second"),
    [
        # /a2 is the usual target; in the mirrored pair /a1 is.
        ("d/q/a2", "anchor", "one", "two"),
        ("d/q/a2", "target", "two", "one"),
        ("d/q/a1", "anchor", "two", "one"),
        ("d/q/a1", "target", "one", "two"),
    ],
)
def test_earlier_answers_go_with_those_that_are_judged(
    sample: str, shown_first: str, first: str, second: str
) -> None:
    context = as_context('Where, "é"?', ("one", "two"), None)
    assert earlier_turn({"sample": sample, "context": context}, shown_first) == {
        "question_1": 'Where, "é"?',
        "answer_1": first,
        "answer_a_1": first,
        "answer_b_1": second,
        "reference_1": "",
        "turns": f'User: Where, "é"?\n\nAssistant: {first}',
        "turns_a": f'User: Where, "é"?\n\nAssistant: {first}',
        "turns_b": f'User: Where, "é"?\n\nAssistant: {second}',
    }


@pytest.mark.parametrize("context", [None, "", "Some text.", '{"other": 1}'])
def test_other_contexts_are_no_turn(context: str | None) -> None:
    assert earlier_turn({"sample": "d/q/a2", "context": context}, "target") == {}
    assert earlier_turn({"sample": "d/q/a2"}, "target") == {}
