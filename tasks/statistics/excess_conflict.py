"""Excess conflict: disagreement between the orders beyond disagreement within an order."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.counting.cells import differences, means, stopped_early
from tasks.counting.positions import ORDERS, VERDICTS, VOTES, arm_groups, arms, reasoned
from tasks.statistics import Rows, statistic

SINGLE_VOTES = "no pair has two valid votes in each order"


@statistic(
    source="methods.md, section 5",
    gives=("within_order_agreement", "across_order_agreement", "excess_conflict"),
    family="position",
    rows={"excess_conflict": {"null": 0.0}},
    missing=SINGLE_VOTES,
)
def excess_conflict(tallies: DataFrame[Tallies]) -> Rows:
    """Measure how much more votes differ between the two orders than within one.

    W: probability that two votes in the same order agree (name the same answer, or are both ties),
    averaged over the two orders; X: that votes in different orders agree. With c_k the count of
    verdict k and n the valid votes in an order, ``W_order = sum_k c_k (c_k - 1) / (n (n - 1))`` and
    ``X = sum_k c_k c'_k / (n n')``, means over pairs; ``excess_conflict = W - X``.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        Three rows per cell, n the pairs. W and X by cluster-adjusted Wilson, their difference by
        cluster-linearised t, without a p-value. ``perturbation`` null is the control arm, else the
        experimental arm.

    Notes
    -----
    Pairs without two valid votes in each order are dropped and counted. It is unbiased for
    ``1/2 sum_k (p_k - p'_k)^2`` with p, p' the probabilities of the verdicts in the two orders: 0
    if the order changes nothing, above 0 otherwise, be it from position bias or from noise that
    depends on the prompt. So a judge without position bias need not have 0: with prompt noise of
    one logit alone, a test against 0 rejects in .60 of studies, permuted or not, so none is
    reported. ``position_kappa`` and ``position_gap`` are tests of position bias.
    ``position_consistency`` estimates X alone, so it means little without W. Null with sequential
    stopping, as undecided pairs are asked more often.

    References
    ----------
    methods.md, section 5. Hoeffding (1948), Annals of Mathematical Statistics 19, 293-325.

    Examples
    --------
    Three votes in each order, for the anchor twice and the target once, and the reverse: W = 2/6
    in both, X = (2 * 1 + 1 * 2) / 9 = 4/9, so W - X = -1/9.
    """
    items = _agreements(arms(tallies, *VOTES))
    groups = arm_groups(tallies)
    within, across = pl.col("within"), pl.col("across")
    rows = [
        means("within_order_agreement", items, within, groups),
        means("across_order_agreement", items, across, groups),
        differences("excess_conflict", items, within, across, groups).with_columns(
            p_value=pl.lit(None, pl.Float64)
        ),
    ]
    return reasoned(pl.concat(rows), tallies, SINGLE_VOTES)


def _agreements(items: pl.DataFrame) -> pl.DataFrame:
    """Add the U-statistics of agreement within and across the orders, per pair."""
    count = {(v, o): pl.col(f"{v}_{o}").cast(pl.Float64) for v in VERDICTS for o in ORDERS}
    n = {o: pl.sum_horizontal(count[v, o] for v in VERDICTS) for o in ORDERS}
    alike = {
        o: pl.sum_horizontal(count[v, o] * (count[v, o] - 1) for v in VERDICTS)
        / (n[o] * (n[o] - 1))
        for o in ORDERS
    }
    both = pl.sum_horizontal(count[v, "12"] * count[v, "21"] for v in VERDICTS)
    enough = (n["12"] > 1) & (n["21"] > 1) & ~stopped_early()
    return items.with_columns(
        within=pl.when(enough).then((alike["12"] + alike["21"]) / 2),
        across=pl.when(enough).then(both / (n["12"] * n["21"])),
    )
