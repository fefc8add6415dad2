"""Position consistency, primacy, recency and preference fairness."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.counting.cells import portions, ratios
from tasks.counting.missing_reasons import NO_REPEAT_IN_BOTH_ORDERS
from tasks.counting.positions import arm_groups, matches
from tasks.statistics import Rows, statistic

COUNTED = {"position_consistency": "consistent", "primacy": "primacy", "recency": "recency"}


@statistic(
    source="arXiv:2406.07791, section 3; methods.md, section 5",
    gives=("position_consistency", "primacy", "recency", "preference_fairness"),
    family="position",
    rows={"preference_fairness": {"null": 0.0}},
    missing=NO_REPEAT_IN_BOTH_ORDERS,
)
def position_consistency(tallies: DataFrame[Tallies]) -> Rows:
    """Measure how often both orders of a pair give the same verdict, and which slot wins if not.

    Votes of equal repeat in the two orders are matched; n valid matches. Consistent: the same
    answer preferred, or two ties. Primacy: inconsistent with a vote ``first``; recency:
    inconsistent with a vote ``second``. ``preference_fairness = (recency - primacy) / n``.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        Four rows per cell: shares in [0, 1], fairness in [-1, 1] (-1 always the first slot).
        ``perturbation`` null is the control arm, else the experimental arm. The t test of fairness
        compares primacy and recency over all matches; ``primacy_test`` is the exact test.

    Notes
    -----
    A match with an invalid vote is dropped and counted, unlike in Shi et al. (see
    ``lenient_consistency``). Their fairness divides by all matches, ours by the valid ones, so
    theirs is ``fairness n / (n + dropped)``. Votes whose other order was never asked, as happens
    with random positions, are ignored. With sequential stopping only the first vote in each order
    counts, as undecided pairs are asked more often. Noise also causes inconsistency: see
    ``excess_conflict``.

    References
    ----------
    Shi et al. (2024), Judging the Judges, arXiv:2406.07791.

    Examples
    --------
    (first, second) names the same answer twice: consistent. (first, first) is primacy,
    (second, tie) recency: consistency 1/3, fairness 0.
    """
    items = matches(tallies).with_columns(den=pl.col("valid"))
    groups = arm_groups(tallies)
    rows = [
        portions(name, items.with_columns(num=pl.col(column)), groups)
        for name, column in COUNTED.items()
    ]
    fairness = items.with_columns(
        pl.col("den").cast(pl.Float64),
        counted=pl.col("den"),
        num=pl.col("recency").cast(pl.Float64) - pl.col("primacy").cast(pl.Float64),
    )
    return [*rows, ratios("preference_fairness", fairness, groups)]
