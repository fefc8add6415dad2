from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]
from scipy.special import xlogy  # type: ignore[import-untyped]
from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
    confint_proportions_2indep,
    proportion_confint,
)

from tasks.inference.intervals import (
    FOUND,
    common_difference,
    proportions,
    ratios,
    table_moments,
    tango,
    wilson,
)

Z2 = 1.959963984540054**2
COUNTS = st.integers(1, 12)
Interval = namedtuple("Interval", FOUND)


def sums(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def cluster_wilson(hits: np.ndarray, totals: np.ndarray) -> Any:
    """Return the estimate for one cell, from its cluster sums."""
    return Interval(*proportions(table_moments(hits[:, None], totals[:, None])).row(0))


def cluster_ratio(num: np.ndarray, den: np.ndarray, *, bounded: bool = False) -> Any:
    return Interval(*ratios(table_moments(num[:, None], den[:, None]), bounded=bounded).row(0))


def test_wilson_by_hand() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    # At the ends the bound is n / (n + z^2), its mirror image z^2 / (n + z^2).
    assert wilson(0, 10) == pytest.approx((0, Z2 / (10 + Z2)), abs=1e-15)
    assert wilson(10, 10) == pytest.approx((10 / (10 + Z2), 1), abs=1e-15)
    assert wilson(0, 10)[1] == pytest.approx(0.27753, abs=5e-6)


@pytest.mark.parametrize(
    ("hits", "n", "level"), [(0, 1, 0.95), (1, 7, 0.9), (3, 7, 0.99), (100, 142, 0.95), (9, 9, 0.5)]
)
def test_wilson_against_statsmodels(hits: int, n: int, level: float) -> None:
    expected = proportion_confint(hits, n, alpha=1 - level, method="wilson")
    assert wilson(hits, n, level) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("hits", "n", "level"), [(1, 0, 0.95), (-1, 5, 0.95), (6, 5, 0.95), (1, 5, 0.0), (1, 5, 1.0)]
)
def test_wilson_refuses_what_is_no_proportion(hits: float, n: float, level: float) -> None:
    with pytest.raises(ValueError, match=r"hits \(.*\) must lie in 0\.\.n"):
        wilson(hits, n, level)


def paired(up: int, down: int, n: float) -> tuple[float, float]:
    low, high = tango(sums(up / n), sums(down / n), sums(n))
    return low.item(), high.item()


def test_tango_by_published_numbers_and_at_the_ends() -> None:
    # Fagerland, Lydersen and Laake (2014), Stat. Med. 33, 2850-2875: 1 of 21 rose and 7 fell.
    assert paired(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    # None moved: Wilson's interval of none. All rose: the likelihood of the shift d is largest
    # where (1 - d) / 2 fall, so n (1 - d)^2 = z^2 (1 - d^2).
    assert paired(0, 0, 24) == pytest.approx((-Z2 / (24 + Z2), Z2 / (24 + Z2)), abs=1e-12)
    assert paired(24, 0, 24) == pytest.approx(((24 - Z2) / (24 + Z2), 1), abs=1e-12)


@settings(max_examples=40)
@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 30))
def test_tango_holds_the_shifts_that_a_score_test_does_not_reject(
    up: int, down: int, same: int
) -> None:
    n = up + down + same
    if n == 0:
        return
    low, high = paired(up, down, n)
    assert -1 <= low <= (up - down) / n <= high <= 1
    assert paired(down, up, n) == pytest.approx((-high, -low), abs=1e-9)
    for end in (low, high):
        if abs(end) < 1 - 1e-9:
            score = (up - down - n * end) / np.sqrt(n * variance_under(end, up, down, same))
            assert abs(score) == pytest.approx(Z2**0.5, rel=1e-3)


def variance_under(shift: float, up: int, down: int, same: int) -> float:
    """Return a pair's variance if this is the shift: the likelihood is maximised numerically."""

    def less_likely(fall: float) -> Any:
        logs = xlogy(up, fall + shift) + xlogy(down, fall) + xlogy(same, 1 - 2 * fall - shift)
        return -logs

    between = (max(0.0, -shift), (1 - shift) / 2)
    found = minimize_scalar(
        less_likely, bounds=between, method="bounded", options={"xatol": 1e-12}
    ).x
    return float(2 * found + shift * (1 - shift))


