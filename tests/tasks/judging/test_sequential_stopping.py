"""Stopping rules of methods.md, section 4."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.judging import Ballots, Votes
from tasks.aggregate import count_votes
from tasks.counting.verdicts import tally_votes
from tasks.judging.sequential_stopping import (
    PROBES,
    Schedule,
    deterministic_units,
    mark_stops,
    probes,
)

Make = Callable[..., Any]
SIDES = ("anchor", "target")
# x of each repeat in both orders -> the choice in that order
CHOICES = {
    ("anchor", 1): "second",
    ("anchor", -1): "first",
    ("target", 1): "first",
    ("target", -1): "second",
    ("anchor", 0): "tie",
    ("target", 0): "tie",
    ("anchor", None): "invalid",
    ("target", None): "invalid",
}
SIX = Schedule(6, "lossless")


def _ballots(make_ballots: Make, pairs: int = 1, repeats: int = 3, **more: Any) -> Any:
    return make_ballots(
        [
            {
                "ballot_id": f"{pair:03}{side}{repeat}",
                "pair_id": f"p{pair:03}",
                "shown_first": side,
                "repeat": repeat,
                **more,
            }
            for pair in range(pairs)
            for side in SIDES
            for repeat in range(repeats)
        ]
    )


def _votes(make_votes: Make, ballots: pl.DataFrame, xs: list[int | None]) -> Any:
    """Return the votes of one pair: xs in the order in which they are asked."""
    asked = ballots.sort("repeat", "shown_first").head(len(xs))
    return (
        make_votes(
            [
                {"ballot_id": ballot["ballot_id"], "choice": CHOICES[ballot["shown_first"], x]}
                for ballot, x in zip(asked.iter_rows(named=True), xs, strict=True)
            ]
        )
        if xs
        else Votes.empty()
    )


@pytest.mark.parametrize(
    ("rule", "xs", "stopped", "opened"),
    [
        # nothing is cast: the first pair of orders is next
        ("lossless", [], 0, 2),
        ("lossless", [1, 1], 0, 2),  # |2| is not more than the four that are left
        ("lossless", [1, 1, 1, 0], 2, 0),  # 3 > 2
        ("lossless", [1, 1, 1, -1], 0, 2),  # 2 is not more than 2
        ("lossless", [-1, -1, -1, -1], 2, 0),
        ("lossless", [1, 1, 1], 0, 1),  # no look in the middle of a pair
        ("lossless", [1, 1, 1, None], 0, 2),  # an invalid vote: go on
        ("lossless", [1] * 6, 0, 0),
        ("pair", [1, 1], 4, 0),
        ("pair", [1, 0], 0, 2),
        ("pair", [0, 0], 0, 2),  # a tie stops nothing
        ("pair", [1, -1, 1, 1], 2, 0),
        ("pair", [1, 0, 1, 0], 2, 0),
        ("pair", [-1, -1], 4, 0),
        ("none", [1, 1], 0, 4),
    ],
)
def test_rules(
    make_ballots: Make,
    make_votes: Make,
    *,
    rule: str,
    xs: list[int | None],
    stopped: int,
    opened: int,
) -> None:
    ballots = _ballots(make_ballots)
    marked = mark_stops(ballots, _votes(make_votes, ballots, xs), Schedule(6, rule))
    assert marked.height == 6
    assert (marked["stopped"] == rule).sum() == stopped
    assert marked["open"].sum() == opened
    assert not marked.filter("open", pl.col("stopped").is_not_null()).height


@settings(max_examples=50)
@given(xs=st.lists(st.sampled_from([-1, 0, 1, None]), min_size=6, max_size=6))
def test_lossless_loses_nothing(
    make_ballots: Make, make_votes: Make, make_vote_log: Make, xs: list[int | None]
) -> None:
    ballots = _ballots(make_ballots)
    used = 6
    for k in (2, 4):
        marked = mark_stops(ballots, _votes(make_votes, ballots, xs[:k]), SIX)
        if (marked["stopped"] == "lossless").any():
            used = k
            break

    def verdict(number: int) -> str | None:
        asked = ballots.sort("repeat", "shown_first").head(number)
        rows = [
            {
                "shown_first": b["shown_first"],
                "repeat": b["repeat"],
                "choice": CHOICES[b["shown_first"], x],
            }
            for b, x in zip(asked.iter_rows(named=True), xs[:number], strict=True)
        ]
        reported: str | None = tally_votes(count_votes(make_vote_log(rows)), "paper")["verdict"][0]
        return reported

    # Where nothing stopped, both are the same.
    assert used == 6 or verdict(used) == verdict(6)


def test_the_score_is_that_of_the_first_pair_where_votes_stopped(make_vote_log: Make) -> None:
    # target, tie | target, target | anchor and a ballot not needed
    log = make_vote_log(
        [
            {"shown_first": "anchor", "repeat": 0, "choice": "second"},
            {"shown_first": "target", "repeat": 0, "choice": "tie"},
            {"shown_first": "anchor", "repeat": 1, "choice": "second"},
            {"shown_first": "target", "repeat": 1, "choice": "first"},
            {"shown_first": "anchor", "repeat": 2, "choice": None, "stopped": "pair"},
            {"shown_first": "target", "repeat": 2, "choice": None, "stopped": "pair"},
        ]
    )
    verdicts = tally_votes(count_votes(log), "balanced")
    assert verdicts.select("score", "verdict", "votes", "valid_votes").rows() == [
        (0.75, "target", 6, 4)  # six by design, whatever was not needed
    ]
    everything = tally_votes(
        count_votes(log.with_columns(stopped=pl.lit(None, pl.String))), "balanced"
    )
    # means of the orders: 1 and .75
    assert everything["score"][0] == 0.875


def test_a_judge_that_always_agrees_is_asked_once_per_order(
    make_ballots: Make, make_votes: Make
) -> None:
    ballots = _ballots(make_ballots, pairs=60)
    asked = probes(ballots)
    assert asked.height == 2 * PROBES
    assert asked["repeat"].unique().to_list() == [0, 1]
    votes = make_votes([{"ballot_id": b, "choice": "first"} for b in asked["ballot_id"]])
    assert deterministic_units(ballots, votes)["judge"].to_list() == ["ada"]
    marked = mark_stops(ballots, votes, Schedule(6, probe=True))
    # the last ten pairs were not probed: one vote per order is left to ask
    assert marked.filter("open").select("repeat").unique().rows() == [(0,)]
    assert marked["open"].sum() == 20
    assert (marked["stopped"] == "deterministic").sum() == 60 * 6 - 200 - 20


@pytest.mark.parametrize(("differing", "expected"), [(1, ["ada"]), (2, [])])
def test_one_probe_in_a_hundred_may_differ(
    make_ballots: Make, make_votes: Make, differing: int, expected: list[str]
) -> None:
    ballots = _ballots(make_ballots, pairs=50)
    other = set(ballots.filter(pl.col("repeat") == 1)["ballot_id"].head(differing))
    votes = make_votes(
        [
            {"ballot_id": b, "choice": "second" if b in other else "first"}
            for b in probes(ballots)["ballot_id"]
        ]
    )
    assert deterministic_units(ballots, votes)["judge"].to_list() == expected


def test_fewer_than_a_hundred_probes_show_nothing(make_ballots: Make, make_votes: Make) -> None:
    ballots = _ballots(make_ballots, pairs=49)
    votes = make_votes([{"ballot_id": b} for b in probes(ballots)["ballot_id"]])
    assert deterministic_units(ballots, votes).is_empty()
    marked = mark_stops(Ballots.of(ballots), votes, Schedule(6, probe=True))
    assert marked["stopped"].null_count() == marked.height


@pytest.mark.parametrize("rule", ["lossless", "pair"])
def test_repeats_may_begin_anywhere(make_ballots: Make, make_votes: Make, rule: str) -> None:
    # Replicates count on from control.
    def stops(first: int) -> list[tuple[Any, ...]]:
        ballots = _ballots(make_ballots).with_columns(pl.col("repeat") + first)
        votes = _votes(make_votes, ballots, [1, 1, 1, 0])
        marked = mark_stops(Ballots.of(ballots), votes, Schedule(6, rule)).sort("ballot_id")
        return marked.select("shown_first", pl.col("repeat") - first, "stopped", "open").rows()

    assert stops(3) == stops(0)
    assert any(stopped for *_, stopped, _ in stops(3))


def test_repeats_are_probed_with_each_prompt(make_ballots: Make, make_votes: Make) -> None:
    one, other = (
        _ballots(make_ballots, pairs=60).with_columns(
            pl.col("ballot_id") + prompt, prompt=pl.lit(prompt)
        )
        for prompt in ("one", "other")
    )
    ballots = Ballots.of(pl.concat([one, other]))
    asked = probes(ballots)
    assert asked.height == 2 * 2 * PROBES
    # With the other prompt, repeats differ.
    differ = (asked["prompt"] == "other") & (asked["repeat"] == 1)
    choices = [
        {"ballot_id": b, "choice": ("first", "second")[d]}
        for b, d in zip(asked["ballot_id"], differ, strict=True)
    ]
    votes = make_votes(choices)
    assert deterministic_units(ballots, votes).rows() == [("ada", "one")]
    marked = mark_stops(ballots, votes, Schedule(6, probe=True))
    assert marked.filter(stopped="deterministic")["prompt"].unique().to_list() == ["one"]
