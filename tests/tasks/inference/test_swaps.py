"""Swaps of labels, against every swap tried one by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.inference.permutation import DifferenceSums, JudgePairs, signs, swap_rates, swap_sums

PAIRS = JudgePairs(np.array([0, 0, 1]), np.array([1, 2, 2]))


def split(table: np.ndarray, whole: int) -> DifferenceSums:
    """Lay cluster sums of three judges out as sums by judge, and by pair after ``whole``."""
    return DifferenceSums(table[:whole], (table[:, PAIRS.first] - table[:, PAIRS.second])[whole:])


@settings(max_examples=30)
@given(st.lists(st.tuples(*[st.integers(-4, 4)] * 3), min_size=1, max_size=6), st.integers(0, 6))
def test_sums_by_brute_force(rows: list[tuple[int, ...]], whole: int) -> None:
    table = np.array(rows, float) / 4
    tested = swap_sums(PAIRS, split(table, min(whole, len(rows))))
    apart = table[:, PAIRS.first] - table[:, PAIRS.second]
    flips = np.array(list(product((-1, 1), repeat=len(rows))))
    expected = (np.abs(flips @ apart) >= np.abs(apart.sum(axis=0)) - 1e-9).mean(axis=0)
    assert tested.exhaustive.all()
    assert tested.p_value.tolist() == pytest.approx(expected.tolist())


def test_a_swap_that_leaves_nothing_counted_is_as_far() -> None:
    # Judge 0 counts in the first of two clusters only, judge 1 in the second only.
    hits = np.array([[1.0, 0, 0], [0, 0, 0]])
    counted = np.array([[1.0, 0, 1], [0, 1, 1]])
    totals = [
        table[:, PAIRS.first].sum(0) + table[:, PAIRS.second].sum(0) for table in (hits, counted)
    ]
    tested = swap_rates(PAIRS, split(hits, 1), split(counted, 1), (totals[0], totals[1]))
    # Rates 1/1 and 0/1. Swapping one cluster gives both to one judge; swapping both, its mirror.
    assert tested.p_value[0] == 1.0


def test_drawn_swaps_are_seeded_and_fair() -> None:
    one, same = (signs(30, range(4000), np.random.default_rng(5)) for _ in range(2))
    assert (one == same).all()
    assert set(np.unique(one)) == {-1, 1}
    assert np.abs(one.mean(axis=1)).max() < 0.08  # 5 standard errors


def test_clear_pairs_are_drawn_less_often() -> None:
    random = np.random.default_rng(6)
    table = random.normal([0, 0, 1], 1, (50, 3))
    tested = swap_sums(PAIRS, split(table, 50))
    assert tested.swaps.tolist() == [1000 if p > 0.1 else 9999 for p in tested.p_value]
    assert tested.p_value[1] == pytest.approx(1e-4, abs=5e-4)
    assert not tested.exhaustive.any()


@settings(max_examples=20)
@given(st.lists(st.tuples(*[st.integers(-4, 4)] * 2), min_size=1, max_size=6), st.booleans())
def test_a_pair_that_differs_in_few_clusters_has_all_its_swaps(
    rows: list[tuple[int, ...]], whole: bool
) -> None:
    # In 24 clusters more the third judge differs from both, who do not.
    few = np.array([(a, b, 0) for a, b in rows], float) / 4
    table = np.vstack([few, np.tile([0.25, 0.25, 1.0], (24, 1))])
    flips = np.array(list(product((-1, 1), repeat=len(rows))))
    apart = few[:, 0] - few[:, 1]
    expected = (np.abs(flips @ apart) >= abs(apart.sum()) - 1e-9).mean()
    tested = swap_sums(PAIRS, split(table, len(table) * whole))
    assert tested.p_value[0] == pytest.approx(expected)
    differ = int((apart != 0).sum())
    assert tested.exhaustive.tolist() == [differ > 0, False, False]
    if differ:
        assert tested.swaps[0] == 2**differ
    # Rates of which all count: the same differences over a constant.
    counted = np.ones_like(table)
    totals = [
        side[:, PAIRS.first].sum(0) + side[:, PAIRS.second].sum(0) for side in (table, counted)
    ]
    parts = split(table, len(table) * whole), split(counted, len(table) * whole)
    rates = swap_rates(PAIRS, *parts, (totals[0], totals[1]))
    assert rates.p_value[0] == pytest.approx(expected)
