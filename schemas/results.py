"""Frames of results: estimates, annotations, findings and other conclusions, drifts."""

from typing import get_args

import pandera.polars as pa

from schemas.curation import KINDS
from schemas.frame import Result, counted, name, optional, share
from schemas.judging import MODES, Measured
from schemas.keys import CELL, JUDGE, Gate

FINDINGS = [
    "biased",
    "no relevant bias",
    "mixed",
    "inconclusive",
    "detects",
    "detects some",
    "overlooks",
    "rewards",
]
"""The first four are for perturbations that should change nothing; the others, and *inconclusive*,
for flaws, which should cost the answer votes."""

ENDPOINTS = [
    "mps",
    "mps_sham",
    "rating_shift_sd",
    "rating_shift_sham_sd",
    "pass_rate_shift",
    "pass_rate_shift_sham",
]
"""Primary endpoints: of comparisons, grades, and pass or fail; over the control and the sham."""

FLOORS = ["sham", "replicate", "random judge"]
LOST = "verdicts lost: differential"


class Estimates(
    Measured,
    table="estimates",
    key=("statistic", "dataset", "judge", "prompt", "wave", "mode", "perturbation", "subgroup"),
):
    """One row per statistic, dataset, judge, prompt, wave, mode, perturbation and subgroup."""

    statistic: str = name("name of the statistic")
    family: str = name("family of statistics, such as position; null if unknown", nullable=True)
    unit: str = name("unit of the estimate, such as share or logit; null if unknown", nullable=True)
    null_value: float = optional("value of no effect, which p_value tests; null if there is none")
    floor: str = optional("noise floor: sham, replicate or random judge; null if none", isin=FLOORS)
    mode: str = pa.Field(
        isin=[*MODES, "any"],
        description="how votes become a verdict; any if it does not matter",
    )
    perturbation: str = name(
        "null if the statistic is about the whole judge or its control arm", nullable=True
    )
    subgroup: str = pa.Field(
        description="part of the cell, such as the other judge; empty for the whole cell"
    )
    kind: str = optional("promote or detract", isin=KINDS)
    estimate: float = optional("null if there is none, see reason")
    low: float = optional("lower bound of the interval")
    high: float = optional("upper bound of the interval")
    level: float = optional("level of the intervals", gt=0, lt=1)
    boot_low: float = optional("lower bound by cluster bootstrap, as a cross-check")
    boot_high: float = optional("upper bound by cluster bootstrap, as a cross-check")
    standard_error: float = optional(
        "cluster-robust; with Tango's interval its longer side over the quantile of t", ge=0
    )
    df: float = optional(
        "Satterthwaite degrees of freedom; clusters - 1 if all have the same size", ge=0
    )
    p_value: float = share("raw two-sided p-value", nullable=True)
    hits: int = optional("numerator, if the estimate is a share", ge=0)
    n: int = counted("number of samples, ballots or pairs of votes used")
    clusters: int = counted("number of independent clusters (questions) used")
    too_few: str = name(
        "why the data do not suffice for a conclusion: too few questions, or a few that "
        "carry most samples; null if they suffice",
        nullable=True,
    )
    excluded: bool = optional(
        "whether means of attack success leave the judge out; null if unknown, or if the statistic "
        "is not about attack success"
    )
    dropped: int = counted("samples or pairs left out because a needed arm has no verdict")
    votes_per_pair: int = counted("ballots per pair (the most common number)")
    method: str = name("method of the interval")
    seed: int = optional("seed of draws, or of the order of questions; null if nothing is random")
    reason: str = name(
        "why the estimate or the interval is missing; null if neither is", nullable=True
    )
    simulated: bool = optional(
        "true if the judge, or one of several, is simulated; null if unknown"
    )


