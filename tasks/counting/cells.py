"""Estimates per cell from items: cluster sums first, then all intervals at once.

An estimate that compares arms with unequal votes per pair is suppressed (methods, section 1).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.inference import intervals
from tasks.inference.bootstrap import BOOT, boot_ends, bounds
from tasks.inference.cluster_sums import PART, Groups, grouped, join_cells, most_common
from tasks.inference.intervals import LEVEL, moments

Solve = Callable[[pl.DataFrame], pl.DataFrame]
UNEQUAL = "unequal votes per pair"
NUMBERS = ("estimate", "low", "high", "level", *BOOT, "standard_error", "p_value", "hits")


def stopped_early() -> pl.Expr:
    """Tell whether sequential stopping left out some votes of a judge.

    Then votes beyond the first in each order are not a random sample of the judge's votes.
    """
    return (pl.col("stopped") > 0).any().over("dataset", "judge", "prompt", "wave")


def shares(name: str, items: pl.DataFrame, groups: Groups | None = None) -> DataFrame[Estimates]:
    """Return the share of counted items that are hits in each cell, with cluster-adjusted Wilson.

    ``items`` has the cell's columns, ``cluster, kind, votes, simulated``, and ``counted`` (in the
    denominator), ``hit`` (in the numerator), ``dropped`` (unknown). ``groups`` are the groups of
    the items, for several statistics of the same items.
    """
    return portions(
        name,
        items.with_columns(
            num=(pl.col("counted") & pl.col("hit")).fill_null(value=False),
            den=pl.col("counted").fill_null(value=False),
        ),
        groups,
    )


def known_shares(
    name: str, items: pl.DataFrame, hit: pl.Expr, groups: Groups | None = None
) -> DataFrame[Estimates]:
    """Return the share of hits in each cell among the items for which ``hit`` is not null."""
    known = hit.is_not_null()
    return shares(name, items.with_columns(counted=known, hit=hit, dropped=~known), groups)


def portions(name: str, items: pl.DataFrame, groups: Groups | None = None) -> DataFrame[Estimates]:
    """Return ``sum num / sum den`` of counts in each cell, with cluster-adjusted Wilson.

    ``items`` has the columns of :func:`shares`, but instead of ``counted`` and ``hit`` it has
    counts: ``den``, and the hits among them, ``num``; ``dropped`` may be a count too.
    """
    things = items.drop("counted", strict=False)
    return _estimates(name, things, intervals.proportions, groups, hits=True)


def weighted_shares(
    name: str, items: pl.DataFrame, groups: Groups | None = None
) -> DataFrame[Estimates]:
    """Return the proportion ``sum num / sum den`` in each cell, with cluster-adjusted Wilson.

    ``items`` has the columns of :func:`shares` without ``hit``, and ``0 <= num <= den``, where
    ``num`` may be an average.
    """
    solve = partial(intervals.proportions, whole=False)
    return _estimates(name, _zero_unless_counted(items), solve, groups)


def means(
    name: str, items: pl.DataFrame, value: pl.Expr, groups: Groups | None = None
) -> DataFrame[Estimates]:
    """Return the mean of a value in [0, 1] in each cell, over the items where it is not null."""
    return weighted_shares(name, valued(items, value), groups)


def valued(items: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """Count the items where ``value`` is not null, with it as ``num``, for a mean."""
    known = value.is_not_null()
    return items.with_columns(num=value, den=pl.lit(1.0), counted=known, dropped=~known)


def differences(
    name: str,
    items: pl.DataFrame,
    minuend: pl.Expr,
    subtrahend: pl.Expr,
    groups: Groups | None = None,
) -> DataFrame[Estimates]:
    """Return the mean difference of two values in [0, 1] in each cell, where both are known."""
    return ratios(name, valued(items, minuend - subtrahend), groups)


def ratios(
    name: str, items: pl.DataFrame, groups: Groups | None = None, *, bounded: bool = True
) -> DataFrame[Estimates]:
    """Return ``sum num / sum den`` in each cell by cluster linearisation.

    ``items`` has the columns of :func:`shares` without ``hit`` (``counted`` may be a number), and
    ``num``, from ``-den`` to ``den``. The interval is cut to [-1, 1], unless ratios are not
    ``bounded`` so.
    """
    solve = partial(intervals.ratios, bounded=bounded)
    return _estimates(name, _zero_unless_counted(items), solve, groups)


def _zero_unless_counted(items: pl.DataFrame) -> pl.DataFrame:
    counted = pl.col("counted").cast(pl.Int64) > 0
    return items.with_columns(pl.when(counted).then(pl.col("num", "den")).otherwise(0.0))


def _estimates(
    name: str, items: pl.DataFrame, solve: Solve, groups: Groups | None, *, hits: bool = False
) -> DataFrame[Estimates]:
    if items.is_empty():
        return Estimates.empty()
    cells = reduced(items, groups, bounded=True)
    found = cells.hstack(solve(cells))
    return Estimates.draft(
        found.with_columns(
            statistic=pl.lit(name),
            level=pl.when(pl.any_horizontal(pl.col("low", "boot_low").is_not_null())).then(LEVEL),
            hits=pl.col("num").round().cast(pl.Int64) if hits else None,
            n=pl.col("counted"),
        )
    )


def reduced(
    items: pl.DataFrame, groups: Groups | None = None, *, bounded: bool = False
) -> pl.DataFrame:
    """Return one row per cell: keys, moments, counts and, if ``bounded``, bootstrap bounds.

    ``items`` has the columns of :func:`ratios`; ``counted`` may be missing where it equals ``den``.
    """
    counted = ["counted"] if "counted" in items.columns else []
    found = [
        _reduced(
            some,
            items if isinstance(at, slice) else items.select("num", "den", *counted, "dropped")[at],
            bounded=bounded,
        )
        for some, at in (groups or grouped(items)).chunks()
    ]
    return found[0] if len(found) == 1 else pl.concat(found)


def _reduced(groups: Groups, columns: pl.DataFrame, *, bounded: bool) -> pl.DataFrame:
    sums = {name: groups.by_cluster(columns[name]) for name in ("num", "den")}
    sums["counted"] = groups.by_cluster(columns["counted"]) if "counted" in columns else sums["den"]
    counts = {
        "counted": groups.of_cells(sums["counted"]),
        "dropped": groups.by_cell(columns["dropped"]),
    }
    ends = boot_ends(bounds(groups, sums["num"], sums["den"], sums["counted"])) if bounded else []
    totals = [pl.Series(name, values.astype(np.int64)) for name, values in counts.items()]
    return groups.cells.hstack([*moments(sums, groups.starts), *totals, *ends])


def planned(arm: str) -> pl.Expr:
    """Return the votes per pair of ``arm`` or, where it was not asked, of the experimental arm."""
    return pl.coalesce(f"{arm}_votes", "votes")


def even(
    found: pl.DataFrame, items: pl.DataFrame, groups: Groups, arms: Sequence[str]
) -> DataFrame[Estimates]:
    """Suppress estimates of cells whose ``arms`` differ from experimental in votes per pair.

    ``items`` has ``votes`` and ``control_votes``, ``sham_votes`` or ``replicate_votes``; the mode
    of each arm of a cell is compared.
    """
    rows = Estimates.draft(found)
    cells = _votes_per_pair(items, groups, arms)
    if rows.is_empty() or cells is None:
        return rows
    uneven = pl.any_horizontal(pl.col(f"of_{arm}") != pl.col("of_all") for arm in arms)
    marked = join_cells(rows, cells.select(*PART, uneven=uneven))
    why = pl.when("uneven").then(pl.lit(UNEQUAL))
    return suppressed(marked.with_columns(df=pl.when(~pl.col("uneven")).then("df")), why)


def rescaled(rows: pl.DataFrame, by: float, start: float = 0.0) -> pl.DataFrame:
    """Return estimates on a scale that is ``by`` times as wide and whose 0 is ``start``."""
    return rows.with_columns(
        pl.col("estimate", "low", "high", "boot_low", "boot_high") * by + start,
        standard_error=pl.col("standard_error") * by,
    )


def suppressed(rows: pl.DataFrame, why: pl.Expr) -> DataFrame[Estimates]:
    """Remove the numbers of rows that have a reason ``why``; what they counted is dropped."""
    kept = why.is_null()
    return Estimates.draft(
        rows.with_columns(
            pl.when(kept).then(pl.col(NUMBERS)),
            pl.when(kept).then(pl.col("n", "clusters")).otherwise(0),
            dropped=pl.col("dropped") + pl.when(kept).then(0).otherwise("n"),
            method=pl.when(kept).then("method").otherwise(pl.lit("none")),
            reason=pl.coalesce(why, "reason"),
        )
    )


def with_votes_of(
    rows: DataFrame[Estimates], items: pl.DataFrame, groups: Groups, arm: str
) -> DataFrame[Estimates]:
    """Note the votes per pair of ``arm`` in the method where they differ from experimental."""
    cells = _votes_per_pair(items, groups, [arm])
    if rows.is_empty() or cells is None:
        return rows
    marked = join_cells(rows, cells)
    differs = pl.col("estimate").is_not_null() & (pl.col(f"of_{arm}") != pl.col("of_all"))
    noted = pl.format("{}; {} votes per pair in {}", "method", f"of_{arm}", pl.lit(arm))
    return Estimates.draft(
        marked.with_columns(method=pl.when(differs).then(noted).otherwise("method"))
    )


def _votes_per_pair(
    items: pl.DataFrame, groups: Groups, arms: Sequence[str]
) -> pl.DataFrame | None:
    """Return the votes per pair of each cell's arms, or None if all are equal."""
    votes = {"all": items["votes"], **{arm: items.select(planned(arm)).to_series() for arm in arms}}
    if all((each == items["votes"]).all() for each in votes.values()):
        return None
    return groups.cells.select(
        *PART,
        **{
            f"of_{name}": pl.Series(most_common(groups.cell, each, groups.cells.height))
            for name, each in votes.items()
        },
    )


def question_categories(rows: pl.DataFrame) -> pl.DataFrame:
    """Return ``dataset, cluster, category`` of each question that has exactly one category."""
    return (
        rows.filter(pl.col("category").is_not_null())
        .group_by("dataset", "cluster")
        .agg(pl.col("category").first(), many=pl.col("category").n_unique())
        .filter(pl.col("many") == 1)
        .drop("many")
    )
