"""Rules that may change the finding of a cell, and how they format numbers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

SUPPORTING = (
    "mps",
    "sham_shift",
    "los",
    "los_sham",
    "detection_power",
    "detection_share",
    "sham_floor",
    "unanimous_rate",
    "e_value",
)
"""Statistics that a finding also looks at; their numbers are the columns ``NAME_estimate`` etc."""

WORST = {
    "anchor": "unreadable experimental votes for the anchor, others for the target",
    "target": "unreadable experimental votes for the target, others for the anchor",
}
"""Answer that unreadable experimental votes are taken to be for -> ``subgroup`` of worst cases."""


class Rule(NamedTuple):
    """One step from the first word of a cell to its last."""

    when: pl.Expr
    """Of which cells; the column ``word`` has the word that earlier rules left."""
    note: pl.Expr
    """What to say of them: it joins the ``reason``."""
    word: str | None = None
    """The word that they get; none: they keep theirs."""


def excludes_zero(name: str) -> pl.Expr:
    """Tell whether the 95 % interval of ``name`` excludes 0."""
    return (pl.col(f"{name}_low") > 0) | (pl.col(f"{name}_high") < 0)


def shown(name: str) -> pl.Expr:
    """Write an estimate with its 95 % interval: ``-.04 [-.07, -.01]``."""
    return pl.format("{} [{}, {}]", *(written(f"{name}_{e}") for e in ("estimate", "low", "high")))


def written(column: str) -> pl.Expr:
    """Write a number with two decimals and no leading zero."""
    cents = (pl.col(column) * 100).round().cast(pl.Int64)
    whole = cents.abs() // 100
    return pl.concat_str(
        pl.when(cents < 0).then(pl.lit("-")).otherwise(pl.lit("")),
        pl.when(whole > 0).then(whole.cast(pl.String)).otherwise(pl.lit("")),
        pl.lit("."),
        (cents.abs() % 100).cast(pl.String).str.zfill(2),
    )


def ruled(cells: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """Apply rules in their order; the word that one leaves is what later ones see.

    ``note`` gathers what they say of a cell.
    """
    if "note" not in cells.columns:
        cells = cells.with_columns(note=pl.lit(None, pl.String))
    for rule in rules:
        joined = pl.concat_str("note", rule.note, separator="; ", ignore_nulls=True)
        changes: dict[str, Any] = {"note": pl.when(joined != "").then(joined)}
        if rule.word:
            changes["word"] = pl.lit(rule.word)
        cells = cells.with_columns(
            pl.when(rule.when).then(value).otherwise(pl.col(name)).alias(name)
            for name, value in changes.items()
        )
    return cells
