"""p-values of families of tests; nulls stay null and do not count, so m is the number of others.

scipy and statsmodels have most of it, in packages whose import takes a second and 45 MB or more.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Adjust = Callable[[Floats, NDArray[np.int64]], Floats]


def benjamini_hochberg(p_values: pl.Series) -> pl.Series:
    """Adjust p-values so that the false discovery rate is kept.

    The k-th smallest of m becomes ``min over j >= k of p_(j) m / j`` (Benjamini & Hochberg 1995,
    J. R. Stat. Soc. B 57).
    """
    return _adjusted(p_values, lambda p, k: _least_from_the_end(p * p.size / k))


def benjamini_yekutieli(p_values: pl.Series) -> pl.Series:
    """Adjust p-values so that the false discovery rate is kept under any dependence.

    Benjamini-Hochberg times ``sum over l = 1..m of 1 / l`` (Benjamini & Yekutieli 2001, Ann.
    Statist. 29).
    """
    return _adjusted(p_values, lambda p, k: _least_from_the_end(p * p.size / k * (1 / k).sum()))


def holm(p_values: pl.Series) -> pl.Series:
    """Adjust p-values so that the chance of any false rejection is kept under any dependence.

    The k-th smallest of m becomes ``max over j <= k of p_(j) (m - j + 1)`` (Holm 1979, Scand. J.
    Statist. 6).
    """
    return _adjusted(p_values, lambda p, k: np.maximum.accumulate(p * (p.size - k + 1)))


def rejected_by_e_values(e_values: pl.Series, alpha: float) -> pl.Series:
    """Tell which hypotheses e-BH rejects: the k largest with ``e_(k) >= m / (alpha k)``.

    Keeps the false discovery rate at ``alpha`` under any dependence (Wang & Ramdas 2022,
    arXiv:2009.02824); k is the largest for which that holds.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha ({alpha}) must lie in (0, 1).")
    told = e_values.drop_nulls().cast(pl.Float64).sort(descending=True).to_numpy()
    ranks = np.arange(1, told.size + 1)
    reached = ranks[told * alpha * ranks >= told.size]
    least = told[reached[-1] - 1] if reached.size else np.inf
    return (e_values.cast(pl.Float64) >= least).alias(e_values.name)


def _adjusted(p_values: pl.Series, adjust: Adjust) -> pl.Series:
    values = p_values.cast(pl.Float64).to_numpy(writable=True)
    told = np.flatnonzero(p_values.is_not_null().to_numpy())
    order = told[np.argsort(values[told], kind="stable")]
    adjusted = np.full(values.size, np.nan)
    adjusted[order] = np.minimum(1.0, adjust(values[order], np.arange(1, order.size + 1)))
    return pl.Series(p_values.name, adjusted, pl.Float64).fill_nan(None)


def _least_from_the_end(values: Floats) -> Floats:
    least: Floats = np.minimum.accumulate(values[::-1])[::-1]
    return least
