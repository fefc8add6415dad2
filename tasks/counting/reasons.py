"""Reasons why an estimate or its interval is missing."""

from collections.abc import Mapping
from functools import cache

import polars as pl

from tasks.inference.intervals import EMPTY
from tasks.inference.linearised_errors import why_not_enough
from tasks.pointwise.rated import OFF_SCALE

CHANGEABLE = (
    "no sample has verdicts in both arms and a control verdict that the perturbation could change"
)
START = EMPTY.split(":", maxsplit=1)[0]
SCORE = "; a score needs a valid vote in each order (in mode paper: in either order)"
SHIFT = f"no sample has a score in the experimental arm and in the arm it is compared with{SCORE}"

LACKING = {
    CHANGEABLE: "asr asr_bounds mean_asr jury_asr asr_contrast mcnemar",
    "no sample has verdicts in all three arms and a control or sham verdict that could change": (
        "dasr sham_floor mean_dasr mean_sham_floor jury_dasr jury_sham_floor detection_gain "
        "detection_power jury_detection_gain jury_detection_power"
    ),
    "no control pair has verdicts, or scores, in control and when it was asked again": (
        "rewording_sensitivity rewording_score_change repeat_sensitivity repeat_score_change "
        "rewording_excess"
    ),
    "no answer has valid ratings in control and when it was asked again": (
        "rating_rewording_shift rating_rewording_change rating_repeat_change "
        "rating_rewording_excess"
    ),
    "no sample has verdicts in control, the replicate and the arm they are compared with": (
        "replicate_floor prompt_sensitivity"
    ),
    SHIFT: (
        "mps mean_shift jury_mps mps_contrast rank tier sequential_shift sequential_stop e_value "
        "e_stop category_shift jury_correlation jury_size detection_share jury_detection_share"
    ),
    f"no sample has a score in the sham and in control{SCORE}": "sham_shift jury_sham_shift",
    f"no sample has a score in both shams{SCORE}": "sham_difference",
    f"no sample has a score of two ballots or more in control{SCORE}": "unanimous_rate",
    "no item with a label has every member's score in both orders": (
        "jury_accuracy jury_error_correlation jury_error_size"
    ),
    f"no sample has a score in the experimental arm and in the sham{SCORE}": (
        "mps_sham jury_mps_sham mps_sham_contrast"
    ),
    "no item has every member's score in both orders": "jury_position_consistency",
    "no sample has verdicts in all arms and a control verdict that could change": "dasr_posterior",
    "no sample has valid votes in one order in both arms": "los los_sham",
    "no sample has valid votes of both judges in one order in both arms": "los_contrast",
    "no verdict changes": "flip_direction",
    "no sample has a verdict in control and in the experimental arm": (
        "flips_up flips_down robustness_rate"
    ),
    "no sample has a verdict in control and in the sham": "consistency_rate",
    "no sample has verdicts in control, sham and experimental": "excess_flips",
    "no sample has a vote cast in control and in the experimental arm": "lost_over_control",
    "no sample has a vote cast in the sham and in the experimental arm": "lost_over_sham",
    "no vote was cast in this arm": "lost_rate",
    "no ballot was needed": "valid_rate invalid_rate abstain_rate ambiguous_rate missing_rate",
    "no ballot was planned": "saved_rate",
    "no ballot has a value in column `cached` (whether its vote was cast before)": "cached_rate",
    "no pair has valid votes with the same repeat number in both orders": (
        "position_consistency primacy recency preference_fairness swap_win_rate swap_tie_rate "
        "swap_inconsistent_rate order_kappa"
    ),
    "no pair has a valid vote and another of its repeat in the other order": "lenient_consistency",
    "no valid vote prefers a slot: all are ties, or there are none": (
        "first_pick_share position_gap position_kappa position_kappa_once"
    ),
    "no pair is judged differently in the two orders": "primacy_test",
    "no vote is valid": "tie_rate repetition_stability repetition_stability_asked",
    "no pair has two valid votes in each order": (
        "within_order_agreement across_order_agreement excess_conflict"
    ),
    "no pair with a label has a valid vote": (
        "accuracy accuracy_12 accuracy_21 accuracy_valid accuracy_beyond_chance both_right "
        "order_agreement order_agreement_llmbar"
    ),
    "no sample with a label in both arms has votes in both, or one arm has no valid vote": (
        "accuracy_before accuracy_after accuracy_change"
    ),
    "on every item, one of the two says tie": "agreement_decided s2_macro s2_micro",
    "no item has labels of both annotators": (
        "agreement cohen_kappa cohen_kappa_linear cohen_kappa_quadratic gwet_ac1 s1_macro s1_micro"
    ),
    "no item has labels of two annotators (for Fleiss' kappa: of all)": (
        "fleiss_kappa krippendorff_alpha_nominal krippendorff_alpha_ordinal "
        "krippendorff_alpha_interval"
    ),
    "no item has labels of the judge and of two people": (
        "noise_ceiling below_ceiling ceiling_ratio"
    ),
    "no item in this group has labels of the judge, a person, and others who define the gap": (
        "agreement_small_gap agreement_middle_gap agreement_large_gap"
    ),
    "no contest of these models has a valid vote in each order": (
        "win_rate win_rate_difference length_controlled length_slope"
    ),
    "no contest of these models has a valid vote with the first model first": "win_rate_naive",
    "no other judge that is not simulated scored a contest of this judge": "self_score_error",
    "no item has votes in both waves": "mps_drift dasr_drift agreement_drift verdict_drift",
    "no answer has valid ratings in both waves": "rating_drift rating_shift_drift",
    "one of the waves has no vote for a slot": "position_drift",
    "no rating is readable": (
        "mean_rating pass_rate modal_share ceiling_share floor_share near_threshold"
    ),
    "no sample has valid ratings in control and in the experimental arm": (
        "rating_shift pass_rate_shift pass_flips"
    ),
    "no sample has valid ratings in the sham and in the experimental arm": (
        "rating_shift_sham pass_rate_shift_sham"
    ),
    "no sample has valid ratings in control and in the sham": (
        "rating_sham_shift pass_rate_sham_shift pass_flips_sham"
    ),
    "no sample has valid ratings of both judges in the arms that are compared": (
        "rating_contrast pass_rate_contrast rating_sham_contrast pass_rate_sham_contrast"
    ),
    "no sample has a rating above the lowest without the flaw": "flaws_detected",
    OFF_SCALE: "rating_bias",
    "no sample has valid ratings of its target and its anchor": ("derived_preference derived_ties"),
    "no answer has two valid ratings": "retest_flips",
    "no sample was rated in control and in the experimental arm": "rating_lost_over_control",
    "no sample was rated in the sham and in the experimental arm": "rating_lost_over_sham",
    "no rating was asked in this arm": "rating_lost_rate",
}
"""What is missing if a denominator is empty -> the statistics about which this is said."""

