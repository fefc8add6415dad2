from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.judging import CHOICES
from tasks.aggregate import count_votes
from tasks.statistics.repetition_stability import repetition_stability

Make = Callable[..., Any]
NAMES = ["repetition_stability", "repetition_stability_asked"]


def votes(orders: list[list[str | None]], **more: object) -> list[dict[str, Any]]:
    """Give the choices of an order of a sample: even ones show the anchor first."""
    return [
        {
            "sample": f"s{number // 2:03}",
            "shown_first": ("anchor", "target")[number % 2],
            "repeat": repeat,
            "choice": choice,
            **more,
        }
        for number, choices in enumerate(orders)
        for repeat, choice in enumerate(choices)
    ]


def measured(log: pl.DataFrame, perturbation: str | None = None) -> list[dict[str, Any]]:
    rows = repetition_stability(tallies=count_votes(log)).to_dicts()
    mine = {row["statistic"]: row for row in rows if row["perturbation"] == perturbation}
    return [mine[name] for name in NAMES]


def test_docstring_example(make_vote_log: Make) -> None:
    log = make_vote_log(votes([["first", "first", "second"], ["tie", "tie", "invalid"]]))
    stable, asked = measured(log)
    assert stable["estimate"] == pytest.approx(5 / 6)
    assert asked["estimate"] == pytest.approx(2 / 3)
    assert (stable["n"], stable["clusters"], stable["dropped"]) == (2, 1, 0)
    assert stable["reason"] == "a single cluster: no interval"


def test_orders_without_valid_votes_are_dropped(make_vote_log: Make) -> None:
    log = make_vote_log(
        votes([["first", "first"], ["invalid", "abstain"], ["tie", None], ["first", "tie"]])
    )
    stable, asked = measured(log)
    assert stable["estimate"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert asked["estimate"] == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)
    assert (stable["n"], stable["dropped"]) == (3, 1)


def test_nothing_repeated_is_null(make_vote_log: Make) -> None:
    for row in measured(make_vote_log(votes([["first"], ["first"], ["tie", "invalid"]]))):
        assert (row["estimate"], row["n"]) == (None, 0)
        assert row["reason"] == "no pair has two valid votes in the same order"
    assert repetition_stability(tallies=count_votes(make_vote_log([]))).is_empty()


def test_votes_asked_one_by_one_are_null(make_vote_log: Make) -> None:
    rows = votes([["first", "first"], ["second", "second"]])
    rows[-1] |= {"choice": None, "stopped": "pair"}
    other = votes([["first", "first"], ["second", "second"]], judge="bea")
    found = repetition_stability(tallies=count_votes(make_vote_log([*rows, *other])))
    by_judge = {row["judge"]: row for row in found.filter(statistic=NAMES[0]).to_dicts()}
    assert by_judge["ada"]["estimate"] is None
    assert by_judge["ada"]["reason"].startswith("later votes depended on earlier votes")
    assert by_judge["bea"]["estimate"] == 1.0


def test_arms_are_kept_apart(make_vote_log: Make) -> None:
    log = make_vote_log(
        [
            *votes([["first"] * 2]),
            *votes([["first", "tie"]], arm="experimental"),
            *votes([["first", "tie"]] * 2, arm="sham"),
        ]
    )
    assert [measured(log)[0]["estimate"], measured(log, "boast")[0]["estimate"]] == [1.0, 0.5]


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.sampled_from([*CHOICES, None]), min_size=1, max_size=5),
        min_size=1,
        max_size=12,
    )
)
def test_against_counting(make_vote_log: Make, orders: list[list[str | None]]) -> None:
    stable, asked = measured(make_vote_log(votes(orders)))
    counts = [Counter(c for c in order if c in ("first", "second", "tie")) for order in orders]
    if max(c.total() for c in counts) < 2:
        assert stable["estimate"] is asked["estimate"] is None
        return
    reported = [
        (max(c.values()), c.total(), len(o)) for c, o in zip(counts, orders, strict=True) if c
    ]
    assert stable["estimate"] == pytest.approx(sum(m / v for m, v, _ in reported) / len(reported))
    assert asked["estimate"] == pytest.approx(sum(m / n for m, _, n in reported) / len(reported))
    assert (stable["n"], stable["dropped"]) == (len(reported), len(orders) - len(reported))
    assert asked["estimate"] <= stable["estimate"] + 1e-12
    assert stable["estimate"] >= 1 / 3 - 1e-12
