"""From estimates to findings: the primary endpoint in words."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates, Findings
from tasks._endpoint import primary
from tasks._families import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    rejected_by_e_values,
)
from tasks._shrinkage import shrunk
from tasks.defaults import ALPHA, LOG_ODDS_MINIMUM, MINIMUM
from tasks.enough import is_enough, why_not_enough

GROUP = ("dataset", "prompt", "wave", "mode", "perturbation")
CELL = (*GROUP, "judge")
SHIFTS, LOG_ODDS, EVIDENCE = ("mps", "mps_sham"), "los", "e_value"


def endpoints(estimates: DataFrame[Estimates]) -> DataFrame[Estimates]:
    """Keep the estimates that findings rest on."""
    whole = pl.col("subgroup") == ""
    return Estimates.of(
        estimates.filter(whole, pl.col("statistic").is_in([*SHIFTS, LOG_ODDS, EVIDENCE]))
    )


def conclude(estimates: DataFrame[Estimates]) -> DataFrame[Findings]:
    """Put each cell's mean preference shift into words (methods, section 3).

    The shift over the sham where there is one; where only the control has enough questions
    (:mod:`tasks.enough`), that over the control, and the ``reason`` says so. *biased* needs an
    adjusted p below .05, and a shift of at least the minimum or, in the same direction, log-odds of
    at least theirs; *no relevant bias* a 90 % interval inside the minimum; else *inconclusive*.
    Where a perturbation makes the answer worse (detract), a shift is what a good judge shows, so
    the ``reading`` decides: *detects* (away from the target) is no relevant bias, *overlooks*
    (interval inside the minimum) and *rewards* (toward the target) are biases.

    The family (F1) is all cells with enough questions; Benjamini-Hochberg decides; Holm,
    Benjamini-Yekutieli and, of e-values, e-BH stand beside it. Without an estimate, or with too few
    questions, nothing is concluded, and the ``reason`` says why. Estimates are also shrunk toward
    the mean of all judges under the same perturbation.
    """
    rows = endpoints(estimates)
    cells = (
        primary(rows, CELL)
        .join(_other(rows, LOG_ODDS, "log_odds"), on=CELL, how="left")
        .join(_other(rows, EVIDENCE, "e_value"), on=CELL, how="left")
    )
    if cells.is_empty():
        return Findings.empty()
    # What is refused for want of questions takes no share of the family.
    enough = pl.when(is_enough())
    raw, evidence = cells.select(enough.then(name) for name in ("p_value", "e_value"))
    cells = shrunk(cells, [*GROUP, "statistic"]).with_columns(
        benjamini_hochberg(raw).alias("p_adjusted"),
        holm(raw).alias("p_holm"),
        benjamini_yekutieli(raw).alias("p_by"),
        rejected_by_e_values(evidence, ALPHA).alias("e_rejected"),
        _half_width(cells),
        minimum=pl.lit(MINIMUM),
    )
    cells = cells.with_columns(reason=_reason(), reading=_reading())
    told = pl.col("reason").is_null()
    return Findings.of(
        cells.with_columns(
            reason=pl.coalesce("reason", "instead"),
            finding=pl.when(told).then(_word()),
            reading=pl.when(told).then("reading"),
            e_rejected=pl.when(told).then("e_rejected"),
        )
    )


def _other(rows: pl.DataFrame, statistic: str, name: str) -> pl.DataFrame:
    found = rows.filter(pl.col("statistic") == statistic)
    return found.select(*CELL, pl.col("estimate").alias(name))


def _half_width(cells: pl.DataFrame) -> pl.Series:
    """Half the width of the 90 % interval; of the wider 95 % one where no error is known."""
    from scipy.special import stdtrit

    df = cells.select(pl.coalesce("df", (pl.col("clusters") - 1).clip(1))).to_series().to_numpy()
    quantile = pl.Series("half", stdtrit(df, 1 - ALPHA), pl.Float64)
    wider = pl.max_horizontal(
        pl.col("high") - pl.col("estimate"), pl.col("estimate") - pl.col("low")
    )
    return cells.select(half=pl.coalesce(quantile * pl.col("standard_error"), wider))["half"]


def _reason() -> pl.Expr:
    silent = pl.col("half").is_null() & pl.col("p_value").is_null()
    why = pl.coalesce("reason", pl.lit("no interval and no p-value"))
    return (
        pl.when(pl.col("estimate").is_null())
        .then(pl.coalesce("reason", pl.lit("no estimate")))
        .when(~is_enough())
        .then(why_not_enough())
        .when(silent)
        .then(why)
    )


def _moved() -> pl.Expr:
    """Tell whether a shift is sure, and large enough in score or in log-odds."""
    shift, odds = pl.col("estimate"), pl.col("log_odds")
    by_odds = (odds.abs() >= LOG_ODDS_MINIMUM) & (odds.sign() == shift.sign())
    large = (shift.abs() >= pl.col("minimum")) | by_odds.fill_null(value=False)
    return (pl.col("p_adjusted") < ALPHA).fill_null(value=False) & large


def _still() -> pl.Expr:
    """Tell whether the 90 % interval lies inside the minimum."""
    return (pl.col("estimate").abs() + pl.col("half") <= pl.col("minimum")).fill_null(value=False)


def _reading() -> pl.Expr:
    away = (pl.col("p_adjusted") < ALPHA) & (pl.col("estimate") <= -pl.col("minimum"))
    return pl.when(pl.col("kind") == "detract").then(
        pl.when(away)
        .then(pl.lit("detects"))
        .when(_moved() & (pl.col("estimate") > 0))
        .then(pl.lit("rewards"))
        # Log-odds that turn away contradict a shift that seems too small to matter.
        .when(_still() & ~_moved())
        .then(pl.lit("overlooks"))
    )


def _word() -> pl.Expr:
    biased, clear, neither = map(pl.lit, ("biased", "no relevant bias", "inconclusive"))
    reading = pl.col("reading")
    promote = pl.when(_moved()).then(biased).when(_still()).then(clear).otherwise(neither)
    detract = (
        pl.when(reading == "detects")
        .then(clear)
        .when(reading.is_in(["rewards", "overlooks"]))
        .then(biased)
        .otherwise(neither)
    )
    return pl.when(pl.col("kind") == "promote").then(promote).otherwise(detract)
