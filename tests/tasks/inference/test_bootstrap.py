import numpy as np
import pytest

from tasks.inference.bootstrap import AT_ONCE, DRAWS, percentiles, resampled, weights


def drawn(clusters: int, draws: int, seed: int) -> np.ndarray:
    return np.concatenate(list(weights(clusters, draws, seed)))


@pytest.mark.parametrize("clusters", [40, AT_ONCE // 700])
def test_each_draw_has_as_many_clusters_as_there_are(clusters: int) -> None:
    found = drawn(clusters, 1500, 7)
    assert found.shape == (1500, clusters)
    assert (found.sum(axis=1) == clusters).all()
    # binomial(n, 1/n): mean 1, variance 1 - 1/n; standard error of a column's mean .026
    assert abs(found[:, 0].mean() - 1) < 0.12
    assert abs(found.var() - (1 - 1 / clusters)) < 0.05


def test_draws_that_are_made_apart_differ() -> None:
    first, second, *_ = weights(AT_ONCE // 10, 30, 7)
    assert not np.array_equal(first, second)


def test_a_seed_gives_the_same_draws_and_nobody_can_change_them() -> None:
    next(weights(5, 10, 1))[:] = 0
    assert np.array_equal(drawn(5, 10, 1), drawn(5, 10, 1))
    assert (drawn(5, 10, 1).sum(axis=1) == 5).all()
    assert not np.array_equal(drawn(5, 10, 1), drawn(5, 10, 2))


def test_the_spread_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=(200, 1))
    means = resampled(values) / 200
    assert abs(means.std() / (values.std() / 200**0.5) - 1) < 0.05


def test_totals_of_each_draw() -> None:
    totals = resampled(np.ones((7, 2)))
    assert totals.shape == (DRAWS, 2)
    assert set(totals.ravel()) == {7.0}


def test_percentiles_against_numpy() -> None:
    found = np.random.default_rng(1).normal(size=(999, 4))
    found[::3, 1] = np.nan
    found[:600, 2] = np.nan
    low, high = percentiles(np.array([0.0, 0.0, 0.0, np.nan]), found, 0.95)
    for column in (0, 1):
        expected = np.nanquantile(found[:, column], [0.025, 0.975])
        assert (low[column], high[column]) == pytest.approx(tuple(expected))
    # too few draws have it; there is no estimate
    assert np.isnan(low[2:]).all()
    assert np.isnan(high[2:]).all()


def test_an_interval_holds_its_estimate() -> None:
    low, high = percentiles(np.array([5.0]), np.zeros((10, 1)), 0.95)
    assert (low[0], high[0]) == (0.0, 5.0)
