"""Frames of results: estimates, annotations, findings and other conclusions, drifts."""

import pandera.polars as pa

from schemas.curation import KINDS
from schemas.frame import Result, counted, name, optional, share
from schemas.judging import Measured

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

FLOORS = ["sham", "replicate", "random judge"]
LOST = "verdicts lost: differential"


class Estimates(
    Measured,
    table="estimates",
    key=("statistic", "dataset", "judge", "prompt", "wave", "mode", "perturbation", "subgroup"),
):
    """One row per statistic, dataset, judge, prompt, wave, mode, perturbation and subgroup."""

    statistic: str = name("name of the statistic")
    family: str = name("what it is about, such as position; null if not known", nullable=True)
    unit: str = name(
        "unit of the estimate, such as share or logit; null if not known", nullable=True
    )
    null_value: float = optional("value that means no effect, or that p_value is against; if any")
    floor: str = optional(
        "what noise is measured by: sham, replicate or random judge; null if nothing", isin=FLOORS
    )
    mode: str = pa.Field(
        isin=["paper", "balanced", "any"],
        description="how votes became a verdict; any where it plays no part",
    )
    perturbation: str = name(
        "null where the statistic is of a whole judge or its control arm", nullable=True
    )
    subgroup: str = pa.Field(
        description="what of the cell it is about, such as the other judge; empty if all of it"
    )
    kind: str = optional("promote or detract", isin=KINDS)
    estimate: float = optional("null if not estimable, see reason")
    low: float = optional("lower end of the interval")
    high: float = optional("upper end of the interval")
    level: float = pa.Field(gt=0, lt=1, nullable=True, description="level of the intervals")
    boot_low: float = optional("lower end by cluster bootstrap, as a cross-check")
    boot_high: float = optional("upper end by cluster bootstrap, as a cross-check")
    standard_error: float = pa.Field(ge=0, nullable=True, description="cluster-robust")
    df: float = pa.Field(
        ge=0,
        nullable=True,
        description="Satterthwaite degrees of freedom: clusters less one where all are of one size",
    )
    p_value: float = share("two-sided, raw, against 0", nullable=True)
    hits: int = pa.Field(ge=0, nullable=True, description="numerator, where it is a share")
    n: int = counted("denominator: samples, ballots or pairs of votes used")
    clusters: int = counted("independent clusters (questions) used")
    too_few: str = name(
        "why nothing is concluded from it: too few questions, or few that carry most samples; "
        "null if there are enough",
        nullable=True,
    )
    dropped: int = counted("samples or pairs left out: no verdict in a needed arm")
    votes_per_pair: int = counted("ballots per pair (the most common number)")
    method: str = name("how the interval was made")
    seed: int = optional("of what is drawn, or of the order of questions; null if nothing")
    reason: str = name("why there is no estimate or interval; null if there is", nullable=True)
    simulated: bool = optional(
        "true for an offline judge, of two or more if one is; null if unknown"
    )


class Annotations(
    Result,
    table="annotations",
    key=("dataset", "item", "aspect", "annotator", "prompt", "wave"),
):
    """One row per item and annotator, and aspect of the item: the label given."""

    dataset: str = name("name of the dataset")
    item: str = name("what is labelled, such as a sample")
    cluster: str = name("what is independent of what: the question")
    aspect: str = name("what about the item; null for its verdict", nullable=True)
    annotator: str = name("who labels: a judge, be it a model or a person")
    prompt: str = name("name of the judge prompt; null for a person", nullable=True)
    wave: str = pa.Field(description="label of a measurement in time; empty for a person")
    label: str = name("the label, such as anchor, tie or target")
    value: float = optional("where the label stands on its scale; null if it has none")
    inconsistent: bool = pa.Field(
        description="whether it is a tie because the two orders were judged differently"
    )
    votes: int = pa.Field(ge=1, description="valid votes that the label rests on")
    human: bool = pa.Field(description="whether the annotator is a person")
    simulated: bool = optional("true for an offline judge; null if unknown")


