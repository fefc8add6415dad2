from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.simulation.traits import Traits
from tasks.statistics.excess_conflict import excess_conflict

Make = Callable[..., Any]
Order = list[str]
NAMES = ["within_order_agreement", "across_order_agreement", "excess_conflict"]
VERDICT = {
    ("anchor", "first"): "A1",
    ("anchor", "second"): "A2",
    ("target", "first"): "A2",
    ("target", "second"): "A1",
    ("anchor", "tie"): "tie",
    ("target", "tie"): "tie",
}


def votes(items: list[tuple[Order, Order]], **more: object) -> list[dict[str, Any]]:
    return [
        {"sample": f"s{n:03}", "shown_first": side, "repeat": repeat, "choice": choice, **more}
        for n, orders in enumerate(items)
        for side, choices in zip(("anchor", "target"), orders, strict=True)
        for repeat, choice in enumerate(choices)
    ]


def measured(log: pl.DataFrame, perturbation: str | None = None) -> list[dict[str, Any]]:
    rows = excess_conflict(tallies=count_votes(log)).to_dicts()
    mine = {row["statistic"]: row for row in rows if row["perturbation"] == perturbation}
    return [mine[name] for name in NAMES]


def test_docstring_example(make_vote_log: Make) -> None:
    # With the target first, a vote for the second slot is one for the anchor.
    item = (["first", "first", "second"], ["first", "first", "second"])
    found = [row["estimate"] for row in measured(make_vote_log(votes([item])))]
    assert found == pytest.approx([1 / 3, 4 / 9, -1 / 9])


def test_a_judge_of_one_slot_conflicts_without_noise(make_vote_log: Make) -> None:
    rows = measured(make_vote_log(votes([(["first"] * 2, ["first"] * 2)] * 12)))
    assert [row["estimate"] for row in rows] == [1.0, 0.0, 1.0]
    assert (rows[2]["n"], rows[2]["p_value"]) == (12, None)
    firm = measured(make_vote_log(votes([(["first"] * 2, ["second"] * 2)] * 12)))
    assert [row["estimate"] for row in firm] == [1.0, 1.0, 0.0]


def test_items_need_two_valid_votes_in_each_order(make_vote_log: Make) -> None:
    items = [
        (["first", "tie"], ["tie", "tie"]),
        (["first", "invalid"], ["tie", "tie"]),
        (["first", "tie"], ["tie"]),
    ]
    rows = measured(make_vote_log(votes(items)))
    assert {(row["n"], row["dropped"]) for row in rows} == {(1, 2)}
    assert [row["estimate"] for row in rows] == [0.5, 0.5, 0.0]
    for row in measured(make_vote_log(votes(items[1:]))):
        assert (row["estimate"], row["reason"]) == (
            None,
            "no pair has two valid votes in each order",
        )
    assert excess_conflict(tallies=count_votes(make_vote_log([]))).is_empty()


def test_votes_asked_one_by_one_are_null(make_vote_log: Make) -> None:
    rows = votes([(["first", "tie", "tie"], ["tie", "tie", "tie"])] * 2)
    rows[-1] |= {"choice": None, "stopped": "lossless"}
    for row in measured(make_vote_log(rows)):
        assert row["estimate"] is None
        assert row["reason"].startswith("later votes depended on earlier votes")


CHOICE = st.sampled_from(["first", "second", "tie"])
ORDER = st.lists(CHOICE, min_size=2, max_size=4)


@settings(max_examples=10)
@given(st.lists(st.tuples(ORDER, ORDER), min_size=1, max_size=8))
def test_against_all_pairs_of_votes(make_vote_log: Make, items: list[tuple[Order, Order]]) -> None:
    within, across = [], []
    for orders in items:
        a, b = (
            [VERDICT[side, choice] for choice in order]
            for side, order in zip(("anchor", "target"), orders, strict=True)
        )
        own = [np.mean([x == y for x, y in combinations(order, 2)]) for order in (a, b)]
        within.append(np.mean(own))
        across.append(np.mean([x == y for x, y in product(a, b)]))
    found = [row["estimate"] for row in measured(make_vote_log(votes(items)))]
    expected = [np.mean(within), np.mean(across), np.mean(within) - np.mean(across)]
    assert found == pytest.approx(expected)


def control(traits: Traits, seed: int, items: int = 142, votes: int = 6) -> pl.DataFrame:
    log = simulate(
        traits, kind="promote", beta=0, items=items, votes=votes, seed=seed, judge=f"s/{seed}"
    )
    return log.filter(pl.col("arm") == "control")


@pytest.mark.slow
def test_the_interval_leaves_zero_as_often_as_it_should() -> None:
    flat, pulled = (Traits(omega=1.5, nu=0.5, kappa=kappa) for kappa in (0.0, 1.0))
    rejected = []
    for traits in (flat, pulled):
        logs = [control(traits, seed) for seed in range(100)]
        rows = excess_conflict(tallies=count_votes(VoteLog.of(pl.concat(logs))))
        excess = rows.filter(statistic="excess_conflict")
        rejected.append((~excess.select(pl.lit(0.0).is_between("low", "high")).to_series()).mean())
    assert rejected[0] <= 0.115  # .05 and three standard errors at 100 studies
    assert rejected[1] > 0.9


def permutation_p(tallies: pl.DataFrame, draws: int, seed: int) -> float:
    """Exchange the labels of the orders within items: multivariate hypergeometric by two draws."""
    random = np.random.default_rng(seed)
    counts = tallies.select(
        f"{verdict}_{order}" for order in ("12", "21") for verdict in ("anchor", "tie", "target")
    ).to_numpy()
    a, b = counts[:, :3], counts[:, 3:]

    def excess(a: Any, b: Any) -> Any:
        def alike(c: Any) -> Any:
            n = c.sum(axis=-1)
            return (c * (c - 1)).sum(axis=-1) / (n * (n - 1))

        cross = (a * b).sum(axis=-1) / (a.sum(axis=-1) * b.sum(axis=-1))
        return ((alike(a) + alike(b)) / 2 - cross).mean(axis=-1)

    pool, n = a + b, a.sum(axis=1)
    size = (draws, len(n))
    first = random.hypergeometric(pool[:, 0], pool[:, 1] + pool[:, 2], n, size)
    second = random.hypergeometric(pool[:, 1], pool[:, 2], n - first)
    drawn = np.stack([first, second, n - first - second], axis=-1)
    extreme = np.abs(excess(drawn, pool - drawn)) >= abs(excess(a, b)) - 1e-12
    return float((1 + extreme.sum()) / (1 + draws))


@pytest.mark.slow
def test_its_error_agrees_with_permuting_the_orders() -> None:
    for kappa in (0.0, 0.3, 0.5):
        log = VoteLog.of(control(Traits(omega=1.5, nu=0.5, kappa=kappa), seed=4, items=400))
        tallies = count_votes(log)
        rows = excess_conflict(tallies=tallies).filter(statistic="excess_conflict")
        row = rows.row(0, named=True)
        p = 2 * stats.t.sf(abs(row["estimate"]) / row["standard_error"], row["clusters"] - 1)
        assert p == pytest.approx(permutation_p(tallies, 2000, 1), abs=0.04)


def test_whims_of_the_prompt_are_conflict_too() -> None:
    log = control(Traits(omega=1.5, nu=0.5, psi=1.0), seed=5, items=3000)
    row = measured(VoteLog.of(log))[2]
    # Nothing favours a slot here, so this is no test of position bias, and prints no p-value.
    assert row["low"] > 0
    assert row["p_value"] is None
