"""Share of control pairs for which a judge mostly picks the answer shown first.

Rename this file to ``mostly_first.py`` to have it computed: it is a row of ``mart.numbers``.
"""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.counting.cells import shares
from tasks.statistics import statistic


@statistic(source="mine", family="position", unit="share", null=0.5, floor="random judge")
def mostly_first(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure how often a pair has more first picks than others."""
    control = tallies.filter(pl.col("arm") == "control")
    picked = pl.col("anchor_12") + pl.col("target_21")
    items = control.with_columns(
        counted=pl.col("voted") > 0,
        hit=2 * picked > pl.col("voted"),
        dropped=pl.col("voted") == 0,
        mode=pl.lit("any"),
        perturbation=pl.lit(None, pl.String),
        kind=pl.lit(None, pl.String),
        votes=pl.col("planned"),
    )
    return shares("mostly_first", items)
