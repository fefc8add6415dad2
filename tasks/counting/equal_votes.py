"""Suppression of comparisons between arms with unequal votes per pair (methods, section 1)."""

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
    """Return the votes per pair of ``arm`` or, where it was not asked, of the experimental arm."""
    return pl.coalesce(f"{arm}_votes", "votes")


def even(
    rows: DataFrame[Estimates], items: pl.DataFrame, groups: Groups, arms: Sequence[str]
) -> DataFrame[Estimates]:
    """Suppress estimates of cells whose ``arms`` differ from experimental in votes per pair.

    ``items`` has ``votes`` and ``control_votes``, ``sham_votes`` or ``replicate_votes``; the mode
    of each arm of a cell is compared.
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
    """Note the votes per pair of ``arm`` in the method where they differ from experimental."""
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
