"""Rules that can change the finding of a cell, and number formats for their notes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from tasks.inference.linearised_errors import is_enough, why_not_enough
from tasks.inference.quantiles import normal_quantile, t_quantile
from tasks.kit.defaults import ALPHA, DETECTS_AT
from tasks.kit.printable import decimal, p_value, thousands

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
"""Further statistics that findings use, as columns ``NAME_estimate`` and so on."""

NUMBERS = ("estimate", "low", "high", "standard_error", "df", "p_value", "clusters", "reason")
"""Columns of an estimate that findings use."""

WORST = {
    "anchor": "invalid experimental votes for the anchor, others for the target",
    "target": "invalid experimental votes for the target, others for the anchor",
}
"""Answer that gets the invalid experimental votes -> ``subgroup`` of that worst case."""


BY_LOGITS = "so the effect in logits (LOS) decides"
"""Text before the numbers in the reason of a finding about easy pairs."""
BY_EFFECT = "significant, and large enough by the effect in logits: {}, limit {}"
"""Reason of a bias whose shift, or gap, has the p-value, but does not reach its minimum."""

BIASED, CLEAR, INCONCLUSIVE = "biased", "no relevant bias", "inconclusive"
AGREES, DISAGREES = "agrees", "does not agree"


class Rule(NamedTuple):
    """One rule that can change the finding (column ``word``) of a cell."""

    when: pl.Expr
    """Which cells it applies to, given the ``word`` that earlier rules left."""
    note: pl.Expr
    """Text to append to the ``reason`` of these cells."""
    word: str | None = None
    """The new finding; None keeps the old one."""


def detects_at_of(findings: pl.DataFrame) -> float:
    """Return the share of flaws that the findings took detecting to need."""
    shares = findings["detects_at"].drop_nulls()
    return float(shares[0]) if len(shares) else DETECTS_AT


def refusal_reason(interval: str) -> pl.Expr:
    """Give the reason why nothing is concluded about a row; null if something is.

    ``interval`` is a column that is null without an interval.
    """
    silent = pl.col(interval).is_null() & pl.col("p_value").is_null()
    return (
        pl.when(pl.col("estimate").is_null())
        .then(pl.coalesce("reason", pl.lit("no estimate")))
        .when(~is_enough())
        .then(why_not_enough())
        .when(silent)
        .then(pl.coalesce("reason", pl.lit("no interval and no p-value")))
    )


def excludes_zero(name: str) -> pl.Expr:
    """Tell whether the 95 % interval of ``name`` excludes 0."""
    return (pl.col(f"{name}_low") > 0) | (pl.col(f"{name}_high") < 0)


def sham_moves(estimate: str) -> pl.Expr:
    """Tell whether the sham itself moves the judge, by half the smallest relevant shift or more."""
    large = pl.col(estimate).abs() >= pl.col("minimum") / 2
    return (large & excludes_zero("sham_shift")).fill_null(value=False)


def shown(name: str, estimate: str = "") -> pl.Expr:
    """Format an estimate (``NAME_estimate``) with its 95 % interval: ``-.04 [-.07, -.01]``."""
    columns = (estimate or f"{name}_estimate", f"{name}_low", f"{name}_high")
    return pl.format("{} [{}, {}]", *map(written, columns))


def written(number: str | float | pl.Expr) -> pl.Expr:
    """Format a column or a number: :func:`tasks.kit.printable.decimal`."""
    if isinstance(number, float):
        return pl.lit(decimal(number))
    return pl.coalesce(number).map_elements(decimal, return_dtype=pl.String)


def written_count(many: pl.Expr) -> pl.Expr:
    """Format a whole number: :func:`tasks.kit.printable.thousands`."""
    return many.cast(pl.Int64).map_elements(thousands, return_dtype=pl.String)


def written_p(p: str) -> pl.Expr:
    """Format a p-value: :func:`tasks.kit.printable.p_value`; null if it is."""
    return pl.col(p).map_elements(p_value, return_dtype=pl.String)


ONLY_ALONE = "significant by itself"
"""Begins the note on an effect that is significant, but not among all tests of the study."""


def ruled(cells: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """Apply rules in order; each sees the ``word`` that earlier ones left.

    ``note`` collects the notes on a cell.
    """
    if "note" not in cells.columns:
        cells = cells.with_columns(note=pl.lit(None, pl.String))
    # One query for all rules, which takes two thirds of the time of one each.
    ruled = cells.lazy()
    for rule in rules:
        joined = pl.concat_str("note", rule.note, separator="; ", ignore_nulls=True)
        changes: dict[str, Any] = {"note": pl.when(joined != "").then(joined)}
        if rule.word:
            changes["word"] = pl.lit(rule.word)
        ruled = ruled.with_columns(
            pl.when(rule.when).then(value).otherwise(pl.col(name)).alias(name)
            for name, value in changes.items()
        )
    return ruled.collect()


def first_finding(biased: pl.Expr, equivalent: pl.Expr) -> pl.Expr:
    """Conclude on an effect: *biased*, else *no relevant bias* if equivalent, else *inconclusive*.

    See :func:`is_significant` and :func:`is_within`.
    """
    clear = pl.when(equivalent).then(pl.lit(CLEAR)).otherwise(pl.lit(INCONCLUSIVE))
    return pl.when(biased).then(pl.lit(BIASED)).otherwise(clear)


def agreement_finding(least: float) -> pl.Expr:
    """Conclude on agreement beyond chance: *agrees* if its interval exceeds ``least``.

    *does not agree* if the whole interval lies at or below it, else *inconclusive*.
    """
    below = pl.when(pl.col("high") <= least).then(pl.lit(DISAGREES)).otherwise(pl.lit(INCONCLUSIVE))
    return pl.when(pl.col("low") > least).then(pl.lit(AGREES)).otherwise(below)


def is_significant(p_value: str) -> pl.Expr:
    """Tell whether an adjusted p-value is below .05."""
    return (pl.col(p_value) < ALPHA).fill_null(value=False)


def reaches(estimate: str, minimum: pl.Expr | float) -> pl.Expr:
    """Tell whether an effect is at least as large as the minimum, in either direction."""
    return (pl.col(estimate).abs() >= minimum).fill_null(value=False)


def is_within(estimate: str, half: str, minimum: pl.Expr | float) -> pl.Expr:
    """Tell whether the interval of this half-width lies inside the minimum (equivalence)."""
    return (pl.col(estimate).abs() + pl.col(half) <= minimum).fill_null(value=False)


def half_width(cells: pl.DataFrame, prefix: str = "") -> pl.Series:
    """Return half the width of the 90 % interval, or of the wider 95 % one without an error.

    Around a difference of 0 that no cluster contradicts, both are known: ``z^2 / (n + z^2)``, times
    the largest difference. It decides equivalence: *no relevant bias* if the estimate plus or minus
    this lies inside the minimum (two one-sided tests at .05). The columns read, and the result,
    have the ``prefix``.
    """
    estimate, low, high, error = (
        pl.col(prefix + name) for name in ("estimate", "low", "high", "standard_error")
    )
    fewer = (pl.col(f"{prefix}clusters") - 1).clip(1)
    df = cells.select(pl.coalesce(f"{prefix}df", fewer, pl.lit(1.0))).to_series()
    quantile = pl.Series(t_quantile(df.to_numpy(), 1 - ALPHA), dtype=pl.Float64)
    wider = pl.max_horizontal(high - estimate, estimate - low)
    narrow, wide = (float(normal_quantile(1 - tail)) ** 2 for tail in (ALPHA, ALPHA / 2))
    n = pl.lit(df) + 1
    rarer = pl.when(estimate == 0).then(narrow / wide * (n + wide) / (n + narrow)).otherwise(1.0)
    half = pl.coalesce(pl.lit(quantile) * error, wider * rarer)
    return cells.select(half.alias(f"{prefix}half")).to_series()
