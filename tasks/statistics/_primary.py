"""Which cells' shifts are over the sham."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks._endpoint import over_sham
from tasks.statistics._cluster_variance import have_enough
from tasks.statistics._groups import Groups

BASES = ("sham_score", "control_score")


def over_shams(shifts: pl.DataFrame, groups: Groups) -> NDArray[np.bool_]:
    """Tell of each cell of the shifts whether its endpoint is over the sham, shape (cells,)."""
    shammed = groups.by_cell(shifts["has_sham"]) > 0
    if not shammed.any():
        return shammed
    told = shifts.select(has_shift(base).alias(base) for base in BASES)
    sham, control = (have_enough(groups.by_cluster(told[base]), groups.starts) for base in BASES)
    return np.asarray(shammed & over_sham(sham, control))


def has_shift(base: str) -> pl.Expr:
    """Tell which samples have a shift over ``base``."""
    return pl.col("experimental_score").is_not_null() & pl.col(base).is_not_null()
