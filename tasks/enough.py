"""Whether there are enough independent questions for a conclusion: the one rule of all findings.

Ten questions, and nine Satterthwaite degrees of freedom, which ten questions with the same number
of samples have (methods, section 16). Below, estimates and intervals stand without a word.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.defaults import FEWEST_CLUSTERS, LEAST_DF, TOO_FEW, TOO_UNEVEN


def is_enough(clusters: str = "clusters", df: str = "df") -> pl.Expr:
    """Tell of each row whether its clusters are enough; an unknown ``df`` is clusters less one."""
    return (pl.col(clusters) >= FEWEST_CLUSTERS) & ~_uneven(df)


def why_not_enough(clusters: str = "clusters", df: str = "df") -> pl.Expr:
    """Say of each row why its clusters are not enough; null where they are."""
    return (
        pl.when(pl.col(clusters) < FEWEST_CLUSTERS)
        .then(pl.lit(TOO_FEW))
        .when(_uneven(df))
        .then(pl.lit(TOO_UNEVEN))
    )


def too_few(clusters: int, df: float | None) -> str | None:
    """Say why so many clusters are not enough; nothing if they are."""
    if clusters < FEWEST_CLUSTERS:
        return TOO_FEW
    return TOO_UNEVEN if df is not None and df < LEAST_DF else None


def are_enough(clusters: NDArray[Any], df: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell the same of arrays; a ``df`` that is not a number is not enough."""
    return np.asarray((clusters >= FEWEST_CLUSTERS) & (df >= LEAST_DF))


def _uneven(df: str) -> pl.Expr:
    return (pl.col(df) < LEAST_DF).fill_null(value=False)
