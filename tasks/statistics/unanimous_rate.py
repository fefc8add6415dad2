"""Unanimous rate: control pairs on which a judge always votes for the same answer."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.cells import shares
from tasks.counting.missing_reasons import SCORE
from tasks.inference.cluster_sums import grouped
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 16 (both scales)",
    family="validity",
    missing=f"no sample has a score of two ballots or more in control{SCORE}",
)
def unanimous_rate(shifts: DataFrame[Shifts]) -> Rows:
    """Measure the share of control pairs on which all valid votes are for the same answer.

    Parameters
    ----------
    shifts
        One row per sample and perturbation; a control score of 0 or 1 is unanimous. A score from
        one ballot is always unanimous, so it is dropped.

    Returns
    -------
    Estimates
        One row per cell, a share with its cluster-adjusted Wilson interval.

    Notes
    -----
    A score of 0 or 1 can move in one direction only, and hardly does if one answer is much better:
    above .80 the pairs are too easy for mean scores, and log-odds are more informative.

    References
    ----------
    methods.md, section 16.

    Examples
    --------
    Control scores 0, 1, .5 and 1: three of four pairs are unanimous, .75.
    """
    score = pl.col("control_score")
    several = pl.coalesce("control_votes", "votes") >= 2
    items = shifts.with_columns(
        counted=score.is_not_null() & several, hit=score.is_in([0.0, 1.0])
    ).with_columns(dropped=~pl.col("counted"))
    return shares("unanimous_rate", items, grouped(shifts))
