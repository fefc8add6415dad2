"""Repetition stability: agreement of repeated votes on the same prompt."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.counting.cells import stopped_early, weighted_shares
from tasks.counting.missing_reasons import NO_VALID_VOTE
from tasks.counting.positions import ORDERS, VERDICTS, VOTES, arm_groups, arms, reasoned
from tasks.inference.cluster_sums import Groups
from tasks.statistics import Rows, statistic

SINGLE_VOTES = "no pair has two valid votes in the same order"


@statistic(
    source="arXiv:2406.07791, section 3; methods.md, section 5",
    gives=("repetition_stability", "repetition_stability_asked"),
    family="position",
    missing=NO_VALID_VOTE,
)
def repetition_stability(tallies: DataFrame[Tallies]) -> Rows:
    """Measure how often the repeats of a prompt agree with their most frequent verdict.

    Mean over pairs and orders of the largest verdict count divided by the valid votes in that
    order; ``repetition_stability_asked`` divides by the votes asked, as Shi et al. do.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        Two rows per cell, by cluster-adjusted Wilson; n the orders of pairs with a valid vote.
        ``perturbation`` null is the control arm, else the experimental arm.

    Notes
    -----
    Orders without a valid vote are dropped and counted. An order with one valid vote counts as
    stable; if no order of the cell has two, nothing was repeated, and both rows are null. They are
    also null with sequential stopping, as undecided pairs are asked more often. With three verdicts
    the value is at least 1/3, and fewer repeats look more stable: compare equal ``votes_per_pair``
    only.

    References
    ----------
    Shi et al. (2024), Judging the Judges, arXiv:2406.07791.

    Examples
    --------
    One order with first, first, second and one with tie, tie, invalid: (2/3 + 2/2) / 2 = .833;
    over the votes asked (2/3 + 2/3) / 2 = .667.
    """
    pairs = arms(tallies, *VOTES, "planned_12")
    groups = arm_groups(tallies)
    items = _by_pair(pairs, groups)
    rows = [
        weighted_shares(name, items.with_columns(num=pl.col(column)), groups)
        for name, column in (
            ("repetition_stability", "stable"),
            ("repetition_stability_asked", "stable_asked"),
        )
    ]
    return reasoned(pl.concat(rows), tallies, SINGLE_VOTES)


def _by_pair(items: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Sum both orders of each pair: ``den`` orders with a valid vote, and their shares."""
    asked = {"12": pl.col("planned_12"), "21": pl.col("planned") - pl.col("planned_12")}
    valid = {o: pl.sum_horizontal(f"{verdict}_{o}" for verdict in VERDICTS) for o in ORDERS}
    most = {o: pl.max_horizontal(f"{verdict}_{o}" for verdict in VERDICTS) for o in ORDERS}
    twice = pl.max_horizontal(valid.values()) > 1
    # Pairs in cells without repeats stay, uncounted, so that the cell keeps its row.
    enough = pl.Series(groups.by_cell(items.select(twice).to_series())[groups.cell] > 0)
    if (items["stopped"] > 0).any():
        enough &= items.select(~stopped_early()).to_series()
    return items.with_columns(
        den=pl.when(enough)
        .then(pl.sum_horizontal((valid[o] > 0).cast(pl.Int64) for o in ORDERS))
        .otherwise(0),
        stable=pl.sum_horizontal(_share(most[o], valid[o]) for o in ORDERS),
        stable_asked=pl.sum_horizontal(_share(most[o], asked[o]) for o in ORDERS),
        dropped=pl.sum_horizontal(
            ((asked[o] > 0) & (valid[o] == 0)).cast(pl.Int64) for o in ORDERS
        ),
    ).with_columns(counted=pl.col("den"))


def _share(most: pl.Expr, of: pl.Expr) -> pl.Expr:
    return pl.when(most > 0).then(most / of).otherwise(0.0)