class Annotations(
    Result, table="annotations", key=("dataset", "item", "aspect", "annotator", "prompt", "wave")
):
    """One row per item, aspect of the item and annotator: the label given."""

    dataset: str = name("name of the dataset")
    item: str = name("the labelled item, such as a sample")
    cluster: str = name("unit of independence: the question")
    aspect: str = name("labelled aspect of the item; null for its verdict", nullable=True)
    annotator: str = name("the judge that labels the item: a model or a person")
    prompt: str = name("name of the judge prompt; null for a person", nullable=True)
    wave: str = pa.Field(description="label of a measurement in time; empty for a person")
    label: str = name("the label, such as anchor, tie or target")
    value: float = optional("position of the label on its scale; null if there is no scale")
    inconsistent: bool = pa.Field(
        description="true if the label is a tie because the verdicts of the two orders differ"
    )
    votes: int = pa.Field(ge=1, description="number of valid votes behind the label")
    human: bool = pa.Field(description="true if the annotator is a person")
    simulated: bool = optional("true for a simulated judge; null if unknown")


class Findings(Measured, table="findings", key=CELL):
    """One row per cell with the finding on its primary endpoint, and one per judge on position."""

    mode: str = pa.Field(
        isin=[*MODES, "any"],
        description="how votes become a verdict; any for position, where it does not matter",
    )
    perturbation: str = name("name of the perturbation; null for position", nullable=True)
    kind: str = pa.Field(isin=[*KINDS, "position"], description="promote, detract or position")
    statistic: str = pa.Field(
        isin=[*ENDPOINTS, "position_gap", "position_kappa"],
        description="statistic used as the primary endpoint",
    )
    unit: str = optional(
        "unit of the estimate and of the minimum: score, sd (standard deviations of the judge's "
        "control ratings), share or logit",
        isin=["score", "sd", "share", "logit"],
    )
    estimate: float = optional(
        "mean preference shift; for ratings, the shift in standard deviations or in the pass rate; "
        "for position the gap, or the effect in logits"
    )
    low: float = optional("lower bound of its 95 % interval")
    high: float = optional("upper bound of its 95 % interval")
    minimum: float = pa.Field(gt=0, description="smallest relevant shift")
    control: float = optional("mean preference shift over the control")
    control_low: float = optional("lower bound of its 95 % interval")
    control_high: float = optional("upper bound of its 95 % interval")
    control_p: float = share("its raw p-value", nullable=True)
    sham_shift: float = optional("mean preference shift of the sham over the control")
    sham_shift_low: float = optional("lower bound of its 95 % interval")
    sham_shift_high: float = optional("upper bound of its 95 % interval")
    effect_logits: float = optional("effect in logits over the same base as the estimate")
    effect_logits_low: float = optional("lower bound of its 95 % interval")
    effect_logits_high: float = optional("upper bound of its 95 % interval")
    by_logits: bool = optional(
        "true if pairs are too easy to move the mean, so that the effect in logits is tested"
    )
    p_value: float = share("raw, two-sided; for the effect in logits if by_logits", nullable=True)
    p_adjusted: float = share(
        "p-value that decides: Benjamini-Hochberg over all cells of the study (family "
        "F1), for position over its judges",
        nullable=True,
    )
    adjustment: str = name("how the p-value was adjusted; null without one", nullable=True)
    p_holm: float = share("p-value by Holm over the same family", nullable=True)
    p_by: float = share("p-value by Benjamini-Yekutieli over the same family", nullable=True)
    e_value: float = optional("e-value of the betting e-process", ge=0)
    e_rejected: bool = optional("true if e-BH over the same family rejects at .05")
    shrunk: float = optional("empirical Bayes estimate, shrunk toward the mean of the judges")
    shrunk_error: float = optional("its standard error", ge=0)
    finding: str = optional("the conclusion; null if there is none, see reason", isin=FINDINGS)
    detected: float = optional("share of flaws detected, which decides a detract finding")
    detected_low: float = optional("lower bound of its 95 % interval")
    detected_high: float = optional("upper bound of its 95 % interval")
    detected_by: str = optional(
        "statistic in detected: from verdicts, or from scores if that is unstable",
        isin=["detection_power", "detection_share", "flaws_detected"],
    )
    shift_spread: float = optional("estimated standard deviation of the samples' true shifts", ge=0)
    shift_spread_low: float = optional("lower bound of its interval")
    shift_spread_high: float = optional("upper bound of its interval")
    spread_p: float = share("raw p-value of the hypothesis that no sample is moved", nullable=True)
    moved_p: float = share(
        "p-value of the hypothesis that no sample is moved, tested if the mean shift is "
        "below the minimum; Holm together with category_p over all such cells",
        nullable=True,
    )
    category_p: float = share(
        "p-value of the hypothesis that all categories have the same shift, tested in the "
        "same cells; Holm together with moved_p",
        nullable=True,
    )
    category: str = name(
        "category of questions, or criterion, with the largest shift", nullable=True
    )
    category_shift: float = optional("its shift")
    most_lost: float = share("largest share of invalid votes of an arm", nullable=True)
    lost_difference: float = optional(
        "share of invalid experimental votes minus the share in lost_over", ge=-1, le=1
    )
    lost_over: str = optional(
        "arm compared with: the one with the smaller p", isin=["sham", "control"]
    )
    lost_p: float = share(
        "p-value of the hypothesis that the shares are equal; Holm over both arms of all cells",
        nullable=True,
    )
    lost_finding: str = optional("finding about invalid votes, if any", isin=[LOST])
    detects_at: float = optional("share of flaws that `detects` requires", gt=0, lt=1)
    reason: str = name(
        "why there is no conclusion, or what limits the finding; else null", nullable=True
    )
    simulated: bool = optional("true for a simulated judge")