def test_cluster_wilson_by_hand() -> None:
    # R = 3/6; u = 1, -1, 0, so var = 3/2 * 2/36 = 1/12 against .25/6 = 1/24: deff 2, n_eff 3.
    # Wilson(1.5, 3): .5 -+ 1.96 sqrt(.25/3 + z^2/36) / (1 + z^2/3) = .5 -+ .3747.
    result = cluster_wilson(sums(2, 0, 1), sums(2, 2, 2))
    assert result.estimate == 0.5
    assert (result.low, result.high) == pytest.approx((0.1253, 0.8747), abs=5e-5)
    assert result.method == "cluster-adjusted Wilson"
    assert result.p_value is None


def test_cluster_wilson_at_the_ends_by_hand() -> None:
    # deff = (9 + 1) / 4 = 2.5, n_eff = 1.6: z^2 / (1.6 + z^2) = 3.8415 / 5.4415 = .70596.
    none = cluster_wilson(sums(0, 0), sums(3, 1))
    assert (none.estimate, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(0.70596, abs=5e-6)
    every = cluster_wilson(sums(3, 1), sums(3, 1))
    assert (every.estimate, every.high) == (1.0, 1.0)
    assert every.low == pytest.approx(1 - 0.70596, abs=5e-6)


@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_cluster_wilson_of_independent_items_is_wilson(hits: list[bool]) -> None:
    k, n = sum(hits), len(hits)
    result = cluster_wilson(sums(*hits), np.ones(n))
    # With one item a cluster var = R (1 - R) / (n - 1), so deff = n / (n - 1), but 1 at the ends.
    effective = n if k in {0, n} else n - 1
    expected = proportion_confint(k / n * effective, effective, method="wilson")
    assert (result.low, result.high) == pytest.approx(expected, abs=1e-9)


def test_agreeing_clusters_do_not_narrow_the_interval() -> None:
    # No variance between clusters: deff would be 0, but is at least 1.
    result = cluster_wilson(sums(1, 1, 1), sums(2, 2, 2))
    expected = proportion_confint(3, 6, method="wilson")
    assert (result.low, result.high) == pytest.approx(expected, abs=1e-12)


def test_cluster_ratio_by_hand() -> None:
    # R = 2/4; u = .5, -.5, 0, 0; SE = sqrt(4/3 * .5) / 4 = .204124; t_.975,3 = 3.182446.
    result = cluster_ratio(sums(1, 0, 0.5, 0.5), np.ones(4))
    assert result.estimate == 0.5
    assert result.standard_error == pytest.approx(0.204124, abs=5e-7)
    assert (result.low, result.high) == pytest.approx((-0.149613, 1.149613), abs=5e-6)
    # t = .5 / .204124 = 2.449490 on 3 degrees of freedom.
    assert result.p_value == pytest.approx(2 * stats.t.sf(2.449490, 3), abs=1e-6)


@given(st.data(), st.integers(2, 8))
def test_cluster_ratio_against_least_squares(
    club_sandwich: Callable[..., tuple[float, float, float]], data: st.DataObject, clusters: int
) -> None:
    # A mean with CR2 covariance is the same ratio, error, t and df.
    items = data.draw(
        st.lists(
            st.tuples(st.integers(0, clusters - 1), st.integers(-6, 6)),
            min_size=clusters,
            max_size=30,
        )
    )
    group = np.array([*range(clusters), *(g for g, _ in items)])
    num = np.array([*range(clusters), *(n for _, n in items)], dtype=float)
    den = np.ones(len(group))
    result = cluster_ratio(sums(*np.bincount(group, num)), sums(*np.bincount(group, den)))
    if result.standard_error is None:
        return
    mean, error, df = club_sandwich(num, den, group)
    half = stats.t.ppf(0.975, df) * error
    assert result.estimate == pytest.approx(mean, abs=1e-9)
    assert (result.standard_error, result.df) == pytest.approx((error, df), rel=1e-6)
    assert (result.low, result.high) == pytest.approx(
        (mean - half, mean + half), rel=1e-6, abs=1e-9
    )
    assert result.p_value == pytest.approx(
        2 * stats.t.sf(abs(mean) / error, df), rel=1e-5, abs=1e-12
    )


@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 10**6))
def test_clusters_of_one_size_against_weighted_least_squares(
    clusters: int, size: int, seed: int
) -> None:
    # statsmodels' G / (G - 1) and t with G - 1 degrees of freedom, which hold for these.
    group = np.repeat(np.arange(clusters), size)
    num = np.random.default_rng(seed).normal(0.2, 1.0, clusters * size)
    result = cluster_ratio(np.bincount(group, num), np.full(clusters, float(size)))
    fit = sm.WLS(num, np.ones(len(num))).fit(
        cov_type="cluster", cov_kwds={"groups": group}, use_t=True
    )
    assert (result.estimate, result.df) == pytest.approx((fit.params[0], clusters - 1), abs=1e-9)
    assert result.standard_error == pytest.approx(fit.bse[0], rel=1e-9)
    assert (result.low, result.high) == pytest.approx(tuple(fit.conf_int()[0]), rel=1e-9, abs=1e-9)
    assert result.p_value == pytest.approx(fit.pvalues[0], rel=1e-6, abs=1e-12)


