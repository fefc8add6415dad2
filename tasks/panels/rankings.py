"""Ranks of judges, shown only with their intervals and tiers."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.conclusions import Rankings
from schemas.keys import CELL
from schemas.results import Estimates
from tasks.pointwise.rated_items import PAIRS, quantities


def rankings(
    estimates: DataFrame[Estimates], ratings: DataFrame[Ratings] | None = None
) -> DataFrame[Rankings]:
    """Return each judge's rank with its interval and tier (methods, section 11).

    Ranks of judges that do not differ are noise, so a rank without an interval is null, and its
    ``reason`` says why there is none. Judges without ``ratings`` compare pairs.
    """
    measured = quantities(Ratings.empty() if ratings is None else ratings)
    ranked = (
        estimates.filter(statistic="rank")
        .join(_tiers(estimates), on=CELL, how="left")
        .join(measured, on=["dataset", "prompt"], how="left")
    )
    known = pl.col("low").is_not_null()
    quantity = pl.col("quantity").fill_null(PAIRS)
    return Rankings.of(ranked.with_columns(quantity, rank=pl.when(known).then("estimate")))


def _tiers(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return the letters of each judge (``tier``): judges that share one do not differ."""
    return (
        estimates.filter(pl.col("statistic") == "tier", pl.col("estimate").is_not_null())
        .sort("estimate")
        .group_by(CELL, maintain_order=True)
        .agg(tier=pl.col("subgroup").str.join(""))
    )
