"""Findings about position bias: one row per judge."""

import polars as pl

from schemas.keys import JUDGE
from tasks.conclusions.rules import (
    BY_EFFECT,
    NUMBERS,
    excludes_zero,
    first_finding,
    half_width,
    is_significant,
    is_within,
    reaches,
    refusal_reason,
    shown,
    written,
)
from tasks.inference.multiplicity import benjamini_hochberg, benjamini_yekutieli, holm
from tasks.kit.defaults import limits

GAP, EFFECT, CONSISTENCY = "position_gap", "position_kappa", "position_consistency"
STATISTICS = (GAP, EFFECT, CONSISTENCY)
ADJUSTMENT = "Benjamini-Hochberg, all judges"
POSITION = "position"
"""The kind of these findings; their perturbation is null, as they are about the control arm."""

OF_EACH = (*NUMBERS, "n", "simulated")
ONE_ORDER = (
    "each pair was seen in one order: the finding rests only on the effect in logits between pairs"
)
NO_SLOT = "based on the gap only: no pair has votes for the same slot in both orders"
TOO_CERTAIN = "based on the gap: too few verdicts depend on the order to bound the effect in logits"


def position_findings(estimates: pl.DataFrame) -> pl.DataFrame:
    """Conclude on each judge's position bias from unperturbed pairs (methods, section 16).

    Two measures share a null hypothesis: the position gap PG (share of first picks minus one half,
    minimum .05) and the effect in logits (``position_kappa``, minimum .25), which also responds
    where answers differ much. *biased*: the adjusted p-value of PG is below .05, and at least one
    measure reaches its minimum, in the direction of PG. *no relevant bias*: the 90 % interval of PG
    lies within its minimum, unless the effect in logits says otherwise: it reaches its minimum, and
    its 95 % interval excludes 0. Else *inconclusive*.

    If every pair was seen in one order, PG also depends on which answers stood first, so only the
    effect in logits and its p-value decide. The family is all judges of the study
    (Benjamini-Hochberg), separate from the perturbations (F1). With too few questions
    (``linearised_errors.py``) nothing is concluded.

    Returns
    -------
    DataFrame
        Columns of ``Findings``: ``kind`` is position, ``perturbation`` null, ``mode`` any.
    """
    whole = estimates.filter(pl.col("subgroup") == "", pl.col("perturbation").is_null())
    cells = _numbers(whole, GAP)
    for statistic in (EFFECT, CONSISTENCY):
        cells = cells.join(_numbers(whole, statistic), on=JUDGE, how="left")
    one_order = (pl.col(f"{CONSISTENCY}_n") == 0) & (pl.col(f"{GAP}_n") > 0)
    cells = cells.with_columns(one_order=one_order.fill_null(value=False))
    cells = cells.with_columns(
        pl.when("one_order").then(f"{EFFECT}_{name}").otherwise(f"{GAP}_{name}").alias(name)
        for name in OF_EACH
    ).with_columns(
        half_width(cells, f"{GAP}_"),
        half_width(cells, f"{EFFECT}_"),
        simulated=pl.col(f"{GAP}_simulated"),
        refused=refusal_reason("low"),
    )
    raw = cells.select(pl.when(pl.col("refused").is_null()).then("p_value"))["p_value"]
    cells = cells.with_columns(
        benjamini_hochberg(raw).alias("p_adjusted"),
        holm(raw).alias("p_holm"),
        benjamini_yekutieli(raw).alias("p_by"),
    )
    biased = _is_biased()
    clear = ~biased & _is_equivalent()
    word = first_finding(biased, clear)
    accepted = pl.col("refused").is_null()
    note = (
        pl.when("one_order")
        .then(pl.lit(ONE_ORDER))
        .when(biased & ~reaches(f"{GAP}_estimate", limits().minimum_shift))
        .then(pl.format(BY_EFFECT, shown(EFFECT), written(limits().minimum_log_odds)))
        .when(clear & pl.col(f"{EFFECT}_estimate").is_null())
        .then(pl.lit(NO_SLOT))
        .when(clear & ~_within(EFFECT, limits().minimum_log_odds))
        .then(pl.lit(TOO_CERTAIN))
        .when(_within(GAP, limits().minimum_shift) & _effect_moves())
        .then(pl.format("the effect in logits says otherwise: {}", shown(EFFECT)))
    )
    return cells.with_columns(
        mode=pl.lit("any"),
        kind=pl.lit(POSITION),
        effect_logits=f"{EFFECT}_estimate",
        effect_logits_low=f"{EFFECT}_low",
        effect_logits_high=f"{EFFECT}_high",
        statistic=pl.when("one_order").then(pl.lit(EFFECT)).otherwise(pl.lit(GAP)),
        unit=pl.when("one_order").then(pl.lit("logit")).otherwise(pl.lit("share")),
        minimum=pl.when("one_order")
        .then(limits().minimum_log_odds)
        .otherwise(limits().minimum_shift),
        adjustment=pl.when(pl.col("p_adjusted").is_not_null()).then(pl.lit(ADJUSTMENT)),
        finding=pl.when(accepted).then(word),
        reason=pl.when(accepted).then(note).otherwise("refused"),
    )


def _numbers(rows: pl.DataFrame, statistic: str) -> pl.DataFrame:
    found = rows.filter(pl.col("statistic") == statistic)
    return found.select(*JUDGE, *(pl.col(name).alias(f"{statistic}_{name}") for name in OF_EACH))


def _is_biased() -> pl.Expr:
    effect = f"{EFFECT}_estimate"
    same = (pl.col(effect).sign() == pl.col("estimate").sign()).fill_null(value=False)
    large = reaches(effect, limits().minimum_log_odds) & same
    large |= ~pl.col("one_order") & reaches(f"{GAP}_estimate", limits().minimum_shift)
    return is_significant("p_adjusted") & large


def _within(statistic: str, minimum: float) -> pl.Expr:
    return is_within(f"{statistic}_estimate", f"{statistic}_half", minimum)


def _is_equivalent() -> pl.Expr:
    effect = _within(EFFECT, limits().minimum_log_odds)
    gap = _within(GAP, limits().minimum_shift)
    return pl.when("one_order").then(effect).otherwise(gap & ~_effect_moves())


def _effect_moves() -> pl.Expr:
    moves = reaches(f"{EFFECT}_estimate", limits().minimum_log_odds) & excludes_zero(EFFECT)
    return moves.fill_null(value=False)