class KeptFindings(Findings, table="kept_findings", key=CELL):
    """One row per cell of a judge that is not excluded: the finding without the excluded judges.

    Empty if no judge is excluded.
    """


class Exclusions(Measured, table="excluded_judges", key=JUDGE):
    """One row per dataset, judge, prompt and wave: whether the judge is excluded, and why.

    An excluded judge is left out of mean attack success rates. A bound is the end of the 95 %
    interval that is nearer to 0; it is null with too few questions.
    """

    simulated: bool = optional("true for a simulated judge")
    excluded: bool = optional("true if a bound exceeds its limit; null if unknown")
    reasons: str = name("rates whose bounds exceed their limits; null if none", nullable=True)
    position_gap: float = optional("share of first picks minus 1/2")
    position_gap_low: float = optional("lower bound of its interval")
    position_gap_high: float = optional("upper bound of its interval")
    position_gap_bound: float = share("bound of the absolute position gap", nullable=True)
    position_gap_limit: float = share("limit of the absolute position gap")
    tie_rate: float = share("share of ties among valid votes", nullable=True)
    tie_rate_low: float = optional("lower bound of its interval")
    tie_rate_high: float = optional("upper bound of its interval")
    tie_rate_bound: float = share("its bound", nullable=True)
    tie_rate_limit: float = share("its limit")
    invalid_rate: float = share("share of invalid votes among ballots", nullable=True)
    invalid_rate_low: float = optional("lower bound of its interval")
    invalid_rate_high: float = optional("upper bound of its interval")
    invalid_rate_bound: float = share("its bound", nullable=True)
    invalid_rate_limit: float = share("its limit")


class Contrasts(
    Measured,
    table="judge_pairs",
    key=(
        *("dataset", "prompt", "wave", "mode", "perturbation", "statistic"),
        *("judge", "other", "other_prompt"),
    ),
):
    """One row per statistic, perturbation and pair of judges, or of prompts of a judge."""

    other: str = name("the other judge; the judge itself if two of its prompts are compared")
    other_prompt: str = name("the judge prompt of the other")
    mode: str = pa.Field(description="how votes become a verdict; any if it does not matter")
    perturbation: str = name("name of the perturbation")
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true if one of the two is simulated")
    statistic: str = name("name of the contrast")
    contrast: float = optional("the judge's value minus the other's")
    low: float = optional("lower bound of its 95 % interval")
    high: float = optional("upper bound of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_holm: float = share(
        "Holm over all pairs under the perturbation (family F2); null with too few questions",
        nullable=True,
    )
    adjustment: str = name("how the p-value was adjusted; null without one", nullable=True)
    minimum: float = pa.Field(gt=0, description="smallest relevant difference")
    finding: str = optional("the conclusion; null if there is none, see reason", isin=FINDINGS)
    judge_value: float = optional("the judge's own estimate")
    other_value: float = optional("the other judge's own estimate")
    n: int = counted("number of samples that both judges share")
    clusters: int = counted("number of questions that both judges share")
    dropped: int = counted("number of samples left out")
    votes_per_pair: int = counted("ballots per pair (the most common number)")
    method: str = name("method of the interval")
    reason: str = name("why there is no conclusion; else null", nullable=True)


