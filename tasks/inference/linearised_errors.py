"""Cluster-robust variance (CR2, Satterthwaite) and the minimum of clusters for a conclusion.

Scaling the squares of ``u_g = num_g - R den_g`` by G / (G - 1) and using t with G - 1 degrees of
freedom is valid only for clusters of similar size: with 300 of 330 samples from one question it
rejects a true null hypothesis in .39 of studies at .05. CR2 divides each square by one minus the
cluster's share of the samples; the Satterthwaite degrees of freedom account for unequal sizes.

A conclusion needs ten clusters (``fewest_questions``) and nine such degrees of freedom, which ten
clusters of equal size have (methods, section 16). With fewer, estimates and intervals are reported
without a finding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.inference.cluster_sums import Sums, totals
from tasks.kit.defaults import limits

ROUNDING = 1e-12
"""Differences below this share of their terms are rounding error."""
DIGITS = 9
"""Decimals of the degrees of freedom: ten equal clusters must give 9, not 8.9999999999."""

FEW = "fewer than {} independent questions"
TOO_UNEVEN = "too few questions for so unequal numbers of samples"


class Correction(NamedTuple):
    """Small-sample correction of a between-cluster variance, from the cluster sizes."""

    weight: Sums
    """Factor ``1 / (1 - n_g / N)`` for each cluster's square, in the shape of the sizes; 1 for the
    only cluster of a cell. Arbitrary for clusters without samples."""
    df: Sums
    """Satterthwaite degrees of freedom of each cell; NaN for fewer than two clusters."""
    inflation: Sums
    """Mean weight of a sample in each cell: G / (G - 1) if all clusters have equal size."""
    starts: NDArray[np.int64] | None = None
    """Index of each cell's first cluster, if all cells are in one array."""

    def variance(self, u: Sums) -> Sums:
        """Return ``sum a_g^2 u_g^2``: the squared standard error of a linearised estimate."""
        return self.covariance(u, u)

    def covariance(self, one: Sums, other: Sums) -> Sums:
        """Return ``sum a_g^2 one_g other_g`` of each cell."""
        product = one * other
        product *= self.weight
        total, _ = layout(self.starts)
        return total(product)


def correction(sizes: Sums, starts: NDArray[np.int64] | None = None) -> Correction:
    """Return the CR2 weights of clusters and the Satterthwaite degrees of freedom of their cells.

    With ``p_g = n_g / N`` and ``a_g^2 = 1 / (1 - p_g)`` the variance of a linearised estimate is
    ``sum a_g^2 u_g^2`` and its degrees of freedom are ``(sum lambda)^2 / sum lambda^2``, lambda the
    eigenvalues of ``M_gh = a_g a_h (delta_gh n_g - n_g n_h / N) / N^2``. No matrix is needed:
    ``M_gg = p_g / N``, so ``sum lambda = 1 / N``; off the diagonal
    ``M_gh^2 = q_g q_h / N^2`` with ``q_g = p_g^2 / (1 - p_g)``, so
    ``df = 1 / (sum p_g^2 + (sum q_g)^2 - sum q_g^2)``.

    Parameters
    ----------
    sizes
        Counted samples of each cluster: shape (clusters, ...) for one or more cells or, with
        ``starts``, all cells in one array, cell by cell.
    starts
        Index of each cell's first cluster, then the end of the last cell; shape (cells + 1,).

    References
    ----------
    Bell and McCaffrey (2002), Surv. Methodol. 28, 169-181; Pustejovsky and Tipton (2018), J. Bus.
    Econ. Stat. 36, 672-683; methods.md, section 16.

    Examples
    --------
    Four clusters of five samples: G / (G - 1) and G - 1. Clusters of 2, 1 and 1: p = 1/2, 1/4, 1/4,
    q = 1/2, 1/12, 1/12, so df = 1 / (3/8 + (2/3)^2 - 19/72) = 1.8.

    >>> even = correction(np.array([5.0, 5.0, 5.0, 5.0]))
    >>> even.weight.round(4).tolist(), float(even.df)
    ([1.3333, 1.3333, 1.3333, 1.3333], 3.0)
    >>> float(correction(np.array([2.0, 1.0, 1.0])).df)
    1.8
    """
    total, each = layout(starts)
    number, squares = total(sizes), total(sizes**2)
    clusters = total((sizes > 0).astype(np.float64))
    if np.all(clusters * squares <= number**2 * (1.0 + ROUNDING)):
        inflation = clusters / np.maximum(clusters - 1, 1.0)
        df = np.where(clusters > 1, clusters - 1, np.nan)
        weight = np.broadcast_to(each(np.maximum(inflation, 1.0)), sizes.shape)
        return Correction(weight, df, inflation, starts)
    share = sizes / each(np.where(number > 0, number, 1.0))
    rest = 1.0 - share
    rest[rest < ROUNDING] = 1.0  # the only cluster of its cell
    weight = 1.0 / rest
    grown = share * weight
    inflation = total(grown)
    grown *= share  # q_g, which sum to sum p_g / (1 - p_g) - sum p_g
    spread = total(share**2) + (inflation - 1.0) ** 2 - total(grown**2)
    df = np.divide(1.0, spread, out=np.full(np.shape(spread), np.nan), where=clusters > 1)
    return Correction(weight, np.round(df, DIGITS), inflation, starts)


