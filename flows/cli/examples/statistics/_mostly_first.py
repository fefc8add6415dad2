"""How often first picks outnumber second picks.

Rename this file to ``mostly_first.py`` to have it computed: it is a row of ``mart.numbers``.
"""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.counting.cells import shares
from tasks.statistics import statistic


# Both orders are asked equally often, so a judge without position bias has .5 (``null``).
@statistic(
    source="mine",
    family="position",
    unit="share",
    null=0.5,
    floor="random judge",
    # The reason where nothing is counted.
    missing="in no control pair first picks and second picks differ in number",
)
def mostly_first(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure in how many control pairs first picks outnumber second picks, if they differ."""
    # 12: votes with the anchor shown first; 21: with the target shown first.
    first, second = (
        pl.col("anchor_12") + pl.col("target_21"),
        pl.col("target_12") + pl.col("anchor_21"),
    )
    pairs = tallies.filter(pl.col("arm") == "control").with_columns(
        counted=first != second,  # the denominator
        hit=first > second,  # the numerator
        dropped=pl.col("voted") == pl.col("invalid"),  # unknown: no valid vote
        votes=pl.col("planned"),
        # The cell that a row is about: here all control pairs, in any mode.
        mode=pl.lit("any"),
        perturbation=pl.lit(None, pl.String),
        kind=pl.lit(None, pl.String),
    )
    return shares("mostly_first", pairs)
