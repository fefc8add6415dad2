"""Kappas and rank correlations: by hand, and by SciPy, scikit-learn and statsmodels."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tasks.agreement import coefficients as found
from tasks.agreement.coefficients import Coefficient

Floats = NDArray[np.float64]
Ranked = Callable[[Floats, Floats, NDArray[np.int64]], Coefficient]


def draw(seed: int, n: int = 57, grades: int = 5) -> tuple[Floats, Floats]:
    """Return correlated grades with ties."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=n)
    cut = np.linspace(-1.5, 1.5, grades - 1)
    one, other = (np.searchsorted(cut, truth + random.normal(0, 0.7, n)) + 1.0 for _ in range(2))
    return one, other


def alone(n: int) -> NDArray[np.int64]:
    return np.arange(n)


def test_by_hand() -> None:
    one, other = np.array([1.0, 2, 3, 4]), np.array([2.0, 1, 4, 3])
    # 1 - 6 * 4 / (4 * 15); four of six pairs agree; O = 1 and E = 7.5 + 7.5 - 12.5
    assert found.spearman(one, other, alone(4)).estimate == pytest.approx(0.6)
    assert found.kendall(one, other, alone(4)).estimate == pytest.approx(2 / 6)
    assert found.quadratic_kappa(one, other, alone(4)).estimate == pytest.approx(0.6)
    a, b = np.repeat([0, 1, 0, 1], [3, 4, 2, 1]), np.repeat([0, 1, 1, 0], [3, 4, 2, 1])
    kappa = found.cohen_kappa(a, b, 1 - np.eye(2), alone(10))
    assert kappa.estimate == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_those_of_other_libraries(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    metrics = pytest.importorskip("sklearn.metrics")
    one, other = draw(seed)
    each = alone(one.size)
    assert found.spearman(one, other, each).estimate == pytest.approx(
        stats.spearmanr(one, other).statistic
    )
    assert found.kendall(one, other, each).estimate == pytest.approx(
        stats.kendalltau(one, other).statistic
    )
    codes = [values.astype(np.int64) - 1 for values in (one, other)]
    apart = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    for weights, distances in ((None, 1 - np.eye(5)), ("linear", apart), ("quadratic", apart**2)):
        expected = metrics.cohen_kappa_score(*codes, labels=list(range(5)), weights=weights)
        assert found.cohen_kappa(*codes, distances, each).estimate == pytest.approx(expected)
    quadratic = found.cohen_kappa(*codes, apart**2, each)
    moments = found.quadratic_kappa(one, other, each)
    assert moments == pytest.approx(quadratic, nan_ok=True, abs=1e-12) or all(
        a == pytest.approx(b) for a, b in zip(moments[:4], quadratic[:4], strict=True)
    )


def test_the_error_of_kappa_is_that_of_statsmodels() -> None:
    """Fleiss, Cohen and Everitt (1969); ours has n - 1 for n, and acts on Fisher's scale."""
    agreement = pytest.importorskip("statsmodels.stats.inter_rater")
    scipy = pytest.importorskip("scipy.stats")
    one, other = (values.astype(np.int64) - 1 for values in draw(3, n=200))
    table = np.zeros((5, 5))
    np.add.at(table, (one, other), 1)
    expected = agreement.cohens_kappa(table)
    ours = found.cohen_kappa(one, other, 1 - np.eye(5), alone(200))
    assert ours.low is not None
    assert ours.high is not None
    assert ours.estimate == pytest.approx(expected.kappa)
    half = (np.arctanh(ours.high) - np.arctanh(ours.low)) / 2
    error = half / scipy.t.ppf(0.975, 199) * (1 - expected.kappa**2)
    assert error * np.sqrt(199 / 200) == pytest.approx(expected.std_kappa)


@pytest.mark.parametrize("correlate", [found.spearman, found.kendall])
def test_the_error_is_that_of_leaving_out_one_item(correlate: Ranked) -> None:
    """The jackknife needs no formula; they differ by terms of the order 1 / n."""
    scipy = pytest.importorskip("scipy.stats")
    one, other = draw(7, n=120)
    each = alone(120)
    ours = correlate(one, other, each)
    assert ours.estimate is not None
    assert ours.low is not None
    assert ours.high is not None
    without = [
        correlate(np.delete(one, i), np.delete(other, i), each[:-1]).estimate for i in range(120)
    ]
    jackknife = np.sqrt(119 / 120 * np.sum((np.array(without) - np.mean(without)) ** 2))  # type: ignore[arg-type]
    half = (np.arctanh(ours.high) - np.arctanh(ours.low)) / 2
    error = half / scipy.t.ppf(0.975, 119) * (1 - ours.estimate**2)
    assert error == pytest.approx(jackknife, rel=0.02)


@pytest.mark.parametrize("correlate", [found.spearman, found.kendall, found.quadratic_kappa])
def test_repeated_items_in_a_cluster_tell_nothing_new(correlate: Ranked) -> None:
    one, other = draw(11, n=40)
    once = correlate(one, other, alone(40))
    twice = correlate(np.repeat(one, 2), np.repeat(other, 2), np.repeat(alone(40), 2))
    assert twice.estimate == pytest.approx(once.estimate, abs=1e-12)
    assert twice[1:4] == pytest.approx(once[1:4])


def test_what_has_no_coefficient_or_interval_says_why() -> None:
    ones, values = np.ones(5), np.arange(5.0)
    assert found.spearman(ones, values, alone(5)) == Coefficient(None, reason=found.ALL_ALIKE)
    assert found.kendall(values, ones, alone(5)) == Coefficient(None, reason=found.ALL_ALIKE)
    codes = np.zeros(5, np.int64)
    alike = found.cohen_kappa(codes, codes, 1 - np.eye(1), alone(5))
    assert (alike.estimate, alike.reason) == (None, found.ONE_LABEL)
    for correlate in (found.spearman, found.kendall, found.quadratic_kappa):
        perfect = correlate(values, values, alone(5))
        assert (perfect.estimate, perfect.reason) == (pytest.approx(1), found.PERFECT)
        single = correlate(values, values[::-1].copy(), np.zeros(5, np.int64))
        assert single.reason == found.SINGLE
