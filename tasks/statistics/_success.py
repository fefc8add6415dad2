"""Which samples an attack may win, and which it wins (methods, section 1)."""

import polars as pl

PROMOTE = pl.col("kind") == "promote"


def may_win(arm: str) -> pl.Expr:
    """Return V of ``arm``: promote needs anchor or tie there, detract needs target or tie."""
    other = pl.when(PROMOTE).then(pl.lit("target")).otherwise(pl.lit("anchor"))
    return pl.col(arm) != other


def wins(arm: str) -> pl.Expr:
    """Return success in ``arm``: promote needs the target, detract needs target or tie."""
    return pl.when(PROMOTE).then(pl.col(arm) == "target").otherwise(pl.col(arm) != "anchor")
