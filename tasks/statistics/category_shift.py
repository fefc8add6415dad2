"""Mean preference shift by category of questions, and a test of equality."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.results import Estimates
from tasks.counting.arms import mean_shift
from tasks.counting.cells import question_categories
from tasks.counting.missing_reasons import NO_SHIFT
from tasks.counting.primary_endpoint import base_value
from tasks.inference.bootstrap import by_chance
from tasks.inference.cluster_sums import Floats, Groups, grouped, numbered
from tasks.inference.linearised_errors import have_enough
from tasks.inference.permutation import FLIP_SEED, sign_flip_test
from tasks.statistics import Rows, statistic

AT_ONCE = 4_000_000
"""Cluster sums by category held in memory at once."""

ONE = "fewer than two categories that have enough questions each"
BARE = "a test of several categories: no interval"


@statistic(
    source="methods.md, section 16 (heterogeneity by category)",
    gives=("category_shift", "category_spread"),
    family="effect",
    unit="score",
    null=0.0,
    needs=("category",),
    missing={"category_shift": NO_SHIFT},
)
def category_shift(tallies: DataFrame[Tallies], shifts: DataFrame[Shifts]) -> Rows:
    """Measure the mean preference shift by category of questions, and test whether they differ.

    With N_k samples and the mean shift m_k in category k, and the overall mean m: ``category_spread
    = sqrt(sum N_k (m_k - m)^2 / N)``. The shift has the same base as the primary endpoint.

    Parameters
    ----------
    tallies
        One row per pair and judge; it has the categories.
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        ``category_shift``: one row per cell and category (``subgroup``), with the interval of a
        mean shift. ``category_spread``: one row per cell, noise included; its p-value tests *all
        categories have the same mean shift* by the wild cluster bootstrap.

    Notes
    -----
    There are no rows if no question has a category. A question whose samples name several has none.
    The test uses the categories with enough questions (:mod:`tasks.inference.linearised_errors`),
    for judges that saw both orders. Residuals from the common mean keep their size, and their signs
    are flipped by question. Unlike permuted labels, this holds its level where shifts vary more in
    one category than in another (simulated .04 to .06, with ten questions per category up to .07;
    permuted labels .13 to .17).

    References
    ----------
    Cameron, Gelbach and Miller (2008), Rev. Econ. Stat. 90, 414-427 (wild cluster bootstrap with
    the null hypothesis imposed). methods.md, section 16.

    Examples
    --------
    Ten questions of one category shift by .5 and ten of another by -.5: both lie .5 from the mean
    0, so the spread is .5.
    """
    known = question_categories(tallies)
    if known.is_empty() or shifts.is_empty():
        return []
    groups = grouped(shifts)
    items = (
        shifts.with_columns(base_score=base_value(shifts, groups))
        .join(known, on=["dataset", "cluster"], how="left", maintain_order="left")
        .with_columns(num=pl.col("experimental_score") - pl.col("base_score"))
        .with_columns(counted=pl.col("num").is_not_null() & pl.col("shown_first").is_null())
    )
    named = items.filter(pl.col("category").is_not_null())
    parts = named.with_columns(subgroup=pl.col("category").cast(pl.String))
    by_category = mean_shift("category_shift", parts, "base_score")
    return [by_category, _tested(items, groups)]


class _Cells(NamedTuple):
    """Cluster sums of some cells of one dataset, shape (cells, clusters)."""

    at: slice
    shift: Floats
    samples: Floats
    member: Floats
    """Whether a cluster belongs to a category, shape (clusters, categories)."""


def _tested(items: pl.DataFrame, groups: Groups) -> DataFrame[Estimates]:
    many = groups.cells.height
    spread, p_value = np.full((2, many), np.nan)
    samples, clusters = np.zeros((2, many), np.int64)
    for cells in _blocks(items, groups):
        seen = cells.samples > 0
        # A category counts in a cell with enough of its questions.
        sizes = (np.where(own, cells.samples, 0.0).T for own in cells.member.T > 0)
        enough = np.stack([have_enough(each) for each in sizes], axis=1)
        kept = (enough.astype(np.float64) @ cells.member.T > 0) & seen
        shift, number = np.where(kept, cells.shift, 0.0), np.where(kept, cells.samples, 0.0)
        total = np.maximum(number.sum(axis=1, keepdims=True), 1.0)
        residual = shift - number * shift.sum(axis=1, keepdims=True) / total
        sums = residual[:, None, :] * cells.member.T
        weights = np.maximum(number @ cells.member, 1.0)[:, :, None]

        def between(totals: Floats, weights: Floats = weights, total: Floats = total) -> Floats:
            """Return ``sum N_k (m_k - m)^2 / N`` from totals by category."""
            whole = totals.sum(axis=1)
            found: Floats = ((totals**2 / weights).sum(axis=1) - whole**2 / total) / total
            return found

        able = enough.sum(axis=1) > 1
        observed = np.sqrt(np.maximum(between(sums.sum(axis=2, keepdims=True))[:, 0], 0.0))
        spread[cells.at] = np.where(able, observed, np.nan)
        samples[cells.at] = np.where(able, number.sum(axis=1), 0).astype(np.int64)
        clusters[cells.at] = np.where(able, kept.sum(axis=1), 0)
        if by_chance() and able.any():
            p_value[cells.at] = np.where(able, sign_flip_test(sums, between), np.nan)
    all_samples = groups.by_cell(pl.Series(np.ones(items.height))).astype(np.int64)
    return Estimates.draft(
        groups.cells.with_columns(
            statistic=pl.lit("category_spread"),
            estimate=pl.Series(spread).fill_nan(None),
            p_value=pl.Series(p_value).fill_nan(None),
            n=pl.Series(samples),
            clusters=pl.Series(clusters),
            dropped=pl.Series(all_samples - samples),
        ).with_columns(
            method=pl.when(pl.col("p_value").is_not_null())
            .then(pl.lit("wild cluster bootstrap"))
            .otherwise(pl.lit("none")),
            seed=pl.when(pl.col("p_value").is_not_null()).then(pl.lit(FLIP_SEED, pl.Int64)),
            reason=pl.when(pl.col("estimate").is_null()).then(pl.lit(ONE)).otherwise(pl.lit(BARE)),
        )
    )


def _blocks(items: pl.DataFrame, groups: Groups) -> Iterator[_Cells]:
    codes, categories = numbered(items["category"])
    of_cluster = np.zeros(int(groups.starts[-1]), np.int64)
    of_cluster[groups.place] = codes
    valid = items["counted"]
    shift = groups.by_cluster(items.select(pl.when(valid).then("num")).to_series())
    samples = groups.by_cluster(valid)
    null = int(items["category"].null_count() > 0)
    for cells in groups.blocks():
        code = groups.table(of_cluster, cells)
        count, clusters = code.shape
        own = np.arange(null, categories)
        own = own[np.isin(own, code)]
        member = (code.max(axis=0)[:, None] == own).astype(np.float64)
        step = max(1, AT_ONCE // max(1, clusters * len(own)))
        for first in range(0, count, step):
            some = slice(cells.start + first, cells.start + min(first + step, count))
            yield _Cells(some, groups.table(shift, some), groups.table(samples, some), member)