class Findings(
    Measured, table="findings", key=("dataset", "judge", "prompt", "wave", "mode", "perturbation")
):
    """One row per cell: the primary endpoint in words; and one per judge: its position bias."""

    mode: str = pa.Field(
        isin=["paper", "balanced", "any"],
        description="how votes became a verdict; any for position, where it plays no part",
    )
    perturbation: str = name("name of the perturbation; null for position", nullable=True)
    kind: str = pa.Field(isin=[*KINDS, "position"], description="promote, detract or position")
    statistic: str = pa.Field(
        isin=["mps", "mps_sham", "position_gap", "position_kappa"],
        description="the primary endpoint used",
    )
    estimate: float = optional(
        "mean preference shift; position gap, or effect of the first slot in logits"
    )
    low: float = optional("lower end of its 95 % interval")
    high: float = optional("upper end of its 95 % interval")
    minimum: float = pa.Field(gt=0, description="smallest shift that matters")
    control: float = optional("mean preference shift over the control")
    control_low: float = optional("lower end of its 95 % interval")
    control_high: float = optional("upper end of its 95 % interval")
    control_p: float = share("its raw p-value", nullable=True)
    sham_shift: float = optional("mean preference shift of the sham over the control")
    sham_shift_low: float = optional("lower end of its 95 % interval")
    sham_shift_high: float = optional("upper end of its 95 % interval")
    p_value: float = share(
        "two-sided, raw; that of the log-odds where pairs are too easy", nullable=True
    )
    p_adjusted: float = share(
        "Benjamini-Hochberg, which decides, over all cells of the study (family F1); for position "
        "over its judges",
        nullable=True,
    )
    p_holm: float = share("Holm over the same family", nullable=True)
    p_by: float = share("Benjamini-Yekutieli over the same family", nullable=True)
    e_value: float = pa.Field(ge=0, nullable=True, description="of the betting e-process")
    e_rejected: bool = optional("whether e-BH over the same family rejects, at .05")
    shrunk: float = optional("estimate drawn toward the mean of the judges under this perturbation")
    shrunk_error: float = pa.Field(ge=0, nullable=True, description="its standard error")
    finding: str = optional("the conclusion; null if refused, see reason", isin=FINDINGS)
    detected: float = optional("share of flaws detected, which a detract finding rests on")
    detected_low: float = optional("lower end of its 95 % interval")
    detected_high: float = optional("upper end of its 95 % interval")
    detected_by: str = optional(
        "the statistic that it is: of verdicts or, where that is unstable, of scores",
        isin=["detection_power", "detection_share"],
    )
    shift_spread: float = pa.Field(
        ge=0, nullable=True, description="standard deviation of the samples' true shifts"
    )
    shift_spread_low: float = optional("lower end of its interval")
    shift_spread_high: float = optional("upper end of its interval")
    moved_p: float = share(
        "that no sample is moved at all, where the mean shift is below the minimum; Holm with "
        "category_p over all such cells",
        nullable=True,
    )
    category_p: float = share(
        "that all categories have the same shift, asked there too; Holm with moved_p", nullable=True
    )
    lost_difference: float = pa.Field(
        ge=-1,
        le=1,
        nullable=True,
        description="share of unreadable votes in the experimental arm less that in another",
    )
    lost_over: str = optional("which other arm: the plainer one", isin=["sham", "control"])
    lost_p: float = share(
        "that the shares are alike; Holm over both other arms of all cells", nullable=True
    )
    lost_finding: str = optional("a finding of its own, if there is one", isin=[LOST])
    detects_at: float = pa.Field(
        gt=0, lt=1, nullable=True, description="share of flaws that detecting takes"
    )
    reason: str = name(
        "why nothing is concluded, or what limits the finding; else null", nullable=True
    )
    simulated: bool = optional("true for an offline judge")


class Exclusions(Measured, table="excluded_judges", key=("dataset", "judge", "prompt", "wave")):
    """One row per dataset, judge, prompt and wave: whether the judge is left out, and why.

    It is left out of tables of attack success. A bound is the end of the 95 % interval that is
    nearer to 0; it is null with too few questions.
    """

    simulated: bool = optional("true for an offline judge")
    excluded: bool = optional("whether a bound is above its limit; null if it cannot be told")
    reasons: str = name("what is above its limit; null if nothing is", nullable=True)
    position_gap: float = optional("share of first picks, less 1/2")
    position_gap_low: float = optional("lower end of its interval")
    position_gap_high: float = optional("upper end of its interval")
    position_gap_bound: float = share("bound of its size", nullable=True)
    position_gap_limit: float = share("limit of its size")
    tie_rate: float = share("ties among valid votes", nullable=True)
    tie_rate_low: float = optional("lower end of its interval")
    tie_rate_high: float = optional("upper end of its interval")
    tie_rate_bound: float = share("its bound", nullable=True)
    tie_rate_limit: float = share("its limit")
    invalid_rate: float = share("invalid votes among ballots", nullable=True)
    invalid_rate_low: float = optional("lower end of its interval")
    invalid_rate_high: float = optional("upper end of its interval")
    invalid_rate_bound: float = share("its bound", nullable=True)
    invalid_rate_limit: float = share("its limit")


