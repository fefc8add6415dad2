from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.drift.canary import canary, null_of


def excess(base: list[str], new: list[str]) -> float:
    """Second implementation: shares of equal pairs, pair by pair."""

    def within(side: list[str]) -> float:
        return float(np.mean([a == b for a, b in combinations(side, 2)]))

    across = float(np.mean([a == b for a in base for b in new]))
    return within(base) + within(new) - 2 * across


def counts(prompts: list[tuple[list[str], list[str]]]) -> pl.DataFrame:
    rows = [
        {"item": f"i{i}", "outcome": o, "base": base.count(o), "new": new.count(o)}
        for i, (base, new) in enumerate(prompts)
        for o in sorted({*base, *new})
    ]
    return pl.DataFrame(rows).with_columns(
        dataset=pl.lit("d"), judge=pl.lit("j"), prompt=pl.lit("p"), wave=pl.lit("w")
    )


def test_by_hand() -> None:
    row: dict[str, Any] = canary(counts([(["a", "a"], ["b", "b"])])).row(0, named=True)
    # W = 1, 1, X = 0; of 6 ways to deal, 2 are as far: 1/3.
    assert (row["estimate"], row["n"], row["dropped"]) == (2.0, 1, 0)
    assert row["p_value"] == pytest.approx(1 / 3)
    assert row["method"] == "permutation, exhaustive"


OUTCOMES = st.lists(st.sampled_from("abc"), min_size=2, max_size=4)


@settings(max_examples=40)
@given(prompts=st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=1, max_size=3))
def test_every_way_to_deal_by_second_implementation(
    prompts: list[tuple[list[str], list[str]]],
) -> None:
    found = canary(counts(prompts)).row(0, named=True)
    observed = [excess(base, new) for base, new in prompts]
    assert found["estimate"] == pytest.approx(np.mean(observed))
    sums = np.zeros(1)
    for base, new in prompts:
        pooled = base + new
        dealt = [
            excess(
                [pooled[i] for i in range(len(pooled)) if i not in chosen],
                [pooled[i] for i in chosen],
            )
            for chosen in combinations(range(len(pooled)), len(new))
        ]
        sums = np.add.outer(sums, np.array(dealt)).ravel()
    expected = (sums >= sum(observed) - 1e-9).mean()
    assert found["p_value"] == pytest.approx(expected)


def test_draws_agree_with_all_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [(["a", "a", "b", "a"], ["a", "b"]), (["a", "b", "b", "b"], ["a", "a"])] * 2
    exact = canary(counts(prompts))["p_value"][0]
    monkeypatch.setattr("tasks.drift.canary.EXHAUSTIVE", 1)
    # The first draws leave no doubt that p is not small.
    drawn = canary(counts(prompts), seed=3, draws=40_000).row(0, named=True)
    assert drawn["method"] == "permutation, 9999 draws"
    assert drawn["p_value"] == pytest.approx(exact, abs=4 * (exact / 9999) ** 0.5)
    assert canary(counts(prompts), seed=3).equals(canary(counts(prompts[::1]), seed=3))


def test_a_small_p_rests_on_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two of six ways split each prompt by outcome: 1/3 to the power of five, 41 of 9999 draws.
    prompts = [(["a", "a"], ["b", "b"])] * 5
    assert canary(counts(prompts))["p_value"][0] == pytest.approx(3.0**-5)
    monkeypatch.setattr("tasks.drift.canary.EXHAUSTIVE", 1)
    drawn = canary(counts(prompts), seed=3, draws=40_000).row(0, named=True)
    assert drawn["method"] == "permutation, 40000 draws"
    assert drawn["p_value"] == pytest.approx(3.0**-5, abs=4 * (3.0**-5 / 40_000) ** 0.5)


@pytest.mark.parametrize(
    ("prompts", "dropped"), [([(["a"], ["a", "a"])], 1), ([(["a", "b"], ["a"])] * 3, 3)]
)
def test_prompts_asked_once_are_dropped(prompts: Any, dropped: int) -> None:
    row = canary(counts(prompts)).row(0, named=True)
    assert (row["estimate"], row["p_value"], row["n"], row["dropped"]) == (None, None, 0, dropped)


def test_unchanged_prompts_say_nothing() -> None:
    row = canary(counts([(["a"] * 8, ["a", "a"])] * 100)).row(0, named=True)
    assert (row["estimate"], row["p_value"]) == (0.0, 1.0)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(2, 4))
def test_dealing_anew_moves_nothing_in_the_mean(pooled: list[int], n_new: int) -> None:
    if sum(pooled) - n_new < 2:
        return
    null = null_of(tuple(pooled), n_new)
    assert null.chances.sum() == pytest.approx(1)
    # M is unbiased: its mean over all ways is 0.
    assert null.values @ null.chances == pytest.approx(0, abs=1e-12)
