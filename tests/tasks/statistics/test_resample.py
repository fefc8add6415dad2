import numpy as np
import pytest

from tasks.statistics._resample import DRAWS, percentiles, resampled, weights


def test_a_draw_takes_as_many_clusters_as_there_are() -> None:
    drawn = weights(12, 500, 3)
    assert drawn.shape == (500, 12)
    assert set(drawn.sum(axis=1)) == {12.0}
    # multinomial: mean 1, variance 1 - 1/12
    assert drawn.mean(axis=0) == pytest.approx(np.ones(12), abs=0.2)
    assert drawn.var() == pytest.approx(11 / 12, abs=0.05)
    assert np.array_equal(weights(12, 500, 3), drawn)
    assert not np.array_equal(weights(12, 500, 4), drawn)


def test_totals_of_each_draw() -> None:
    totals = resampled(np.ones((7, 2)))
    assert totals.shape == (DRAWS, 2)
    assert set(totals.ravel()) == {7.0}


def test_percentiles_against_numpy() -> None:
    drawn = np.random.default_rng(1).normal(size=(999, 4))
    drawn[::3, 1] = np.nan
    drawn[:600, 2] = np.nan
    low, high = percentiles(np.array([0.0, 0.0, 0.0, np.nan]), drawn, 0.95)
    for column in (0, 1):
        expected = np.nanquantile(drawn[:, column], [0.025, 0.975])
        assert (low[column], high[column]) == pytest.approx(tuple(expected))
    # too few draws have it; there is no estimate
    assert np.isnan(low[2:]).all()
    assert np.isnan(high[2:]).all()


def test_an_interval_holds_its_estimate() -> None:
    low, high = percentiles(np.array([5.0]), np.zeros((10, 1)), 0.95)
    assert (low[0], high[0]) == (0.0, 5.0)
