"""The mean of score differences between two arms."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics._cells import ratios
from tasks.statistics._groups import Groups
from tasks.statistics._halves import by_order


def mean_shift(
    name: str,
    shifts: pl.DataFrame,
    base: str,
    groups: Groups | None = None,
    *,
    arm: str = "experimental_score",
) -> DataFrame[Estimates]:
    """Return the mean of ``arm - base`` per cell; ``groups`` are of the shifts.

    Of judges that saw every pair in one order it is the mean of the two halves.
    """
    told = pl.col(arm).is_not_null() & pl.col(base).is_not_null()
    # The shifts of a jury are those of judges who may have seen other orders.
    shown_first = pl.col("shown_first") if "shown_first" in shifts.columns else pl.lit(None)
    items = shifts.with_columns(
        counted=told,
        dropped=~told,
        num=pl.col(arm) - pl.col(base),
        den=pl.lit(1.0),
        minuend=pl.col(arm),
        subtrahend=pl.col(base),
        half=(shown_first == "anchor").cast(pl.Boolean),
    )

    def measure(some: pl.DataFrame, own: Groups | None) -> DataFrame[Estimates]:
        return ratios(name, some, own)

    return by_order(items, measure, groups)
