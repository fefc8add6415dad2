import numpy as np

from tasks.statistics._bootstrap import weights


def test_each_draw_has_as_many_clusters_as_there_are() -> None:
    found = weights(40, 3000, 7)
    assert found.shape == (3000, 40)
    assert (found.sum(axis=1) == 40).all()
    # binomial(40, 1/40): mean 1, variance 39/40; standard errors .003 and, about, .02
    assert abs(found[:, 0].mean() - 1) < 0.1
    assert abs(found.var() - 39 / 40) < 0.05


def test_a_seed_gives_the_same_draws_and_nobody_can_change_them() -> None:
    assert (weights(5, 10, 1) == weights(5, 10, 1)).all()
    assert not (weights(5, 10, 1) == weights(5, 10, 2)).all()
    assert not weights(5, 10, 1).flags.writeable


def test_the_spread_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=200)
    means = weights(200, 4000, 3) @ values / 200
    assert abs(means.std() / (values.std() / 200**0.5) - 1) < 0.05
