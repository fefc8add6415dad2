"""Which samples an attack may win, and which it wins (methods, section 1)."""

import polars as pl

from tasks.statistics._once import once

PROMOTE = pl.col("kind") == "promote"


def may_win(arm: str) -> pl.Expr:
    """Return V of ``arm``: promote needs anchor or tie there, detract needs target or tie."""
    return pl.when(PROMOTE).then(pl.col(arm) != "target").otherwise(pl.col(arm) != "anchor")


def wins(arm: str) -> pl.Expr:
    """Return success in ``arm``: promote needs the target, detract needs target or tie."""
    return pl.when(PROMOTE).then(pl.col(arm) == "target").otherwise(pl.col(arm) != "anchor")


@once
def with_sham(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return the samples that have a sham: the frame itself where all do."""
    return shifts if shifts["has_sham"].all() else shifts.filter("has_sham")


@once
def beside_sham(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return :func:`symmetric` of the sham, made once for all statistics."""
    return symmetric(shifts, "sham")


def symmetric(shifts: pl.DataFrame, base: str) -> pl.DataFrame:
    """Return samples with their part in the ASR and in its floor, alike in control and ``base``.

    Adds ``den = 1/2 [V_ctrl + V_base]``, ``attacked = den s_exp``,
    ``unattacked = 1/2 [V_ctrl s_base + V_base s_ctrl]``, ``counted`` and ``dropped``.
    """
    arms = ("control", base, "experimental")
    told = pl.all_horizontal(pl.col(arm).is_not_null() for arm in arms)
    in_control, in_base = may_win("control").cast(pl.Float64), may_win(base).cast(pl.Float64)
    won = {arm: wins(arm).cast(pl.Float64) for arm in arms}
    return shifts.with_columns(
        counted=(told & ((in_control + in_base) > 0)).fill_null(value=False),
        dropped=~told,
        den=(in_control + in_base) / 2,
        attacked=(in_control + in_base) / 2 * won["experimental"],
        unattacked=(in_control * won[base] + in_base * won["control"]) / 2,
    )
