import numpy as np
import pytest
from scipy import stats

from tasks.inference.bootstrap import bca
from tasks.inference.quantiles import widened


def of(values: np.ndarray, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bound the mean of one cell, each value a cluster."""
    size = len(values)
    weights = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), draws) / size
    without = (values.sum() - values) / (size - 1)
    drawn = (weights @ values)[:, None]
    return bca(np.array([values.mean()]), drawn, without[:, None], np.array([float(size)]))


def test_against_scipy() -> None:
    values = np.random.default_rng(2).exponential(size=25)
    low, high = of(values, 40_000, 1)
    # scipy has no t: its level is that of the same tails.
    expected = stats.bootstrap(
        (values,),
        np.mean,
        method="BCa",
        n_resamples=40_000,
        rng=np.random.default_rng(3),
        confidence_level=widened(0.95, 25),
    ).confidence_interval
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), rel=0.02)


def test_what_cannot_be_known_is_no_number() -> None:
    point, few = np.array([0.5, np.nan, 0.5, 0.5]), np.full((9, 4), np.nan)
    drawn = np.linspace(0, 1, 100)[:, None] * np.ones(4)
    drawn[:60, 2] = np.nan
    low, high = bca(point, drawn, few, np.array([20.0, 20.0, 20.0, 1.0]))
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, True, True, True]
    assert low[0] < 0.05
    assert high[0] > 0.95


def test_the_interval_holds_the_estimate() -> None:
    values = np.array([0.0] * 18 + [1.0, 1.0])
    low, high = of(values, 500, 4)
    assert 0 <= low[0] <= 0.1 <= high[0] <= 1
