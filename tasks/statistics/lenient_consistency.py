"""Lenient position consistency, which does not penalise invalid partner votes."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.counting.cells import portions
from tasks.counting.positions import arm_groups, matches
from tasks.statistics import Rows, statistic


@statistic(
    source="the logs of arXiv:2406.07791 (Position-Bias-Analyzer); for comparison only",
    family="position",
    missing="no pair has a valid vote and another of its repeat in the other order",
)
def lenient_consistency(tallies: DataFrame[Tallies]) -> Rows:
    """Measure position consistency by votes, as Shi et al. do, ignoring invalid partners.

    Of the valid votes in matches, the share whose partner in the other order names the same answer
    or is not valid: ``(2 consistent + alone) / (2 n + alone)``, n matches of two valid votes,
    ``alone`` matches with one.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        One row per cell, n the valid votes. ``perturbation`` null is the control arm, else the
        experimental arm.

    Notes
    -----
    Never below ``position_consistency``, and higher the more replies are invalid. It serves for
    comparison with published numbers; report ``position_consistency``.

    References
    ----------
    Shi et al. (2024), Judging the Judges, arXiv:2406.07791.

    Examples
    --------
    (first, second), (first, first) and (first, invalid): 3 of the 5 valid votes count as
    consistent, .6, where the consistency of matches is 1/2.
    """
    alone, valid = pl.col("alone"), pl.col("valid")
    items = matches(tallies).with_columns(
        num=2 * pl.col("consistent") + alone, den=2 * valid + alone
    )
    left_out = 2 * pl.col("matched") - pl.col("den")
    return portions(
        "lenient_consistency", items.with_columns(dropped=left_out), arm_groups(tallies)
    )
