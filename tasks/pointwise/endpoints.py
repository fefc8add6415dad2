"""Pointwise endpoints under the names of the pairwise ones, so that one set of rules concludes.

Ratings have the same arms as comparisons. What the rules read of a shift in mean scores (``mps``,
``mps_sham``, ``sham_shift``) is of grades the shift in standard deviations of the judge's control
ratings, and of pass and fail the shift of the pass rate. Flaws are detected if they lower a rating
(``flaws_detected``), which is measured where ``detection_share`` is. Log-odds and unanimity have no
counterpart: a scale of grades is not exhausted by easy pairs.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from schemas.keys import CELL
from tasks.conclusions.rules import WORST
from tasks.conclusions.worst_cases import RATED_WORST
from tasks.kit.defaults import limits

GRADES: Mapping[str, str] = {
    "rating_shift_sd": "mps",
    "rating_shift_sham_sd": "mps_sham",
    "rating_sham_shift_sd": "sham_shift",
}
PASSES: Mapping[str, str] = {
    "pass_rate_shift": "mps",
    "pass_rate_shift_sham": "mps_sham",
    "pass_rate_sham_shift": "sham_shift",
}
COMMON: Mapping[str, str] = {
    "flaws_detected": "detection_share",
    "rating_spread": "shift_spread",
    "rating_mean_square": "mean_square_shift",
    "rating_lost_over_control": "lost_over_control",
    "rating_lost_over_sham": "lost_over_sham",
    "rating_lost_rate": "lost_rate",
    "criterion_shift": "category_shift",
    "criterion_spread": "category_spread",
}
NAMES: Mapping[str, str] = {**GRADES, **PASSES, **COMMON}
"""Statistic of ratings -> the pairwise statistic whose place it takes."""

UNITS = {"mps": {"sd": "rating_shift_sd", "share": "pass_rate_shift"}}
UNITS["mps_sham"] = {
    unit: name.replace("shift", "shift_sham") for unit, name in UNITS["mps"].items()
}
PARTS: Mapping[str, str] = {RATED_WORST[side]: name for side, name in WORST.items()}


def under_pairwise_names(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return all estimates, with ratings under the pairwise names.

    Grades with a threshold have both endpoints; the grades decide, as they say more.
    """
    statistic = pl.col("statistic").cast(pl.String)
    if not estimates.select(statistic.is_in([*NAMES]).any()).item():
        return estimates
    graded = statistic.is_in([*GRADES]).any().over(CELL)
    kept = estimates.filter(~(statistic.is_in([*PASSES]) & graded))
    worst = statistic.is_in([*NAMES]) & pl.col("subgroup").is_in([*PARTS])
    return kept.with_columns(
        subgroup=pl.when(worst).then(pl.col("subgroup").replace(dict(PARTS))).otherwise("subgroup"),
        statistic=statistic.replace(dict(NAMES)),
    )


def labelled(estimates: pl.DataFrame) -> set[str]:
    """Return the prompts that ask for labels: each has a pass rate for each label, and no grade."""
    parts = estimates.filter(pl.col("statistic") == "pass_rate", pl.col("subgroup") != "")
    graded = estimates.filter(pl.col("statistic") == "mean_rating")
    return {*parts["prompt"].cast(pl.String)} - {*graded["prompt"].cast(pl.String)}


def criterion_shifts(estimates: pl.DataFrame, findings: pl.DataFrame) -> pl.DataFrame:
    """Return the shift of each criterion or label, by the statistic that the finding rests on."""
    parts = estimates.filter(pl.col("statistic") == "criterion_shift")
    same = [*CELL, "statistic"]
    return estimates.join(findings.select(same), on=same, how="semi", nulls_equal=True).join(
        parts.select(*CELL, "subgroup"), on=[*CELL, "subgroup"], how="semi", nulls_equal=True
    )


def unit() -> pl.Expr:
    """Return the unit of a cell's endpoint: ``score`` if it is of comparisons."""
    known = pl.col("unit").is_in(["sd", "share"])
    return pl.when(known).then("unit").otherwise(pl.lit("score"))


def _by_unit(sd: Any, share: Any, score: Any) -> pl.Expr:
    return pl.when(unit() == "sd").then(sd).when(unit() == "share").then(share).otherwise(score)


def minimum_shift() -> pl.Expr:
    """Return the smallest relevant shift, in the unit of the cell's endpoint (``unit``)."""
    own = limits()
    return _by_unit(own.minimum_rating_shift, own.minimum_pass_rate_shift, own.minimum_shift)


def minimum_spread() -> pl.Expr:
    """Return the smallest spread of true shifts that counts, in the unit of the endpoint.

    In proportion to the smallest relevant shift, as there is no field of its own.
    """
    return limits().minimum_spread / limits().minimum_shift * minimum_shift()


def own_names() -> pl.Expr:
    """Return the endpoint's own statistic, from its pairwise name and its unit."""
    statistic = pl.col("statistic").cast(pl.String)
    sd, share = (
        statistic.replace({pairwise: own[unit] for pairwise, own in UNITS.items()})
        for unit in ("sd", "share")
    )
    return _by_unit(sd, share, statistic)


def own_detection() -> pl.Expr:
    """Return the statistic that tells the share of flaws detected."""
    rated = (unit() != "score") & pl.col("detected_by").is_not_null()
    return pl.when(rated).then(pl.lit("flaws_detected")).otherwise("detected_by")


def shift_name() -> pl.Expr:
    """Return the name that notes use for a shift over the control."""
    return _by_unit(*map(pl.lit, ("rating shift in sd", "shift of the share", "MPS")))


def worst_words(side: str) -> pl.Expr:
    """Return how a note describes a worst case of invalid votes."""
    rated = {"anchor": "the lowest", "target": "the highest"}[side]
    pairs = {"anchor": "all for the anchor", "target": "for the target"}[side]
    return pl.when(unit() == "score").then(pl.lit(pairs)).otherwise(pl.lit(rated))