class RatioDifference(NamedTuple):
    """A difference of two ratios, one entry per cell."""

    estimate: Sums
    """NaN where a denominator is 0."""
    error: Sums
    df: Sums


def ratio_difference(
    one: tuple[Sums, Sums],
    other: tuple[Sums, Sums],
    sizes: Sums,
    starts: NDArray[np.int64] | None = None,
) -> RatioDifference:
    """Return one ratio minus another of the same clusters, linearised together.

    ``u_g = (num_g - R den_g) / sum den`` of the one minus the same of the other,
    ``SE = sqrt(sum a_g^2 u_g^2)``: what the two have in common cancels.

    ``one`` and ``other`` are cluster sums of numerator and denominator, ``sizes`` and ``starts``
    those of :func:`correction`, of the clusters' samples that count for either ratio.

    Examples
    --------
    Two clusters with one sample each; hits 1, 1 against 1, 0: 1 - 1/2, u = 0 - 1/4 and 0 + 1/4, so
    SE = sqrt(2 * 2 / 16) = 1/2.

    >>> ones = np.ones(2)
    >>> found = ratio_difference((ones, ones), (np.array([1.0, 0.0]), ones), ones)
    >>> float(found.estimate), float(found.error)
    (0.5, 0.5)
    """
    total, each = layout(starts)
    ratios, u = [], []
    for num, den in (one, other):
        whole = total(den)
        ratios.append(over(total(num), whole))
        scale = each(np.where(whole > 0, whole, 1.0))
        u.append((num - each(np.nan_to_num(ratios[-1])) * den) / scale)
    known = correction(sizes, starts)
    return RatioDifference(ratios[0] - ratios[1], np.sqrt(known.variance(u[0] - u[1])), known.df)


def effective_clusters(sizes: Sums, starts: NDArray[np.int64] | None = None) -> Sums:
    """Return the number of equal-sized clusters with the same degrees of freedom; at least 1."""
    df: Sums = np.nan_to_num(correction(sizes, starts).df)
    return 1 + df


def have_enough(sizes: Sums, starts: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Tell which cells have enough clusters for a conclusion."""
    total, _ = layout(starts)
    many = total((sizes > 0).astype(np.float64)) >= limits().fewest_questions
    # A NaN, for a single cluster, is not enough.
    return np.asarray(many & (correction(sizes, starts).df >= least_df()))


def layout(
    starts: NDArray[np.int64] | None,
) -> tuple[Callable[[Sums], Sums], Callable[[Sums], Sums]]:
    """Return functions that sum values by cell and repeat cell values per cluster."""
    if starts is None:
        return lambda values: values.sum(axis=0), lambda cells: cells
    size = np.diff(starts)
    return lambda values: totals(values, starts), lambda cells: np.repeat(cells, size)


def is_enough(clusters: str = "clusters", df: str = "df") -> pl.Expr:
    """Tell whether each row has enough clusters; a null ``df`` is not checked."""
    return (pl.col(clusters) >= limits().fewest_questions) & ~_uneven(df)


def why_not_enough() -> pl.Expr:
    """Give the reason why a row has too few or too uneven clusters; null if it has enough."""
    return (
        pl.when(pl.col("clusters") < limits().fewest_questions)
        .then(pl.lit(FEW.format(limits().fewest_questions)))
        .when(_uneven("df"))
        .then(pl.lit(TOO_UNEVEN))
    )


def too_few(clusters: int, df: float | None) -> str | None:
    """Give the reason why the clusters are too few or too uneven; None if they are enough."""
    if clusters < limits().fewest_questions:
        return FEW.format(limits().fewest_questions)
    return TOO_UNEVEN if df is not None and df < least_df() else None


def least_df() -> float:
    """Return the fewest degrees of freedom for a finding (fewest questions of equal size)."""
    return limits().fewest_questions - 1.0


def _uneven(df: str) -> pl.Expr:
    return (pl.col(df) < least_df()).fill_null(value=False)


def over(numerator: Any, denominator: Any, least: float = 0.0) -> Sums:
    """Divide; NaN where the denominator is 0, or no further from it than ``least``."""
    top, below = np.broadcast_arrays(
        np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    )
    known = np.abs(below) > least
    quotient: Sums = np.divide(top, below, out=np.full(top.shape, np.nan), where=known)
    return quotient
