"""Primary endpoint: the shift over the sham, or over the control if there are too few shams."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.inference.cluster_sums import Groups
from tasks.inference.linearised_errors import have_enough, is_enough

BASES = ("sham_score", "control_score")


def over_shams(shifts: pl.DataFrame, groups: Groups) -> NDArray[np.bool_]:
    """Tell for each cell of the shifts whether its endpoint is over the sham, shape (cells,)."""
    shammed = groups.by_cell(shifts["has_sham"]) > 0
    if not shammed.any():
        return shammed
    known = shifts.select(has_shift(base).alias(base) for base in BASES)
    sham, control = (have_enough(groups.by_cluster(known[base]), groups.starts) for base in BASES)
    return np.asarray(shammed & over_sham(sham, control))


def base_value(shifts: pl.DataFrame, groups: Groups, value: str = "score") -> pl.Expr:
    """Return the base of each sample's endpoint: a value of its sham, or of its control."""
    over = pl.Series(over_shams(shifts, groups)[groups.cell])
    return pl.when(over).then(f"sham_{value}").otherwise(f"control_{value}")


def has_shift(base: str) -> pl.Expr:
    """Tell which samples have a shift over ``base``."""
    return pl.col("experimental_score").is_not_null() & pl.col(base).is_not_null()


def over_sham(sham: Any, control: Any) -> Any:
    """Tell whether the endpoint of a cell with shams is the shift over the sham.

    It is, unless too few questions have a shift over the sham while enough have one over the
    control: then the control tells more (methods, sections 2, 3 and 16).

    ``sham`` and ``control`` tell whether enough questions have a shift over each: arrays or
    expressions.
    """
    return sham | ~control


def primary(estimates: pl.DataFrame, cell: tuple[str, ...]) -> pl.DataFrame:
    """Keep each cell's estimate of the primary endpoint: ``mps_sham``, or ``mps``.

    Adds ``instead``: why the control is used although there are shams.
    """
    names = ("mps_sham", "mps")
    statistic = pl.col("statistic").cast(pl.String)
    sham, control = (
        pl.col("clusters").filter(statistic == name).max().over(cell) for name in names
    )
    enough = [(is_enough() & (statistic == name)).any().over(cell) for name in names]
    rest = pl.format(
        "over the control: {} of {} questions have a shift over the sham", sham, control
    )
    return (
        estimates.filter(statistic.is_in(names))
        .with_columns(
            instead=pl.when(sham.is_not_null(), ~over_sham(*enough)).then(rest),
            chosen=pl.when(sham.is_not_null(), over_sham(*enough))
            .then(pl.lit("mps_sham"))
            .otherwise(pl.lit("mps")),
        )
        .filter(statistic == pl.col("chosen"))
        .drop("chosen")
    )
