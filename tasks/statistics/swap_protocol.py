"""Swap protocol: win rates that count only wins in both orders."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.counting.cells import portions, weighted_shares
from tasks.counting.missing_reasons import NO_REPEAT_IN_BOTH_ORDERS
from tasks.counting.positions import arm_groups, matches
from tasks.statistics import Rows, statistic


@statistic(
    source="arXiv:2306.05685, section 3.4; arXiv:2305.17926",
    gives=("swap_win_rate", "swap_tie_rate", "swap_inconsistent_rate"),
    family="position",
    missing=NO_REPEAT_IN_BOTH_ORDERS,
)
def swap_protocol(tallies: DataFrame[Tallies]) -> Rows:
    """Measure the target's win rate if a win needs both orders and everything else is a tie.

    Over matches of votes of equal repeat, n of them with two valid votes: ``swap_win_rate = (wins
    in both orders + ties / 2) / n``; ``swap_tie_rate`` the ties, be they two votes for a tie or
    votes that differ; ``swap_inconsistent_rate`` the latter only.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        Three rows per cell, by cluster-adjusted Wilson. ``perturbation`` null is the control arm,
        else the experimental arm.

    Notes
    -----
    A match with an invalid vote is dropped and counted: an error is not a tie. Consistent ties are
    the difference of the last two rows, and the anchor's win rate is 1 minus the target's. Both
    papers ask once in each order; further repeats are further matches. With sequential stopping
    only the first vote in each order counts.

    References
    ----------
    Zheng et al. (2023), Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena, arXiv:2306.05685.
    Wang et al. (2023), Large Language Models are not Fair Evaluators, arXiv:2305.17926.

    Examples
    --------
    (second, first) is a win of the target, (tie, tie) a tie, (first, first) and (second, tie) are
    inconsistent: win rate (1 + 3/2) / 4 = .625, ties .75, inconsistent .5.
    """
    clash = pl.col("primacy") + pl.col("recency")
    items = matches(tallies).with_columns(
        den=pl.col("valid"), counted=pl.col("valid"), ties=pl.col("both_tie") + clash
    )
    wins = items.with_columns(
        den=pl.col("valid").cast(pl.Float64), num=pl.col("both_target") + pl.col("ties") / 2
    )
    groups = arm_groups(tallies)
    return [
        weighted_shares("swap_win_rate", wins, groups),
        portions("swap_tie_rate", items.with_columns(num=pl.col("ties")), groups),
        portions("swap_inconsistent_rate", items.with_columns(num=clash), groups),
    ]
