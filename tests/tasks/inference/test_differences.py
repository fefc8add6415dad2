"""Differences of two ratios, t intervals, and Newcombe's interval from those of both terms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from tasks.inference.intervals import newcombe, t_interval, wilson
from tasks.inference.linearised_errors import correction, ratio_difference

CLUSTER = st.tuples(*(st.integers(0, 5) for _ in range(4)), st.integers(1, 6))


@given(st.lists(CLUSTER, min_size=2, max_size=12))
def test_a_difference_of_ratios_by_its_formula(rows: list[tuple[int, ...]]) -> None:
    a, b, c, d, sizes = np.array(rows, float).T
    found = ratio_difference((a, b), (c, d), sizes)
    if not b.sum() or not d.sum():
        assert math.isnan(float(found.estimate))
        return
    first, second = a.sum() / b.sum(), c.sum() / d.sum()
    square = sum(
        ((x - first * y) / b.sum() - (z - second * w) / d.sum()) ** 2 / (1 - n / sizes.sum())
        for x, y, z, w, n in rows
    )
    assert float(found.estimate) == pytest.approx(first - second)
    assert float(found.error) == pytest.approx(math.sqrt(square), abs=1e-12)
    assert float(found.df) == float(correction(sizes).df)


def test_cells_in_one_array_are_as_cells_side_by_side() -> None:
    random = np.random.default_rng(4)
    a, b, c, d, sizes = random.integers(0, 9, (5, 12, 3)).astype(float)
    beside = ratio_difference((a, b), (c, d), sizes)
    flat = [each.T.ravel() for each in (a, b, c, d, sizes)]
    joined = ratio_difference(
        (flat[0], flat[1]), (flat[2], flat[3]), flat[4], np.array([0, 12, 24, 36])
    )
    for one, other in zip(beside, joined, strict=True):
        assert one.tolist() == pytest.approx(other.tolist())


@given(st.floats(-9, 9), st.floats(0.01, 9), st.floats(1, 200), st.floats(0.5, 0.99))
def test_t_intervals_by_scipy(estimate: float, error: float, df: float, level: float) -> None:
    each = (np.array([value]) for value in (estimate, error, df))
    low, high, p_value = (float(found[0]) for found in t_interval(*each, level))
    assert (low, high) == pytest.approx(student.interval(level, df, estimate, error), rel=1e-6)
    assert p_value == pytest.approx(2 * student.sf(abs(estimate / error), df), rel=1e-6)


def test_without_an_error_there_is_no_t_interval() -> None:
    ends = t_interval(np.array([1.0, 1.0]), np.array([0.0, 1.0]), np.array([5.0, np.nan]))
    assert all(np.isnan(end).all() for end in ends)


# Newcombe (1998), table II, method 10.
@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((5, 56), (0, 29), -0.0381, 0.1926),
    ],
)
def test_newcombe_as_published(
    one: tuple[int, int], other: tuple[int, int], low: float, high: float
) -> None:
    terms = (np.array([hits / n, *wilson(hits, n)]) for hits, n in (one, other))
    found = [round(float(end), 4) for end in newcombe(*terms)]
    assert found == [low, high]
