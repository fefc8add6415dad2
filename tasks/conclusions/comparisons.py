"""Comparisons: which of two judges is biased more, and whether bias explains a model's win."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import WinChecks
from schemas.judging import VERSUS
from schemas.keys import BETWEEN, JUDGE, PANEL
from schemas.results import Contrasts, Estimates
from tasks.conclusions.rules import first_finding, half_width, is_significant, is_within, reaches
from tasks.inference.linearised_errors import is_enough, why_not_enough
from tasks.inference.multiplicity import holm
from tasks.kit.defaults import limits

CELL = tuple(name for name in PANEL if name != "prompt")
FAMILY = (*CELL, "statistic")
WIN = (*JUDGE, "subgroup")
ADJUSTMENT = "Holm, all pairs of judges (F2)"


CONTRASTS = {
    "mps_contrast": ("mps", "minimum_shift"),
    "mps_sham_contrast": ("mps_sham", "minimum_shift"),
    "los_contrast": ("los", "minimum_log_odds"),
    "asr_contrast": ("asr", "minimum_asr_difference"),
    "mcnemar": ("mcnemar", "minimum_asr_difference"),
    "rating_contrast": ("rating_shift_sd", "minimum_rating_shift"),
    "rating_sham_contrast": ("rating_shift_sham_sd", "minimum_rating_shift"),
    "pass_rate_contrast": ("pass_rate_shift", "minimum_pass_rate_shift"),
    "pass_rate_sham_contrast": ("pass_rate_shift_sham", "minimum_pass_rate_shift"),
}
"""Contrast -> the statistic of each judge, and the threshold: the smallest relevant difference."""


def contrasts(estimates: DataFrame[Estimates]) -> DataFrame[Contrasts]:
    """Return one row per statistic, perturbation and pair of judges, or of prompts of a judge.

    Holm adjusts the p-values over all pairs under one perturbation (family F2), with all prompts;
    pairs with too few questions do not count. ``finding`` is *biased* where the adjusted p-value is
    below .05 and the difference reaches the minimum (in score, logits, attack success, standard
    deviations of ratings or pass rate), *no relevant bias* where the 90 % interval lies inside the
    minimum, else *inconclusive*.
    """
    minima = {name: getattr(limits(), minimum) for name, (_, minimum) in CONTRASTS.items()}
    singles = {name: single for name, (single, _) in CONTRASTS.items()}
    pairs = estimates.filter(pl.col("statistic").is_in([*CONTRASTS])).rename({"subgroup": "other"})
    if pairs.is_empty():
        return Contrasts.empty()
    pairs = (
        _with_other_prompt(pairs)
        .with_columns(
            half_width(pairs),
            few=why_not_enough(),
            tested=pl.when(is_enough()).then("p_value"),
            single=pl.col("statistic").replace_strict(singles, return_dtype=pl.String),
            minimum=pl.col("statistic").replace_strict(minima, return_dtype=pl.Float64),
        )
        .with_columns(
            p_holm=pl.col("tested").map_batches(holm, return_dtype=pl.Float64).over(FAMILY)
        )
        .join(_singles(estimates, "judge"), on=[*PANEL, "single", "judge"], how="left")
        .join(
            _singles(estimates, "other").rename({"prompt": "other_prompt"}),
            on=[*CELL, "other_prompt", "single", "other"],
            how="left",
        )
    )
    minimum = pl.col("minimum")
    known = pl.all_horizontal(
        pl.col("estimate").is_not_null(),
        pl.col("few").is_null(),
        pl.any_horizontal(pl.col("half", "p_value").is_not_null()),
    )
    word = first_finding(
        is_significant("p_holm") & reaches("estimate", minimum),
        is_within("estimate", "half", minimum),
    )
    few = pl.when(pl.col("estimate").is_not_null()).then("few")
    return Contrasts.of(
        pairs.with_columns(
            contrast="estimate",
            adjustment=pl.when(pl.col("p_holm").is_not_null()).then(pl.lit(ADJUSTMENT)),
            finding=pl.when(known).then(word),
            reason=pl.coalesce("reason", few),
        )
    )


def _with_other_prompt(pairs: pl.DataFrame) -> pl.DataFrame:
    """Tell the other's prompt (``other_prompt``) from its name."""
    judges = pairs.select(pl.col("judge", "other").cast(pl.String), "prompt")
    prefix = pl.col("judge") + BETWEEN
    between = pl.col("other").str.starts_with(prefix) & ~pl.col("other").is_in(
        judges["judge"].unique().implode()
    )
    prompt = pl.col("other").str.strip_prefix(prefix)
    return pairs.with_columns(
        judges.select(
            other=pl.when(between).then("judge").otherwise("other"),
            other_prompt=pl.when(between).then(prompt).otherwise(pl.col("prompt").cast(pl.String)),
        )
    )


