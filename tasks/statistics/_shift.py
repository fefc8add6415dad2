"""The mean of score differences between two arms."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics._cells import ratios
from tasks.statistics._groups import Groups


def mean_shift(
    name: str,
    shifts: pl.DataFrame,
    base: str,
    groups: Groups | None = None,
    *,
    arm: str = "experimental_score",
) -> DataFrame[Estimates]:
    """Return the mean of ``arm - base`` per cell; ``groups`` are of the shifts."""
    told = pl.col(arm).is_not_null() & pl.col(base).is_not_null()
    return ratios(
        name,
        shifts.with_columns(
            counted=told,
            dropped=~told,
            num=pl.col(arm) - pl.col(base),
            den=pl.lit(1.0),
            minuend=pl.col(arm),
            subtrahend=pl.col(base),
        ),
        groups,
    )