GATES = [*get_args(Gate)]
CONSEQUENCES = ["forbids", "care", "undecided", "stated", "passed", "not measured"]
DETECTED, BEST_DETECTED = "share detected", "best share detected over kinds of flaws"
MEAN_DETECTED = "mean share detected"
IN_MEAN_SCORES = {
    DETECTED: f"{DETECTED} in mean scores (D)",
    BEST_DETECTED: f"best {DETECTED} in mean scores (D) over kinds of flaws",
    MEAN_DETECTED: f"{MEAN_DETECTED} in mean scores (D)",
}
"""Share of flaws detected -> the same by D, not by DP."""
BEYOND_CHANCE = "agreement beyond chance"
AGREED_BY = {
    "rating_kappa": f"{BEYOND_CHANCE}, kappa",
    "rating_correlation": f"{BEYOND_CHANCE}, rank correlation",
    "accuracy_beyond_chance": f"{BEYOND_CHANCE}, Bennett's S",
}
"""Statistic -> the agreement beyond chance that it measures."""
IN_LOGITS = "effect in logits"
IN_SDS = "shift in SD"
"""Quantities that gates may test, as in their column ``measure``."""


class Gates(
    Measured,
    table="gates",
    key=("dataset", "prompt", "wave", "judge", "mode", "gate", "perturbation"),
):
    """One row per judge, gate and perturbation: whether the judge passes."""

    mode: str = pa.Field(description="how votes become a verdict; any if it does not matter")
    gate: str = pa.Field(isin=GATES, description="name of the gate")
    perturbation: str = name(
        "name of the perturbation; null if the gate is about the whole judge", nullable=True
    )
    simulated: bool = optional("true for a simulated judge")
    finding: str = optional("the finding that the gate follows; null without", isin=FINDINGS)
    measure: str = name(
        "quantity that the gate tests, such as gap, share detected or agreement lost; of drift the "
        "measure of drifts",
        nullable=True,
    )
    criterion: str = name(
        "criterion that value is about, the worst of several; else null", nullable=True
    )
    drift_mode: str = name("mode of the row of drifts that the gate drift shows", nullable=True)
    drift_perturbation: str = name("perturbation of that row, if it has one", nullable=True)
    value: float = optional(
        "estimate that the gate tests; for agreement, the share lost of the agreement among people "
        "or, where each item has one label, the agreement beyond chance"
    )
    low: float = optional("lower bound of its 95 % interval")
    high: float = optional("upper bound of its 95 % interval")
    tolerance: float = optional(
        "limit of the gate: most agreement that may be lost, or least agreement beyond chance"
    )
    verdict: str = pa.Field(isin=["pass", "fail", "inconclusive"], description="the outcome")
    margin: float = optional(
        "share of the tolerance left at the worse end of the interval; below 0 if exceeded"
    )
    effect_logits: float = optional("effect in logits, where it decides beside value; else null")
    sham_shift: float = optional(
        "shift of the sham itself, where it moves a judge although a bias beyond it is ruled out"
    )
    no_reply: float = share(
        "share of ballots without a reply, where validity lacks them; else null", nullable=True
    )
    changed: str = name("what an alert of drift, or a suspicion, is about", nullable=True)
    earlier_change: str = name(
        "the confirmed change that started the baseline of drift; null if none did", nullable=True
    )
    too_few: bool = optional("true if the questions are too few for a verdict")
    more_questions: int = optional(
        "further questions that would decide an inconclusive gate with a chance of 60 to 80 % (for "
        "drift, the baseline must have them too); null if no number up to ten times the questions "
        "asked would",
        ge=1,
    )
    consequence: str = optional(
        "what the gate means for the recommendation: it forbids the use or limits it (care), "
        "leaves it undecided, or limits nothing but is stated",
        isin=CONSEQUENCES,
    )
    words: str = name("what it contributes to the recommendation; null if nothing", nullable=True)
    reason: str = name("what limits the verdict, or why there is no margin", nullable=True)


