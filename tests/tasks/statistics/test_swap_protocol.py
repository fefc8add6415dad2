from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.aggregate import count_votes
from tasks.statistics.position_consistency import position_consistency
from tasks.statistics.swap_protocol import swap_protocol

Make = Callable[..., Any]
NAMES = ["swap_win_rate", "swap_tie_rate", "swap_inconsistent_rate"]
CHOICE = st.sampled_from(["first", "second", "tie", "invalid", None])
# Votes with the anchor first and with the target first: what the target gets, and how.
OUTCOME = {
    ("second", "first"): "win",
    ("first", "second"): "loss",
    ("tie", "tie"): "tie",
    ("first", "first"): "clash",
    ("second", "second"): "clash",
    ("first", "tie"): "clash",
    ("tie", "first"): "clash",
    ("second", "tie"): "clash",
    ("tie", "second"): "clash",
}


def measured(log: pl.DataFrame, perturbation: str | None = None) -> list[dict[str, Any]]:
    rows = swap_protocol(tallies=count_votes(log)).to_dicts()
    mine = {row["statistic"]: row for row in rows if row["perturbation"] == perturbation}
    return [mine[name] for name in NAMES]


def test_docstring_example(make_vote_log: Make, votes: Make) -> None:
    pairs = [("second", "first"), ("tie", "tie"), ("first", "first"), ("second", "tie")]
    rows = measured(make_vote_log(votes(pairs)))
    assert [row["estimate"] for row in rows] == [0.625, 0.75, 0.5]
    assert [row["hits"] for row in rows] == [None, 3, 2]


@pytest.mark.parametrize("pair", OUTCOME)
def test_each_pair_of_votes(make_vote_log: Make, votes: Make, pair: tuple[str, str]) -> None:
    rows = measured(make_vote_log(votes([pair])))
    expected = {"win": (1, 0, 0), "loss": (0, 0, 0), "tie": (0.5, 1, 0), "clash": (0.5, 1, 1)}
    assert tuple(row["estimate"] for row in rows) == expected[OUTCOME[pair]]


@pytest.mark.parametrize("lost", ["invalid", "abstain", "ambiguous", None])
def test_an_error_is_no_tie(make_vote_log: Make, votes: Make, lost: str | None) -> None:
    for row in measured(make_vote_log(votes([("second", "first"), (lost, "first")]))):
        assert (row["n"], row["dropped"]) == (1, 1)
    for row in measured(make_vote_log(votes([(lost, "first"), (lost, lost)]))):
        assert (row["estimate"], row["n"], row["dropped"]) == (None, 0, 2)
        assert row["reason"].startswith("nothing qualifies: ")
    assert swap_protocol(tallies=count_votes(make_vote_log([]))).is_empty()


def test_repeats_and_arms(make_vote_log: Make, votes: Make) -> None:
    log = make_vote_log(
        [
            *votes([("second", "first")]),
            *votes([("first", "second")], repeat=1),
            *votes([("second", "first")], arm="experimental"),
            *votes([("tie", "tie")], arm="sham"),
        ]
    )
    assert (measured(log)[0]["estimate"], measured(log)[0]["n"]) == (0.5, 2)
    assert measured(log, "boast")[0]["estimate"] == 1.0


def test_votes_asked_one_by_one_count_once(make_vote_log: Make, votes: Make) -> None:
    rows = [*votes([("second", "first")] * 2), *votes([("first", "second")] * 2, repeat=1)]
    rows[-1] |= {"choice": None, "stopped": "pair"}
    assert [r["estimate"] for r in measured(make_vote_log(rows))] == [1.0, 0.0, 0.0]


@settings(max_examples=12)
@given(st.lists(st.tuples(CHOICE, CHOICE), min_size=1, max_size=20))
def test_against_counting(
    make_vote_log: Make, votes: Make, pairs: list[tuple[str | None, str | None]]
) -> None:
    log = make_vote_log(votes(pairs))
    win, tie, clash = measured(log)
    named = [OUTCOME[a, b] for a, b in pairs if a and b and (a, b) in OUTCOME]
    if not named:
        assert win["estimate"] is None
        return
    share = {name: named.count(name) / len(named) for name in ("win", "tie", "clash")}
    assert win["estimate"] == pytest.approx(share["win"] + (share["tie"] + share["clash"]) / 2)
    assert tie["estimate"] == pytest.approx(share["tie"] + share["clash"])
    consistent = position_consistency(tallies=count_votes(log)).filter(
        statistic="position_consistency"
    )
    assert clash["estimate"] == pytest.approx(1 - consistent["estimate"].item())
