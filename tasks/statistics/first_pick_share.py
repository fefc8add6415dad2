"""Position bias: share of first picks, position gap, and an exact test."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.keys import CELL
from schemas.results import Estimates
from tasks.counting.cells import ratios, rescaled, weighted_shares
from tasks.counting.missing_reasons import NO_SLOT_PREFERRED
from tasks.counting.positions import ORDERS, VERDICTS, arm_groups, first_matches, votes_by_order
from tasks.inference.cluster_sums import Groups, join_cells
from tasks.inference.intervals import LEVEL, SINGLE, arrays, clopper_pearson
from tasks.inference.permutation import sign_test
from tasks.statistics import Rows, statistic

ONE_ORDER = "votes in one order only: the effects of slot and answer cannot be separated"
NO_CONFLICT = "no match of repeat 0 is inconsistent"
SEVERAL = "conflicts within a cluster are not independent (see preference_fairness): no interval"


@statistic(
    source="methods.md, section 5",
    gives=("first_pick_share", "position_gap", "primacy_test"),
    family="position",
    null=0.0,
    rows={"first_pick_share": {"null": 0.5}},
    missing={
        **dict.fromkeys(("first_pick_share", "position_gap"), NO_SLOT_PREFERRED),
        "primacy_test": "no pair is judged differently in the two orders",
    },
)
def first_pick_share(tallies: DataFrame[Tallies]) -> Rows:
    """Measure how often the first slot wins among votes without ties.

    ``share = first / (first + second)``, ``position_gap = share - 1/2``, ``primacy_test =
    (primacy - recency) / (primacy + recency)`` over the matches of repeat 0.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        Three rows per cell: the share by cluster-adjusted Wilson; the gap in [-1/2, 1/2] by cluster
        linearisation; the exact test (two-sided binomial, primacy against recency) with the
        interval of Clopper and Pearson, in [-1, 1], ``hits`` the primacies, n the conflicts.
        ``perturbation`` null is the control arm, else the experimental arm.

    Notes
    -----
    Invalid votes are ``dropped``; ties are neither counted nor dropped. If all votes are in one
    order the result is null, as slot and answer are confounded. The exact test needs independent
    conflicts, so if a cluster has two of them only its estimate is given; for the t test over all
    matches see ``preference_fairness``. With sequential stopping only the first vote in each order
    counts.

    References
    ----------
    methods.md, section 5. Clopper and Pearson (1934), Biometrika 26, 404-413.

    Examples
    --------
    Choices first, first, first, second, tie: share 3/4, gap 1/4. Six primacies and one recency:
    5/7, p = 2 (1 + 7) / 2^7 = .125.
    """
    items = votes_by_order(tallies)
    groups = arm_groups(tallies)
    both = _both_orders(items, groups)
    straight = pl.Series(both[groups.cell])
    first = pl.col("anchor_12") + pl.col("target_21")
    second = pl.col("target_12") + pl.col("anchor_21")
    items = (
        items.with_columns(
            first=pl.when(straight).then(first).otherwise(0),
            second=pl.when(straight).then(second).otherwise(0),
            dropped=pl.col("planned") - pl.col("stopped") - pl.col("valid"),
        )
        .with_columns(
            pl.col("first", "second").cast(pl.Float64), counted=pl.col("first") + pl.col("second")
        )
        .with_columns(den=pl.col("counted").cast(pl.Float64))
    )
    share = _share(items, groups)
    twice = items.with_columns(num=pl.col("first") - pl.col("second"))
    # Half of first minus second is the share minus 1/2.
    gap = rescaled(ratios("position_gap", twice, groups), 0.5)
    silent = groups.cells.select(
        *CELL, one_order=pl.Series(~both & (groups.by_cell(items["valid"]) > 0))
    )
    return [_with_reason(pl.concat([share, gap]), silent), _exact(tallies)]


def _share(items: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Return the share of first picks; with balanced orders it varies less than single votes."""
    rows = weighted_shares("first_pick_share", items.with_columns(num=pl.col("first")), groups)
    return rows.with_columns(
        hits=(pl.col("estimate") * pl.col("n")).round().cast(pl.Int64).fill_null(0)
    )


def _both_orders(items: pl.DataFrame, groups: Groups) -> NDArray[np.bool_]:
    """Tell which cells have valid votes in both orders, shape (cells,)."""
    valid = items.select(
        (pl.sum_horizontal(f"{verdict}_{order}" for verdict in VERDICTS) > 0).alias(order)
        for order in ORDERS
    )
    one, other = (groups.by_cell(valid[order]) > 0 for order in ORDERS)
    return np.asarray(one & other)


def _with_reason(rows: pl.DataFrame, silent: pl.DataFrame) -> pl.DataFrame:
    return join_cells(rows, silent, on=CELL).with_columns(
        reason=pl.when("one_order").then(pl.lit(ONE_ORDER)).otherwise("reason")
    )


def _exact(tallies: pl.DataFrame) -> DataFrame[Estimates]:
    items = first_matches(tallies)
    groups = arm_groups(tallies)
    one, other = (groups.by_cluster(items[name]) for name in ("primacy", "recency"))
    conflicts = one + other
    most = np.maximum.reduceat(conflicts, groups.starts[:-1]) if len(conflicts) else conflicts
    counts = {
        "dropped": groups.by_cell(items["dropped"]),
        "hits": groups.of_cells(one),
        "n": groups.of_cells(conflicts),
        "most": most,
        "clusters": groups.of_cells((conflicts > 0).astype(np.float64)),
    }
    cells = groups.cells.with_columns(
        pl.Series(name, values.astype(np.int64)) for name, values in counts.items()
    )
    hits, n = arrays(cells, "hits", "n")
    voted = n > 0
    k, of = np.where(voted, hits, 1.0), np.where(voted, n, 2.0)
    low, high = clopper_pearson(k, of, LEVEL)
    columns: dict[str, Any] = {
        "low": 2 * low - 1,
        "high": 2 * high - 1,
        "p_value": sign_test(k, of - k),
    }
    some = pl.col("n") > 0
    apart = pl.col("most") == 1
    exact = some & apart & (pl.col("clusters") > 1)
    found = cells.with_columns(
        pl.when(exact).then(pl.Series(values)).alias(name) for name, values in columns.items()
    ).with_columns(
        statistic=pl.lit("primacy_test"),
        subgroup=pl.lit(""),
        estimate=pl.when(some).then((2 * pl.col("hits") - pl.col("n")) / pl.col("n")),
        level=pl.when(exact).then(LEVEL),
        method=pl.when(exact).then(pl.lit("exact binomial")).otherwise(pl.lit("none")),
        reason=pl.when(~some)
        .then(pl.lit(NO_CONFLICT))
        .when(~apart)
        .then(pl.lit(SEVERAL))
        .when(~exact)
        .then(pl.lit(SINGLE)),
    )
    return Estimates.draft(found)
