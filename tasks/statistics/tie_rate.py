"""Tie rate: how often a judge does not decide."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.counting.cells import portions
from tasks.counting.missing_reasons import NO_VALID_VOTE
from tasks.counting.positions import arm_groups, votes_by_order
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 5 (exclusion rule)",
    family="position",
    order="irrelevant",
    missing=NO_VALID_VOTE,
)
def tie_rate(tallies: DataFrame[Tallies]) -> Rows:
    """Measure the share of ties among valid votes.

    ``ties / (votes for the first + ties + votes for the second)``.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        One row per cell, by cluster-adjusted Wilson, n the valid votes. ``perturbation`` null is
        the control arm, else the experimental arm.

    Notes
    -----
    Invalid votes are dropped and counted. With sequential stopping only the first vote in each
    order counts, as undecided pairs are asked more often.

    References
    ----------
    Chen et al. (2024), Humans or LLMs as the Judge? arXiv:2402.10669. methods.md, section 5.

    Examples
    --------
    Of the choices first, tie, tie, second and invalid, two of four are ties: .5.
    """
    return portions(
        "tie_rate",
        votes_by_order(tallies).with_columns(
            num=pl.col("tie_12") + pl.col("tie_21"),
            den=pl.col("valid"),
            dropped=pl.col("planned") - pl.col("stopped") - pl.col("valid"),
        ),
        arm_groups(tallies),
    )
