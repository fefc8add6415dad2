"""The mean of score differences between two arms."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics._cells import ratios


def mean_shift(name: str, shifts: pl.DataFrame, base: str) -> DataFrame[Estimates]:
    """Return the mean of ``experimental_score - base`` per cell."""
    told = pl.col("experimental_score").is_not_null() & pl.col(base).is_not_null()
    return ratios(
        name,
        shifts.with_columns(
            counted=told,
            dropped=~told,
            num=pl.col("experimental_score") - pl.col(base),
            den=pl.lit(1.0),
            minuend=pl.col("experimental_score"),
            subtrahend=pl.col(base),
        ),
    )
