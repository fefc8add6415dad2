"""Win rates of models according to the judge."""

from functools import partial

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Contests
from schemas.results import Estimates
from tasks.counting.cells import ratios, valued, weighted_shares
from tasks.counting.contests import differences, of_people, sides
from tasks.counting.missing_reasons import NO_CONTEST
from tasks.counting.order_halves import by_order, without_biased_orders
from tasks.inference.cluster_sums import Groups, grouped
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 12",
    gives=("win_rate_naive", "win_rate", "win_rate_difference"),
    family="correction",
    null=0.5,
    rows={"win_rate_naive": {"order": "needed"}, "win_rate_difference": {"null": 0.0}},
    needs=("anchor_author", "target_author"),
    missing={
        "win_rate_naive": "no contest of these models has a valid vote with the first model first",
        **dict.fromkeys(("win_rate", "win_rate_difference"), NO_CONTEST),
    },
)
def win_rate(contests: DataFrame[Contests]) -> Rows:
    """Measure how often a model wins, without and with the swap of orders (the first correction).

    ``win_rate = mean_i s(i)``, s the model's mean score over both orders, ties half;
    ``win_rate_naive`` the same from the votes that show the anchor first, as if orders had not been
    swapped; ``win_rate_difference = mean_i (s_X(i) - s_Y(i))`` over contests of X and of Y with the
    same opponent on the same question.

    Parameters
    ----------
    contests
        One row per judge and control pair of two models.

    Returns
    -------
    Estimates
        For each model against all others (``subgroup`` its name) and for each pair of models
        (``subgroup`` "X vs Y", the rate of X), by cluster-adjusted Wilson; differences by cluster
        linearisation, with a p-value against 0. Two or more people also have rows together
        (``judge`` is ``humans``), in which each of their votes counts once.

    Notes
    -----
    The order of corrections: swap average (here), length and style (``length_controlled``,
    ``style_controlled``), human labels (``ppi``, ``rogan_gladen``). The interval is about the
    judge's opinion; it ignores how far the judge differs from people. A contest without a valid
    vote in each order is dropped. Contests between X and Y do not count in their difference. If a
    judge saw every contest in one order, ``win_rate`` and ``win_rate_difference`` are the mean of
    two halves, with the model shown first and second; they assume orders drawn at random, and are
    null if the order depends on the models.

    References
    ----------
    methods.md, sections 3 and 12.

    Examples
    --------
    Anchor "a", target "b", the first slot wins in both orders: naive, a wins 1; swapped, .5.
    """
    judged = (some for some in (contests, of_people(contests)) if not some.is_empty())
    return [rows for some in judged for rows in _measured(some)]


def _measured(contests: DataFrame[Contests]) -> list[pl.DataFrame]:
    rows = sides(contests)
    groups = grouped(rows)
    naive = weighted_shares("win_rate_naive", valued(rows, pl.col("naive")), groups)
    swapped = pl.concat([win_rates(rows, groups), *map(_differences, differences(rows))])
    return [naive, without_biased_orders(Estimates.draft(swapped), contests)]


def win_rates(rows: pl.DataFrame, groups: Groups | None = None) -> DataFrame[Estimates]:
    """Return the mean score of each model and pair of models."""
    return by_order(valued(rows, pl.col("score")), partial(weighted_shares, "win_rate"), groups)


def _differences(pairs: pl.DataFrame) -> DataFrame[Estimates]:
    return by_order(valued(pairs, pl.col("score")), partial(ratios, "win_rate_difference"))
