from collections.abc import Callable
from typing import Any

import pytest

from tasks.aggregate import count_votes
from tasks.annotate import annotate

Make = Callable[..., Any]
SIDES = {"12": "anchor", "21": "target"}


def labels(make: Make, votes: list[dict[str, Any]]) -> list[tuple[str, bool, int]]:
    rows = annotate(count_votes(make(votes)))
    return rows.select("label", "inconsistent", "votes").rows()


@pytest.mark.parametrize(
    ("straight", "turned", "expected"),
    [
        # straight: first is the anchor; turned: first is the target
        ("first", "second", [("anchor", False, 2)]),
        ("second", "first", [("target", False, 2)]),
        ("tie", "tie", [("tie", False, 2)]),
        ("first", "first", [("tie", True, 2)]),
        ("second", "second", [("tie", True, 2)]),
        ("first", "tie", [("tie", True, 2)]),
        ("tie", "first", [("tie", True, 2)]),
        ("invalid", "first", []),
        ("first", "abstain", []),
        (None, "first", []),
        ("invalid", "ambiguous", []),
    ],
)
def test_the_swap_protocol(
    make_vote_log: Make, straight: str, turned: str, expected: list[tuple[str, bool, int]]
) -> None:
    votes = [
        {"shown_first": "anchor", "choice": straight},
        {"shown_first": "target", "choice": turned},
    ]
    assert labels(make_vote_log, votes) == expected


@pytest.mark.parametrize(
    ("side", "choice", "label"),
    [("anchor", "first", "anchor"), ("target", "first", "target"), ("target", "tie", "tie")],
)
def test_who_saw_one_order_is_taken_at_that_word(
    make_vote_log: Make, side: str, choice: str, label: str
) -> None:
    assert labels(make_vote_log, [{"shown_first": side, "choice": choice}]) == [(label, False, 1)]


def test_an_order_says_what_most_of_its_votes_say(make_vote_log: Make) -> None:
    votes = [
        {"shown_first": side, "repeat": repeat, "choice": choice}
        for side, choices in (
            ("anchor", ("first", "first", "second")),
            ("target", ("second", "tie", "invalid")),
        )
        for repeat, choice in enumerate(choices)
    ]
    # anchor, anchor, target; anchor, tie: the anchor in both orders, by five votes
    assert labels(make_vote_log, votes) == [("anchor", False, 5)]


def test_control_votes_only(make_vote_log: Make) -> None:
    assert annotate(count_votes(make_vote_log([{"arm": "experimental"}]))).is_empty()
    assert annotate(count_votes(make_vote_log([]))).is_empty()


def test_a_person_is_one_annotator_whatever_the_prompt_and_wave(make_vote_log: Make) -> None:
    votes = [{"wave": wave, "repeat": 0, "choice": "first"} for wave in ("a", "b")]
    person = annotate(count_votes(make_vote_log(votes, human=True)))
    assert person.select("annotator", "prompt", "wave", "label", "votes", "human").rows() == [
        ("ada", None, "", "anchor", 2, True)
    ]
    model = annotate(count_votes(make_vote_log(votes, human=None)))
    assert model.select("prompt", "wave", "human", "value").rows() == [
        ("plain", "a", False, -1.0),
        ("plain", "b", False, -1.0),
    ]