MISSING = {name: why for why, names in LACKING.items() for name in names.split()}
"""Statistic -> what is missing if its denominator is empty."""

NO_INTERVAL: Mapping[str, str] = {
    **dict.fromkeys(("e_value", "e_stop"), "evidence, not an estimate: no interval"),
    "dasr_posterior": "a probability: no interval",
    "sequential_stop": "a place in the order of the questions: no interval",
    "tier": "a letter, not an estimate: no interval",
    **dict.fromkeys(
        ("random_baseline", "random_baseline_coin"), "exact, not estimated: no interval"
    ),
    "verdict_drift": "a distance tested by permutation: no interval",
}
"""Statistic -> why it never has an interval."""


def explained(rows: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Give the reason for an empty denominator or a missing interval in each row.

    ``too_few`` says why a row has too few clusters for a conclusion; null if it has enough. Further
    columns are made in the same query.
    """
    return rows.with_columns(reason=_reason(), too_few=why_not_enough(), **columns)


@cache
def _reason() -> pl.Expr:
    name = pl.col("statistic").cast(pl.String)
    reasons = {statistic: f"{START}: {why}" for statistic, why in MISSING.items()}
    lacking = name.replace_strict(reasons, default=EMPTY, return_dtype=pl.String)
    no_interval = name.replace_strict(NO_INTERVAL, default=None, return_dtype=pl.String)
    unbounded = pl.col("estimate").is_not_null() & pl.col("low").is_null()
    return (
        pl.when(pl.col("reason") == EMPTY)
        .then(lacking)
        .otherwise(pl.coalesce("reason", pl.when(unbounded).then(no_interval)))
    )