def _singles(estimates: pl.DataFrame, role: str) -> pl.DataFrame:
    whole = estimates.filter(
        pl.col("subgroup") == "",
        pl.col("statistic").is_in([single for single, _ in CONTRASTS.values()]),
    )
    return whole.select(
        *PANEL, single="statistic", **{role: pl.col("judge"), f"{role}_value": pl.col("estimate")}
    )


def win_checks(estimates: DataFrame[Estimates]) -> DataFrame[WinChecks]:
    """Conclude on each win of a model over another, by itself and for each perturbation.

    A win needs an interval that excludes 1/2, and enough questions. It is robust to a bias if
    ``bias_bound`` (:mod:`tasks.statistics.decision_check`) is at most the distance of the win rate
    from 1/2 (methods, section 12).
    """
    statistic, value = pl.col("statistic"), pl.col("estimate")
    pairs = estimates.filter(pl.col("subgroup").str.contains(VERSUS, literal=True))
    wins = pairs.filter(statistic == "win_rate").select(
        *WIN,
        "simulated",
        "clusters",
        "too_few",
        mode=pl.lit("any"),
        perturbation=pl.lit(None, pl.String),
        win_rate="estimate",
        win_rate_low="low",
        win_rate_high="high",
        margin=(value - 0.5).abs(),
        won=(pl.col("low") > 0.5) | (pl.col("high") < 0.5),
    )
    checks = (
        pairs.filter(statistic.is_in(["bias_bound", "tipping_shift"]))
        .group_by(*WIN, "mode", "perturbation", maintain_order=True)
        .agg(
            pl.col("simulated", "too_few").max(),
            pl.col("clusters").min(),
            bias_bound=value.filter(statistic == "bias_bound").max(),
            tipping_shift=value.filter(statistic == "tipping_shift").max(),
            rests_on=pl.col("method").first(),
        )
        .join(wins.select(*WIN, "^win_rate.*$", "margin", "won", few="too_few"), on=WIN)
        .with_columns(too_few=pl.coalesce("too_few", "few"))
    )
    known = pl.col("won").is_not_null() & (
        pl.col("bias_bound").is_not_null() | pl.col("perturbation").is_null()
    )
    rows = pl.concat([wins, checks], how="diagonal").with_columns(
        robust=pl.when("won", pl.col("too_few").is_null()).then(
            pl.col("bias_bound") <= pl.col("margin")
        )
    )
    return WinChecks.of(
        rows.with_columns(
            conclusion=pl.when(~known)
            .then(pl.lit("unknown"))
            .when(pl.col("too_few").is_not_null())
            .then(pl.format("no conclusion: {}", "too_few"))
            .when(~pl.col("won"))
            .then(pl.lit("no conclusion: the interval holds .5"))
            .when(pl.col("perturbation").is_null())
            .then(pl.lit("won"))
            .when("robust")
            .then(pl.lit("robust"))
            .otherwise(pl.format("conclusion not robust to {}", "perturbation"))
        )
    )
