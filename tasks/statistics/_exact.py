"""Exact tests of counts; scipy, which has the binomial, is imported at first use."""

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics._groups import CELL


def sign_test(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance that fair coins fall at least as unevenly as ``one`` to ``other``.

    The exact two-sided binomial test at 1/2, and so McNemar's; 1 without coins.

    Examples
    --------
    Four to none: 2 / 2^4. Two to one: any of the eight falls.

    >>> sign_test(np.array([4.0, 2.0]), np.array([0.0, 1.0])).tolist()
    [0.125, 1.0]
    """
    from scipy.special import bdtr

    tails: NDArray[np.float64] = 2 * bdtr(np.minimum(one, other), (one + other).astype(int), 0.5)
    return np.minimum(1.0, tails)


def with_sign_test(
    rows: DataFrame[Estimates], items: pl.DataFrame, one: pl.Expr, other: pl.Expr
) -> DataFrame[Estimates]:
    """Give estimates the p-value of the sign test of how many ``items`` are ``one``, ``other``."""
    if rows.is_empty():
        return rows
    counts = items.group_by(CELL, maintain_order=True).agg(
        one.sum().alias("one"), other=other.sum()
    )
    sides = (counts[side].cast(pl.Float64).to_numpy() for side in ("one", "other"))
    keys = counts.select(pl.col(CELL).cast(pl.String), tested=pl.Series(sign_test(*sides)))
    joined = rows.join(keys, on=CELL, how="left", nulls_equal=True)
    told = pl.col("estimate").is_not_null() & (pl.col("clusters") > 1)
    return Estimates.draft(joined.with_columns(p_value=pl.when(told).then(pl.col("tested"))))