MEASURES = {
    "mps_drift": "shift",
    "dasr_drift": "dASR",
    "position_drift": "position gap",
    "agreement_drift": "agreement",
    "rating_drift": "ratings",
    "rating_shift_drift": "rating shift",
    "verdict_drift": "verdicts",
    "text_drift": "texts of replies",
    "token_drift": "first tokens",
}
"""Quantity that is compared between waves -> its name in texts, in the order of tables."""

STATES = ["quiet", "suspect", "alert", "not measured"]
CHANGED = ("suspect", "alert")
"""States of a comparison of two waves that suspect or confirm a change."""


class Drifts(Measured, table="drifts", key=(*CELL, "measure")):
    """One row per cell, wave and measure: what changed since the baseline of its epoch."""

    mode: str = pa.Field(
        isin=[*MODES, "any"],
        description="how votes become a verdict; any if it does not matter",
    )
    perturbation: str = name(
        "name of the perturbation; null if the measure is about the whole judge", nullable=True
    )
    measure: str = pa.Field(isin=[*MEASURES], description="quantity that is compared")
    epoch: int = pa.Field(
        ge=1, description="number of the epoch; a confirmed alert starts a new one"
    )
    wave_number: int = optional(
        "number of the wave in order of first votes, in a file in order of names; null in results "
        "of an earlier version",
        ge=1,
    )
    base: str = pa.Field(description="first wave of the epoch; the others are compared with it")
    base_questions: int = optional(
        "questions of the base wave, which this wave may share or not; null in results of an "
        "earlier version",
        ge=0,
    )
    estimate: float = optional("change since the base wave")
    low: float = optional("lower bound of its 95 % interval")
    high: float = optional("upper bound of its 95 % interval")
    interval_level: float = optional("level of the interval; null without one", gt=0, lt=1)
    method: str = name("method of the interval or the p-value", nullable=True)
    p_value: float = share("raw p-value; null if not measured", nullable=True)
    p_adjusted: float = share(
        "Holm over the wave, or over the suspects to be confirmed", nullable=True
    )
    adjustment: str = name("how the p-value was adjusted; null without one", nullable=True)
    e_value: float = optional("e-value of a change (test by betting); for shifts only", ge=0)
    e_rejected: bool = optional("true if e-BH over the wave rejects; for information only")
    level: float = pa.Field(
        gt=0, lt=1, description="budget of false alerts per night, the level of p_adjusted"
    )
    minimum: float = counted("smallest change that counts as an alert")
    detectable: float = optional("change detectable with 80 % power at that level", ge=0)
    n: int = counted("number of samples, or of fixed prompts, compared")
    clusters: int = counted("number of questions compared")
    state: str = pa.Field(isin=STATES, description="quiet, suspect, alert or not measured")
    floor: str = optional("noise floor; null if none", isin=FLOORS)
    kind: str = optional("promote or detract", isin=KINDS)
    unit: str = name("unit of the change, such as share; null if unknown", nullable=True)
    null_value: float = optional("value of no change, which p_value tests; null if unknown")
    boot_low: float = optional("lower bound by cluster bootstrap, as a cross-check")
    boot_high: float = optional("upper bound by cluster bootstrap, as a cross-check")
    standard_error: float = optional("cluster-robust", ge=0)
    df: float = optional("Satterthwaite degrees of freedom", ge=0)
    dropped: int = optional("samples or fixed prompts that cannot be compared")
    votes_per_pair: int = optional("ballots per pair (the most common number)")
    seed: int = optional("seed of permutations or draws; null if nothing is random")
    reason: str = name("why the change is not measured, or has no interval", nullable=True)
    simulated: bool = optional("true for a simulated judge")
