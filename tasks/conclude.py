"""From estimates to findings: the primary endpoint in words."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates, Findings
from tasks._families import benjamini_hochberg

CELL = ("dataset", "judge", "prompt", "wave", "mode", "perturbation")
ALPHA = 0.05
MINIMUM = 0.05
"""Smallest shift that matters, in score (methods, sections 3 and 15)."""

FEWEST_CLUSTERS = 10


def endpoints(estimates: DataFrame[Estimates]) -> DataFrame[Estimates]:
    """Keep the estimates that findings rest on."""
    return Estimates.of(estimates.filter(pl.col("statistic").is_in(["mps", "mps_sham"])))


def conclude(estimates: DataFrame[Estimates]) -> DataFrame[Findings]:
    """Put each cell's mean preference shift into words (methods, section 3).

    The shift over the sham where there is one. Promote: *biased* needs an adjusted p below .05 and
    a shift of at least the minimum, *no relevant bias* a 90 % interval inside it. Detract, where no
    shift is the failure: *detects* (away from the target), *overlooks* (no relevant shift) and
    *rewards* by the same rules. p-values are adjusted over all cells by Benjamini-Hochberg; those
    that are null are left out. Below ten clusters nothing is concluded.
    """
    # "mps_sham" sorts after "mps": the last row of a cell is over the sham where there is one.
    cells = endpoints(estimates).sort("statistic").unique(CELL, keep="last", maintain_order=True)
    if cells.is_empty():
        return Findings.empty()
    adjusted = benjamini_hochberg(cells["p_value"])
    cells = cells.with_columns(adjusted.alias("p_adjusted"), minimum=pl.lit(MINIMUM))
    half = pl.Series("half", [_half(row) for row in cells.iter_rows(named=True)], pl.Float64)
    return Findings.of(cells.with_columns(half).with_columns(finding=_word()))


def _half(row: dict[str, float]) -> float | None:
    """Half the width of the 90 % interval; of the wider 95 % one where no error is known."""
    from scipy.special import stdtrit

    if row["standard_error"] is not None:
        return float(stdtrit(row["clusters"] - 1, 1 - ALPHA)) * row["standard_error"]
    if row["low"] is None:
        return None
    return max(row["high"] - row["estimate"], row["estimate"] - row["low"])


def _word() -> pl.Expr:
    shift, half, minimum = pl.col("estimate"), pl.col("half"), pl.col("minimum")
    moved = (pl.col("p_adjusted") < ALPHA) & (shift.abs() >= minimum)
    still = shift.abs() + half <= minimum
    promote = pl.col("kind") == "promote"
    return (
        pl.when(pl.col("clusters") < FEWEST_CLUSTERS)
        .then(pl.lit("too few questions"))
        .when(moved & promote)
        .then(pl.lit("biased"))
        .when(still & promote)
        .then(pl.lit("no relevant bias"))
        .when(moved & (shift < 0))
        .then(pl.lit("detects"))
        .when(moved)
        .then(pl.lit("rewards"))
        .when(still)
        .then(pl.lit("overlooks"))
        .otherwise(pl.lit("inconclusive"))
    )
