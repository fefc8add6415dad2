"""Rates of arms with unequal votes per pair, which are not compared (methods, section 1)."""

from collections.abc import Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.inference.cluster_sums import PART, Groups, most_common

UNEQUAL = "unequal votes per pair"


NUMBERS = (
    "estimate",
    "low",
    "high",
    "level",
    "boot_low",
    "boot_high",
    "standard_error",
    "p_value",
    "hits",
)


def planned(arm: str) -> pl.Expr:
    """Return the votes per pair of ``arm``; where it was not asked those of the experimental."""
    return pl.coalesce(f"{arm}_votes", "votes")


def even(
    rows: DataFrame[Estimates], items: pl.DataFrame, groups: Groups, arms: Sequence[str]
) -> DataFrame[Estimates]:
    """Take back estimates of cells whose ``arms`` have other votes per pair than the experimental.

    ``items`` have ``votes`` and ``control_votes``, ``sham_votes`` or ``replicate_votes``; of each
    arm of a cell the most common number counts.
    """
    cells = _cells(items, groups, arms)
    if rows.is_empty() or cells is None:
        return rows
    uneven = pl.any_horizontal(pl.col(f"of_{arm}") != pl.col("of_all") for arm in arms)
    marked = rows.join(
        cells.select(*PART, uneven=uneven),
        on=PART,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return Estimates.draft(
        marked.with_columns(
            pl.when(~pl.col("uneven")).then(pl.col(NUMBERS)),
            pl.when(~pl.col("uneven")).then(pl.col("n", "clusters")).otherwise(0),
            df=pl.when(~pl.col("uneven")).then("df"),
            dropped=pl.col("dropped") + pl.when("uneven").then("n").otherwise(0),
            method=pl.when("uneven").then(pl.lit("none")).otherwise("method"),
            reason=pl.when("uneven").then(pl.lit(UNEQUAL)).otherwise("reason"),
        )
    )


def with_votes_of(
    rows: DataFrame[Estimates], items: pl.DataFrame, groups: Groups, arm: str
) -> DataFrame[Estimates]:
    """Say in the method how many votes per pair ``arm`` has where the experimental has others."""
    cells = _cells(items, groups, [arm])
    if rows.is_empty() or cells is None:
        return rows
    marked = rows.join(cells, on=PART, how="left", nulls_equal=True, maintain_order="left")
    told = pl.col("estimate").is_not_null() & (pl.col(f"of_{arm}") != pl.col("of_all"))
    noted = pl.format("{}; {} votes per pair in {}", "method", f"of_{arm}", pl.lit(arm))
    return Estimates.draft(
        marked.with_columns(method=pl.when(told).then(noted).otherwise("method"))
    )


def _cells(items: pl.DataFrame, groups: Groups, arms: Sequence[str]) -> pl.DataFrame | None:
    """Return the votes per pair of each cell's arms, or nothing where all are alike."""
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
