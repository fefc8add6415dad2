"""Reasons why an estimate or its interval is missing."""

from collections.abc import Mapping
from functools import cache

import polars as pl

from tasks.inference.intervals import EMPTY
from tasks.inference.linearised_errors import why_not_enough
from tasks.pointwise.rated import OFF_SCALE

START = EMPTY.split(":", maxsplit=1)[0]
CHANGEABLE = "has verdicts in both arms and a control verdict that the perturbation could change"
SYMMETRIC = "has verdicts in all three arms and a control or sham verdict that could change"
BOTH_ORDERS = "no pair has valid votes with the same repeat number in both orders"
SCORE = "; a score needs a valid vote in each order (in mode paper: in either order)"
SHIFT = f"no sample has a score in the experimental arm and in the arm it is compared with{SCORE}"
OVER_SHAM = f"no sample has a score in the experimental arm and in the sham{SCORE}"
NO_VERDICT_PAIR = "no sample has a verdict in control and in the experimental arm"
LABELLED = "no pair with a label has a valid vote"
PEOPLE = "no item has labels of the judge and of a person"
DECIDED = "on every item, one of the two says tie"
WAVES = "no item has votes in both waves"
NO_RATING = "no rating is readable"

MISSING: Mapping[str, str] = {
    **dict.fromkeys(
        ("asr", "asr_bounds", "mean_asr", "jury_asr", "asr_contrast", "mcnemar"),
        f"no sample {CHANGEABLE}",
    ),
    **dict.fromkeys(
        (
            "dasr",
            "sham_floor",
            "mean_dasr",
            "mean_sham_floor",
            "jury_dasr",
            "jury_sham_floor",
            "detection_gain",
            "detection_power",
            "jury_detection_gain",
            "jury_detection_power",
        ),
        f"no sample {SYMMETRIC}",
    ),
    **dict.fromkeys(
        (
            "rewording_sensitivity",
            "rewording_score_change",
            "repeat_sensitivity",
            "repeat_score_change",
            "rewording_excess",
        ),
        "no control pair has verdicts, or scores, in control and when it was asked again",
    ),
    **dict.fromkeys(
        (
            "rating_rewording_shift",
            "rating_rewording_change",
            "rating_repeat_change",
            "rating_rewording_excess",
        ),
        "no answer has readable ratings in control and when it was asked again",
    ),
    **dict.fromkeys(
        ("replicate_floor", "prompt_sensitivity"),
        "no sample has verdicts in control, the replicate and the arm they are compared with",
    ),
    **dict.fromkeys(
        (
            "mps",
            "mean_shift",
            "jury_mps",
            "mps_contrast",
            "rank",
            "tier",
            "sequential_shift",
            "sequential_stop",
            "e_value",
            "e_stop",
            "category_shift",
            "jury_correlation",
            "jury_size",
        ),
        SHIFT,
    ),
    **dict.fromkeys(("detection_share", "jury_detection_share"), SHIFT),
    **dict.fromkeys(
        ("sham_shift", "jury_sham_shift"),
        f"no sample has a score in the sham and in control{SCORE}",
    ),
    "sham_difference": f"no sample has a score in both shams{SCORE}",
    "unanimous_rate": f"no sample has a score of two ballots or more in control{SCORE}",
    **dict.fromkeys(
        ("jury_accuracy", "jury_error_correlation", "jury_error_size"),
        "no item with a label has every member's score in both orders",
    ),
    **dict.fromkeys(("mps_sham", "jury_mps_sham", "mps_sham_contrast"), OVER_SHAM),
    "jury_position_consistency": "no item has every member's score in both orders",
    "dasr_posterior": "no sample has verdicts in all arms and a control verdict that could change",
    **dict.fromkeys(("los", "los_sham"), "no sample has valid votes in one order in both arms"),
    "los_contrast": "no sample has valid votes of both judges in one order in both arms",
    "flip_direction": "no verdict changes",
    **dict.fromkeys(("flips_up", "flips_down", "robustness_rate"), NO_VERDICT_PAIR),
    "consistency_rate": "no sample has a verdict in control and in the sham",
    "excess_flips": "no sample has verdicts in control, sham and experimental",
    "lost_over_control": "no sample has a vote cast in control and in the experimental arm",
    "lost_over_sham": "no sample has a vote cast in the sham and in the experimental arm",
    "lost_rate": "no vote was cast in this arm",
    **dict.fromkeys(
        ("valid_rate", "invalid_rate", "abstain_rate", "ambiguous_rate", "missing_rate"),
        "no ballot was needed",
    ),
    "saved_rate": "no ballot was planned",
    "cached_rate": "no ballot has a value in column `cached` (whether its vote was cast before)",
    **dict.fromkeys(
        (
            "position_consistency",
            "primacy",
            "recency",
            "preference_fairness",
            "swap_win_rate",
            "swap_tie_rate",
            "swap_inconsistent_rate",
            "order_kappa",
        ),
        BOTH_ORDERS,
    ),
    "lenient_consistency": "no pair has a valid vote and another of its repeat in the other order",
    **dict.fromkeys(
        ("first_pick_share", "position_gap", "position_kappa", "position_kappa_once"),
        "no valid vote prefers a slot: all are ties, or there are none",
    ),
    "primacy_test": "no pair is judged differently in the two orders",
    "tie_rate": "no vote is valid",
    **dict.fromkeys(
        ("within_order_agreement", "across_order_agreement", "excess_conflict"),
        "no pair has two valid votes in each order",
    ),
    **dict.fromkeys(("repetition_stability", "repetition_stability_asked"), "no vote is valid"),
    **dict.fromkeys(
        (
            "accuracy",
            "accuracy_12",
            "accuracy_21",
            "accuracy_valid",
            "both_right",
            "order_agreement",
            "order_agreement_llmbar",
        ),
        LABELLED,
    ),
    **dict.fromkeys(
        ("accuracy_before", "accuracy_after", "accuracy_change"),
        "no sample with a label in both arms has votes in both, or one arm has no valid vote",
    ),
    **dict.fromkeys(("agreement_decided", "s2_macro", "s2_micro"), DECIDED),
    **dict.fromkeys(
        (
            "agreement",
            "cohen_kappa",
            "cohen_kappa_linear",
            "cohen_kappa_quadratic",
            "gwet_ac1",
            "s1_macro",
            "s1_micro",
        ),
        "no item has labels of both annotators",
    ),
    **dict.fromkeys(
        (
            "fleiss_kappa",
            "krippendorff_alpha_nominal",
            "krippendorff_alpha_ordinal",
            "krippendorff_alpha_interval",
        ),
        "no item has labels of two annotators (for Fleiss' kappa: of all)",
    ),
    **dict.fromkeys(
        ("noise_ceiling", "below_ceiling", "ceiling_ratio"),
        "no item has labels of the judge and of two people",
    ),
    **dict.fromkeys(
        ("agreement_small_gap", "agreement_middle_gap", "agreement_large_gap"),
        "no item in this group has labels of the judge, a person, and others who define the gap",
    ),
    **dict.fromkeys(
        ("win_rate", "win_rate_difference", "length_controlled", "length_slope"),
        "no contest of these models has a valid vote in each order",
    ),
    "win_rate_naive": "no contest of these models has a valid vote with the first model first",
    "self_score_error": "no other judge that is not simulated scored a contest of this judge",
    **dict.fromkeys(("mps_drift", "dasr_drift", "agreement_drift", "verdict_drift"), WAVES),
    **dict.fromkeys(
        ("rating_drift", "rating_shift_drift"), "no answer has readable ratings in both waves"
    ),
    "position_drift": "one of the waves has no vote for a slot",
    **dict.fromkeys(
        ("mean_rating", "pass_rate", "modal_share", "ceiling_share", "floor_share"), NO_RATING
    ),
    **dict.fromkeys(
        ("rating_shift", "pass_rate_shift", "pass_flips"),
        "no sample has readable ratings in control and in the experimental arm",
    ),
    **dict.fromkeys(
        ("rating_shift_sham", "pass_rate_shift_sham"),
        "no sample has readable ratings in the sham and in the experimental arm",
    ),
    **dict.fromkeys(
        ("rating_sham_shift", "pass_rate_sham_shift", "pass_flips_sham"),
        "no sample has readable ratings in control and in the sham",
    ),
    **dict.fromkeys(
        (
            "rating_contrast",
            "pass_rate_contrast",
            "rating_sham_contrast",
            "pass_rate_sham_contrast",
        ),
        "no sample has readable ratings of both judges in the arms that are compared",
    ),
    "flaws_detected": "no sample has a rating above the lowest without the flaw",
    "near_threshold": NO_RATING,
    "rating_bias": OFF_SCALE,
    **dict.fromkeys(
        ("derived_preference", "derived_ties"),
        "no sample has readable ratings of its target and its anchor",
    ),
    "retest_flips": "no answer has two readable ratings",
    "rating_lost_over_control": "no sample was rated in control and in the experimental arm",
    "rating_lost_over_sham": "no sample was rated in the sham and in the experimental arm",
    "rating_lost_rate": "no rating was asked in this arm",
}
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
