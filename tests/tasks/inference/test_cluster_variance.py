"""CR2 and its degrees of freedom, against dense matrices and the figures of the methods."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.inference.linearised_errors import correction, effective_clusters, have_enough

DESIGNS = {
    "few large": [100, 50, 20, *[5] * 9],
    "one of 300": [300, *[1] * 30],
    "many small": [40, 30, 20, 10, *[2] * 40],
    "equal": [7] * 10,
}
SIZES = st.lists(st.integers(1, 60), min_size=2, max_size=15)


def sizes_of(design: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(DESIGNS[design], float)


def by_eigenvalues(sizes: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    n = sizes.sum()
    a = (1 - sizes / n) ** -0.5
    matrix = np.outer(a, a) * (np.diag(sizes) - np.outer(sizes, sizes) / n) / n**2
    values = np.linalg.eigvalsh(matrix)
    return float(values.sum() ** 2 / (values**2).sum())


# methods.md, section 16: 2.8, 1.2 and 9.4.
@pytest.mark.parametrize(
    ("design", "df"), [("few large", 2.8), ("one of 300", 1.2), ("many small", 9.4), ("equal", 9.0)]
)
def test_degrees_of_freedom_of_the_methods(design: str, df: float) -> None:
    found = correction(sizes_of(design))
    assert round(float(found.df), 1) == df
    assert float(found.df) == pytest.approx(by_eigenvalues(sizes_of(design)), abs=1e-8)


@given(SIZES)
def test_like_eigenvalues(sizes: list[int]) -> None:
    values = np.array(sizes, float)
    assert float(correction(values).df) == pytest.approx(by_eigenvalues(values), rel=1e-6)


@given(SIZES, st.integers(0, 10**6))
def test_like_the_algorithm_of_clubsandwich(
    club_sandwich: Callable[..., tuple[float, float, float]], sizes: list[int], seed: int
) -> None:
    groups = np.repeat(np.arange(len(sizes)), [min(size, 6) for size in sizes])
    y = np.random.default_rng(seed).normal(size=len(groups))
    mean, error, df = club_sandwich(y, np.ones(len(y)), groups)
    count = np.bincount(groups).astype(float)
    found = correction(count)
    scores = np.bincount(groups, y - y.mean())
    assert y.mean() == pytest.approx(mean)
    assert (found.weight @ scores**2) ** 0.5 / len(y) == pytest.approx(error)
    assert float(found.df) == pytest.approx(df, rel=1e-6)


@pytest.mark.parametrize("clusters", [2, 10, 142, 100_000])
def test_clusters_of_one_size_are_what_they_were(clusters: int) -> None:
    found = correction(np.full(clusters, 3.0))
    assert found.df == clusters - 1  # to the last digit: ten questions are enough
    assert found.weight == pytest.approx(clusters / (clusters - 1), rel=1e-12)
    assert float(found.inflation) == pytest.approx(clusters / (clusters - 1), rel=1e-12)
    assert effective_clusters(np.full(clusters, 3.0)) == clusters


def test_a_single_cluster_has_no_variance() -> None:
    for sizes in ([5.0, 0.0], [5.0], [0.0, 0.0]):
        found = correction(np.array(sizes))
        assert np.isnan(found.df)
        assert found.weight.tolist() == [1.0] * len(sizes)
    assert float(effective_clusters(np.array([5.0, 0.0]))) == 1


def test_both_layouts_are_alike() -> None:
    table = np.array([[100.0, 5.0, 0.0], [50.0, 5.0, 1.0], [20.0, 0.0, 0.0]])
    stacked = correction(table)
    flat = correction(table.T.ravel(), np.array([0, 3, 6, 9]))
    assert stacked.weight.T.ravel() == pytest.approx(flat.weight)
    assert stacked.df == pytest.approx(flat.df, nan_ok=True)
    assert stacked.inflation == pytest.approx(flat.inflation)


@pytest.mark.parametrize(
    ("design", "enough"),
    [("few large", False), ("one of 300", False), ("many small", True), ("equal", True)],
)
def test_which_designs_get_a_word(design: str, enough: bool) -> None:
    assert bool(have_enough(sizes_of(design))) is enough
    assert not have_enough(np.full(9, 40.0))
