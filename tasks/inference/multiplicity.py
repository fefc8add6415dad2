"""Multiplicity: adjusted p-values of a family, and empirical Bayes shrinkage of its cells.

SciPy and statsmodels offer most of it, but importing them takes a second and 45 MB or more.
"""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.inference.cluster_sums import Floats

Adjust = Callable[[Floats, NDArray[np.int64]], Floats]


def benjamini_hochberg(p_values: pl.Series) -> pl.Series:
    """Return p-values adjusted to control the false discovery rate.

    The k-th smallest of m becomes ``min over j >= k of p_(j) m / j`` (Benjamini & Hochberg 1995,
    J. R. Stat. Soc. B 57).
    """
    return _adjusted(p_values, lambda p, k: _least_from_the_end(p * p.size / k))


def benjamini_yekutieli(p_values: pl.Series) -> pl.Series:
    """Return p-values adjusted to control the false discovery rate under any dependence.

    Benjamini-Hochberg times ``sum over l = 1..m of 1 / l`` (Benjamini & Yekutieli 2001, Ann.
    Statist. 29).
    """
    return _adjusted(p_values, _yekutieli)


def benjamini_yekutieli_rows(p_values: Floats) -> Floats:
    """Return p-values adjusted like :func:`benjamini_yekutieli`; each row is a family."""
    order = np.argsort(p_values, axis=1, kind="stable")
    adjusted = _yekutieli(np.take_along_axis(p_values, order, 1), np.arange(1, order.shape[1] + 1))
    result = np.empty_like(p_values)
    np.put_along_axis(result, order, np.minimum(1.0, adjusted), 1)
    return result


def holm(p_values: pl.Series) -> pl.Series:
    """Return p-values adjusted to control the family-wise error rate under any dependence.

    The k-th smallest of m becomes ``max over j <= k of p_(j) (m - j + 1)`` (Holm 1979, Scand. J.
    Statist. 6).
    """
    return _adjusted(p_values, lambda p, k: np.maximum.accumulate(p * (p.size - k + 1)))


def rejected_by_e_values(e_values: pl.Series, alpha: float) -> pl.Series:
    """Tell which hypotheses e-BH rejects: the k largest e-values, if ``e_(k) >= m / (alpha k)``.

    The largest such k controls the false discovery rate at ``alpha`` under any dependence
    (Wang & Ramdas 2022, arXiv:2009.02824).
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha ({alpha}) must lie in (0, 1).")
    values = e_values.drop_nulls().cast(pl.Float64).sort(descending=True).to_numpy()
    ranks = np.arange(1, values.size + 1)
    reached = ranks[values * alpha * ranks >= values.size]
    least = values[reached[-1] - 1] if reached.size else np.inf
    return (e_values.cast(pl.Float64) >= least).alias(e_values.name)


def _adjusted(p_values: pl.Series, adjust: Adjust) -> pl.Series:
    values = p_values.cast(pl.Float64).to_numpy(writable=True)
    present = np.flatnonzero(p_values.is_not_null().to_numpy())
    order = present[np.argsort(values[present], kind="stable")]
    adjusted = np.full(values.size, np.nan)
    adjusted[order] = np.minimum(1.0, adjust(values[order], np.arange(1, order.size + 1)))
    return pl.Series(p_values.name, adjusted, pl.Float64).fill_nan(None)


def _yekutieli(p: Floats, k: NDArray[np.int64]) -> Floats:
    return _least_from_the_end(p * k.size / k * (1 / k).sum())


def _least_from_the_end(values: Floats) -> Floats:
    least: Floats = np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]
    return least


FEWEST = 3
"""Fewest cells in a group for which a variance between them is estimated."""


def shrunk(cells: pl.DataFrame, group: Sequence[str]) -> pl.DataFrame:
    """Add ``shrunk`` and ``shrunk_error``: each estimate shrunk toward the mean of its group.

    ``w = 1 / se^2``, ``Q = sum w (theta - sum w theta / sum w)^2``, ``tau^2 = max(0, (Q - (k - 1))
    / (sum w - sum w^2 / sum w))``, ``theta_bar`` the mean with weights ``1 / (tau^2 + se^2)``,
    ``B = tau^2 / (tau^2 + se^2)``, ``shrunk = theta_bar + B (theta - theta_bar)``, and
    ``shrunk_error^2 = B se^2 + (1 - B)^2 / sum 1 / (tau^2 + se^2)``.

    ``cells`` have ``estimate`` and ``standard_error``. Both columns are null where the error is
    null or 0, where fewer than three cells of the group have one, or where one cell outweighs the
    rest beyond rounding error.

    References
    ----------
    DerSimonian & Laird (1986), Control. Clin. Trials 7, 177-188; Morris (1983), JASA 78, 47-55.

    Examples
    --------
    0, .2 and .4 with error .1 each: w = 100, Q = 8, tau^2 = (8 - 2) / (300 - 100) = .03, B = .75,
    so .05, .2 and .35, with error^2 = .0075 + .0625 * .04 / 3 = .00833.
    """
    usable = pl.col("estimate").is_not_null() & (pl.col("standard_error") > 0)
    variance = pl.when(usable).then(pl.col("standard_error") ** 2)
    theta = pl.when(usable).then(pl.col("estimate"))
    within, total = pl.col("_within"), pl.col("_within") + pl.col("_tau2")
    keep = pl.col("_tau2") / total
    return (
        cells.with_columns(_within=variance, _theta=theta, _weight=1 / variance)
        .with_columns(_tau2=_between().over(group))
        .with_columns(_mean=_weighted_mean(pl.col("_theta"), 1 / total).over(group))
        .with_columns(
            shrunk=pl.col("_mean") + keep * (pl.col("_theta") - pl.col("_mean")),
            shrunk_error=(keep * within + (1 - keep) ** 2 / (1 / total).sum().over(group)).sqrt(),
        )
        .drop("_within", "_theta", "_weight", "_tau2", "_mean")
    )


def _between() -> pl.Expr:
    """Return the DerSimonian-Laird variance between cells; null if there are too few."""
    weight, theta = pl.col("_weight"), pl.col("_theta")
    q = (weight * (theta - _weighted_mean(theta, weight)) ** 2).sum()
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    tau2 = ((q - (weight.count() - 1)) / scale).clip(0.0)
    # If one weight dwarfs all others, the scale is nothing but rounding error.
    enough = (weight.count() >= FEWEST) & (scale > 1e-9 * weight.sum())
    return pl.when(enough).then(tau2)


def _weighted_mean(values: pl.Expr, weights: pl.Expr) -> pl.Expr:
    return (values * weights).sum() / weights.sum()
