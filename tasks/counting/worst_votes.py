"""Worst-case bounds for unreadable votes (methods, section 16)."""

import polars as pl

from tasks.counting.arms import LOST
from tasks.counting.positions import ORDERS
from tasks.counting.verdicts import GROUP, verdicts_of

VALUES = {"anchor": -1, "target": 1}
ENDS = {"least": "anchor", "most": "target"}
"""End of the bounds -> the answer that gets the unreadable votes."""


def filled(tallies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Count every vote that was cast but is unreadable as a vote for ``side``."""
    changes = []
    for order in ORDERS:
        valid = pl.sum_horizontal(f"{name}_{order}" for name in ("anchor", "tie", "target"))
        lost = pl.col(f"voted_{order}") - valid
        once = pl.when(lost > 0).then(VALUES[side]).cast(pl.Int64)
        changes += [
            (pl.col(f"{side}_{order}") + lost).alias(f"{side}_{order}"),
            # Repeat 0 is cast before the others.
            pl.coalesce(f"once_{order}", once).alias(f"once_{order}"),
        ]
    return tallies.with_columns(changes)


def opposed(tallies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Fill in votes for an extreme shift: experimental ones to ``side``, others to the opposite."""
    other = "target" if side == "anchor" else "anchor"
    experimental = pl.col("arm") == "experimental"
    return pl.concat(
        [filled(tallies.filter(experimental), side), filled(tallies.filter(~experimental), other)]
    )


def with_ends(shifts: pl.DataFrame, tallies: pl.DataFrame, mode: str) -> pl.DataFrame:
    """Add the extreme verdicts of control and experimental: ``ARM_least`` and ``ARM_most``.

    The verdict of complete votes lies between them, as additional votes for an answer never turn
    the verdict away from it.
    """
    # Pairs without unreadable votes keep their verdict.
    unread = tallies.filter(LOST > 0)
    ends = unread.select(
        *GROUP,
        "perturbation",
        "arm",
        **{end: verdicts_of(filled(unread, side), mode)["verdict"] for end, side in ENDS.items()},
    )
    for arm, keys in (("control", GROUP), ("experimental", (*GROUP, "perturbation"))):
        named = {end: f"{arm}_{end}" for end in ENDS}
        told = ends.filter(pl.col("arm") == arm).select(*keys, pl.col(*ENDS).name.prefix(f"{arm}_"))
        shifts = shifts.join(told, on=keys, how="left", maintain_order="left").with_columns(
            pl.coalesce(pl.col(name).cast(shifts.schema[arm]), arm) for name in named.values()
        )
    return shifts
