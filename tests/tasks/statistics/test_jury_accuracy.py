from collections.abc import Callable
from typing import Any

import pytest

from schemas.results import Estimates
from tasks.aggregate import count_votes
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
Row = dict[str, Any]
TARGET = {"anchor": "second", "target": "first"}
"""Side that is shown first -> a vote for the target."""


@pytest.fixture
def evaluate(make_vote_log: Make) -> Callable[..., dict[str, Row]]:
    """Return a function of votes, as (judge, sample, choice by order), to rows by statistic."""

    def run(*votes: tuple[str, str, dict[str, str]], **more: Any) -> dict[str, Row]:
        rows = [
            {
                "judge": judge,
                "sample": sample,
                "shown_first": side,
                "choice": choice,
                "human": judge[0].isupper(),
                **more,
            }
            for judge, sample, choices in votes
            for side, choice in choices.items()
        ]
        found = STATISTICS["jury_accuracy"](tallies=count_votes(make_vote_log(rows)))
        assert Estimates.of(found).equals(found)
        return {row["statistic"]: row for row in found.to_dicts()}

    return run


FIRST = {"anchor": "first", "target": "first"}
TIE = {"anchor": "tie", "target": "tie"}


def test_the_docstring_example(evaluate: Make) -> None:
    # With the anchor first: tie, target, anchor; with the target first: target each
    mixed = {"a": {"anchor": "tie", "target": "first"}, "b": TARGET, "c": FIRST}
    found = evaluate(*((judge, "s1", votes) for judge, votes in mixed.items()), label="target")
    assert found["jury_accuracy"]["estimate"] == 1.0
    assert found["jury_position_consistency"]["estimate"] == 0.0
    assert found["jury_accuracy"]["judge"] == "jury/all"


def test_members_may_be_inconsistent_where_the_jury_is_not(evaluate: Make) -> None:
    # One likes the first slot, the other the second: they make up for each other.
    second = {"anchor": "second", "target": "second"}
    votes = [
        (judge, f"s{at}", choice)
        for at in range(12)
        for judge, choice in (("a", FIRST), ("b", second))
    ]
    found = evaluate(*votes, label="target")
    assert found["jury_position_consistency"]["estimate"] == 1.0
    assert (found["jury_accuracy"]["estimate"], found["jury_accuracy"]["n"]) == (0.0, 12)


def test_every_member_must_speak_and_people_are_none(evaluate: Make) -> None:
    votes = [("a", "s1", TARGET), ("b", "s1", TARGET), ("a", "s2", TARGET), ("Ann", "s1", TIE)]
    row = evaluate(*votes)["jury_position_consistency"]
    assert (row["estimate"], row["n"], row["dropped"]) == (1.0, 1, 1)
    assert "jury_accuracy" not in evaluate(*votes)
    # One model and a person are no jury.
    assert evaluate(("a", "s1", TARGET), ("Ann", "s1", TIE)) == {}


def test_a_formula_is_a_member_only_where_all_are(make_vote_log: Make) -> None:
    rows = [
        {
            "judge": judge,
            "shown_first": side,
            "choice": choice,
            "simulated": judge == "f",
            "label": "target",
        }
        for judge, votes in (("a", TARGET), ("b", TARGET), ("f", TIE))
        for side, choice in votes.items()
    ]
    found = STATISTICS["jury_accuracy"](tallies=count_votes(make_vote_log(rows)))
    assert found["votes_per_pair"].to_list() == [4, 4]
    assert found["simulated"].to_list() == [False, False]
