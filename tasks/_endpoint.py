"""Which shift is the primary endpoint: that over the sham, or that over the control."""

from typing import Any

import polars as pl

from tasks.enough import is_enough


def over_sham(sham: Any, control: Any) -> Any:
    """Tell whether the endpoint of something that has shams is over them.

    It is, unless a handful of shams would hide what the control can tell: too few questions have a
    shift over the sham, and enough one over the control (methods, sections 2, 3 and 16).

    Parameters
    ----------
    sham, control
        Whether enough questions have a shift over each; arrays or expressions.
    """
    return sham | ~control


def primary(
    estimates: pl.DataFrame, cell: tuple[str, ...], names: tuple[str, str] = ("mps", "mps_sham")
) -> pl.DataFrame:
    """Keep each cell's estimate of the primary endpoint.

    ``names`` are those of the shift over the control and over the sham. Adds ``instead``: why it is
    the one over the control although there are shams.
    """
    plain, shammed = names
    statistic = pl.col("statistic").cast(pl.String)
    control, sham = (
        pl.col("clusters").filter(statistic == name).max().over(cell) for name in names
    )
    enough = [(is_enough() & (statistic == name)).any().over(cell) for name in reversed(names)]
    rest = pl.format(
        "over the control: {} of {} questions have a shift over the sham", sham, control
    )
    return (
        estimates.filter(statistic.is_in(names))
        .with_columns(
            instead=pl.when(sham.is_not_null(), ~over_sham(*enough)).then(rest),
            chosen=pl.when(sham.is_not_null(), over_sham(*enough))
            .then(pl.lit(shammed))
            .otherwise(pl.lit(plain)),
        )
        .filter(statistic == pl.col("chosen"))
        .drop("chosen")
    )