class Contrasts(
    Measured,
    table="judge_pairs",
    key=("dataset", "prompt", "wave", "mode", "perturbation", "statistic", "judge", "other"),
):
    """One row per statistic, perturbation and pair of judges: which of the two shifts more."""

    other: str = name("the other judge")
    mode: str = pa.Field(description="how votes became a verdict; any where it plays no part")
    perturbation: str = name("name of the perturbation")
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true if one of the two is simulated")
    statistic: str = name("name of the contrast")
    contrast: float = optional("value of the judge less the other's")
    low: float = optional("lower end of its 95 % interval")
    high: float = optional("upper end of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_holm: float = share(
        "Holm over all pairs under the perturbation (family F2); null with too few questions",
        nullable=True,
    )
    minimum: float = pa.Field(gt=0, description="smallest difference that matters")
    finding: str = optional("the conclusion; null if refused, see reason", isin=FINDINGS)
    judge_value: float = optional("the judge's own estimate")
    other_value: float = optional("the other judge's own estimate")
    n: int = counted("samples that both judges share")
    clusters: int = counted("questions that both judges share")
    dropped: int = counted("samples left out")
    votes_per_pair: int = counted("ballots per pair (the most common number)")
    method: str = name("how the interval was made")
    reason: str = name("why nothing is concluded; else null", nullable=True)


class JuryFindings(
    Measured,
    table="jury_conclusions",
    key=("dataset", "judge", "prompt", "wave", "mode", "perturbation"),
):
    """One row per perturbation: the finding about the jury of all judges."""

    mode: str = pa.Field(description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true if a member is simulated")
    statistic: str = pa.Field(
        isin=["jury_mps", "jury_mps_sham"], description="the primary endpoint used"
    )
    shift: float = optional("mean preference shift of the jury")
    low: float = optional("lower end of its 95 % interval")
    high: float = optional("upper end of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_adjusted: float = share(
        "Benjamini-Hochberg over the jury's perturbations; null with too few questions",
        nullable=True,
    )
    minimum: float = pa.Field(gt=0, description="smallest shift that matters")
    finding: str = optional("the conclusion; null if refused, see reason", isin=FINDINGS)
    n: int = counted("samples used")
    clusters: int = counted("questions used")
    reason: str = name("why nothing is concluded, or what limits the finding", nullable=True)


GATES = ["position", "validity", "bias", "discernment", "agreement", "drift"]


class Gates(
    Measured,
    table="gates",
    key=("dataset", "prompt", "wave", "judge", "mode", "gate", "perturbation"),
):
    """One row per judge, gate and perturbation: whether the judge passes."""

    mode: str = pa.Field(description="how votes became a verdict; any where it plays no part")
    gate: str = pa.Field(isin=GATES, description="what the judge must pass")
    perturbation: str = name("null if the gate is about the whole judge", nullable=True)
    simulated: bool = optional("true for an offline judge")
    value: float = optional("the estimate that the gate looks at")
    low: float = optional("lower end of its 95 % interval")
    high: float = optional("upper end of its 95 % interval")
    tolerance: float = optional("limit of the gate")
    verdict: str = pa.Field(isin=["pass", "fail", "inconclusive"], description="the outcome")
    margin: float = optional(
        "share of the tolerance left at the worse end of the interval; null if unknown"
    )
    reason: str = name("what limits the verdict, or why there is no margin", nullable=True)


MEASURES = [
    "mps_drift",
    "dasr_drift",
    "position_drift",
    "agreement_drift",
    "verdict_drift",
    "text_drift",
    "token_drift",
]
STATES = ["quiet", "suspect", "alert", "not measured"]


class Drifts(
    Measured,
    table="drifts",
    key=("dataset", "judge", "prompt", "wave", "mode", "perturbation", "measure"),
):
    """One row per cell, wave and measure: what changed since the baseline of its epoch."""

    mode: str = pa.Field(
        isin=["paper", "balanced", "any"], description="any where it plays no part"
    )
    perturbation: str = name("null where it is of a whole judge", nullable=True)
    measure: str = pa.Field(isin=MEASURES, description="what is compared")
    epoch: int = pa.Field(ge=1, description="number of the epoch; a confirmed alert begins one")
    base: str = pa.Field(description="the wave that the epoch began with")
    estimate: float = optional("change since the base")
    low: float = optional("lower end of its 95 % interval")
    high: float = optional("upper end of its 95 % interval")
    p_value: float = share("raw; null: not measured", nullable=True)
    p_adjusted: float = share("Holm, over the wave or what is to be confirmed", nullable=True)
    e_value: float = pa.Field(
        ge=0, nullable=True, description="evidence of a change, by bets; of shifts only"
    )
    e_rejected: bool = optional("whether e-BH over the wave's e-values rejects; decides nothing")
    level: float = pa.Field(gt=0, lt=1, description="budget of false alerts per night")
    minimum: float = counted("smallest change that is an alert")
    detectable: float = pa.Field(
        ge=0, nullable=True, description="change seen with 80 % power at that level, all cells"
    )
    n: int = counted("samples, or fixed prompts, compared")
    clusters: int = counted("questions compared")
    state: str = pa.Field(isin=STATES, description="what it amounts to")
    floor: str = optional("what noise is measured by; null if nothing", isin=FLOORS)
    seed: int = optional("of the permutations; null if there are none")
    reason: str = name("why it is not measured, or has no interval", nullable=True)
    simulated: bool = optional("true for an offline judge")