def test_clusters_without_residual_get_newcombe_by_hand() -> None:
    # Target in all of 4, before in none: Wilson [4/(4 + z^2), 1] = [.510109, 1] and
    # [0, .489891]; low = 1 - sqrt(2) * .489891 = .307190, high = 1 + 0.
    result = cluster_ratio(np.ones(4), np.ones(4), bounded=True)
    assert result.method == "Newcombe"
    assert result.estimate == 1.0
    assert (result.low, result.high) == pytest.approx((0.307190, 1.0), abs=5e-7)
    # Of 16 flips of four signs, only all up and all down are as far from 0: p = 2/16.
    assert result.p_value == 0.125
    assert result.standard_error is None


@pytest.mark.parametrize("votes", [1.0, 6.0])
def test_clusters_of_which_none_moved_by_hand(votes: float) -> None:
    # None of 4 rose, none fell: each has Wilson's upper end, z^2 / (4 + z^2) = 3.841459 / 7.841459,
    # however many votes there are in a cluster.
    result = cluster_ratio(np.zeros(4), np.full(4, votes), bounded=True)
    assert (result.low, result.high) == pytest.approx((-0.489891, 0.489891), abs=5e-7)
    assert result.p_value == 1.0


@pytest.mark.parametrize("n", [10, 24, 100, 1000])
def test_clusters_that_move_are_rarely_unseen_beyond_the_interval(n: int) -> None:
    # If a share w of all clusters moved by 1, the largest amount, none of n would be among them in
    # (1 - w)^n of studies; findings need ten clusters.
    _, high = common_difference(np.array([0.0]), np.array([float(n)]))
    assert (1 - high[0]) ** n < 0.05


@pytest.mark.parametrize("difference", [1.0, 0.75, 0.5, 0.0, -0.25, -1.0])
def test_newcombe_against_statsmodels(difference: float) -> None:
    n = 20
    result = cluster_ratio(np.full(n, difference), np.ones(n), bounded=True)
    parts = max(difference, 0) * n, n, max(-difference, 0) * n, n
    expected = confint_proportions_2indep(*parts, compare="diff", method="newcomb")
    assert (result.low, result.high) == pytest.approx(expected, abs=1e-9)


def test_too_few_clusters_are_null_with_a_reason() -> None:
    for result in (cluster_wilson(sums(), sums()), cluster_ratio(sums(), sums())):
        assert result.estimate is None
        assert result.reason == "nothing qualifies: the denominator is empty"
    for result in (cluster_wilson(sums(1), sums(3)), cluster_ratio(sums(1), sums(3))):
        assert result.estimate == pytest.approx(1 / 3)
        assert (result.low, result.high, result.p_value) == (None, None, None)
        assert result.reason == "a single cluster: no interval"
    same = cluster_ratio(np.ones(3), np.ones(3))
    assert (same.low, same.reason) == (None, "no variation between clusters: no interval")


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=2, max_size=20))
def test_intervals_hold_their_estimate(pairs: list[tuple[int, int]]) -> None:
    hits = sums(*(min(pair) for pair in pairs))
    totals = sums(*(max(pair) for pair in pairs))
    share = cluster_wilson(hits, totals)
    assert None not in (share.low, share.high)
    assert 0 <= (share.low or 0) <= (share.estimate or 0) <= (share.high or 0) <= 1
    shift = cluster_ratio(hits - 1, totals, bounded=True)
    assert None not in (shift.low, shift.high, shift.p_value)
    assert (shift.low or 0) <= (shift.estimate or 0) <= (shift.high or 0)
    assert 0 <= (shift.p_value or 0) <= 1
