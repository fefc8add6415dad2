"""Frames of what is concluded."""

import pandera.polars as pa

from schemas.curation import KINDS
from schemas.frame import name
from schemas.judging import Measured

FINDINGS = [
    "biased", "no relevant bias",       # promote
    "detects", "overlooks", "rewards",  # detract
    "inconclusive", "too few questions",
]  # fmt: skip


class Estimates(
    Measured,
    table="estimates",
    key=("statistic", "dataset", "judge", "prompt", "wave", "mode", "perturbation", "subgroup"),
):
    """One row per statistic, dataset, judge, prompt, wave, mode, perturbation and subgroup."""

    statistic: str = name("name of the statistic")
    mode: str = pa.Field(
        isin=["paper", "balanced", "any"],
        description="how votes became a verdict; any where it plays no part",
    )
    perturbation: str = name("null where the statistic is of the control arm", nullable=True)
    subgroup: str = pa.Field(
        description="what of the cell it is about, such as the other judge; empty if all of it"
    )
    kind: str = pa.Field(isin=KINDS, nullable=True, description="promote or detract")
    estimate: float = pa.Field(nullable=True, description="null if not estimable, see reason")
    low: float = pa.Field(nullable=True, description="lower end of the interval")
    high: float = pa.Field(nullable=True, description="upper end of the interval")
    level: float = pa.Field(gt=0, lt=1, nullable=True, description="level of the intervals")
    boot_low: float = pa.Field(
        nullable=True, description="lower end by cluster bootstrap, as a cross-check"
    )
    boot_high: float = pa.Field(
        nullable=True, description="upper end by cluster bootstrap, as a cross-check"
    )
    standard_error: float = pa.Field(ge=0, nullable=True, description="cluster-robust")
    p_value: float = pa.Field(ge=0, le=1, nullable=True, description="two-sided, raw, against 0")
    hits: int = pa.Field(ge=0, nullable=True, description="numerator, where it is a share")
    n: int = pa.Field(ge=0, description="denominator: samples, ballots or pairs of votes used")
    clusters: int = pa.Field(ge=0, description="independent clusters (questions) used")
    dropped: int = pa.Field(
        ge=0, description="samples or pairs left out: no verdict in a needed arm"
    )
    votes_per_pair: int = pa.Field(ge=0, description="ballots per pair (the most common number)")
    method: str = name("how the interval was made")
    reason: str = name("why there is no estimate or interval; null if there is", nullable=True)
    simulated: bool = pa.Field(
        nullable=True, description="true for an offline judge; null if unknown"
    )


class Findings(
    Measured, table="findings", key=("dataset", "judge", "prompt", "wave", "mode", "perturbation")
):
    """One row per cell: the primary endpoint in words."""

    mode: str = pa.Field(isin=["paper", "balanced"], description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    kind: str = pa.Field(isin=KINDS, description="promote or detract")
    statistic: str = pa.Field(isin=["mps", "mps_sham"], description="the primary endpoint used")
    estimate: float = pa.Field(nullable=True, description="mean preference shift")
    low: float = pa.Field(nullable=True, description="lower end of its 95 % interval")
    high: float = pa.Field(nullable=True, description="upper end of its 95 % interval")
    minimum: float = pa.Field(gt=0, description="smallest shift that matters")
    p_value: float = pa.Field(ge=0, le=1, nullable=True, description="two-sided, raw")
    p_adjusted: float = pa.Field(
        ge=0, le=1, nullable=True, description="Benjamini-Hochberg over all cells of the study"
    )
    finding: str = pa.Field(isin=FINDINGS, description="the conclusion in words")
    simulated: bool = pa.Field(nullable=True, description="true for an offline judge")


MEASURES = ["mps_drift", "dasr_drift", "position_drift", "verdict_drift", "text_drift"]
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
    estimate: float = pa.Field(nullable=True, description="change since the base")
    low: float = pa.Field(nullable=True, description="lower end of its 95 % interval")
    high: float = pa.Field(nullable=True, description="upper end of its 95 % interval")
    p_value: float = pa.Field(ge=0, le=1, nullable=True, description="raw; null: not measured")
    p_adjusted: float = pa.Field(
        ge=0, le=1, nullable=True, description="Holm, over the wave or what is to be confirmed"
    )
    level: float = pa.Field(gt=0, lt=1, description="budget of false alerts per night")
    minimum: float = pa.Field(ge=0, description="smallest change that is an alert")
    detectable: float = pa.Field(
        ge=0, nullable=True, description="change seen with 80 % power at that level, all cells"
    )
    n: int = pa.Field(ge=0, description="samples, or fixed prompts, compared")
    clusters: int = pa.Field(ge=0, description="questions compared")
    state: str = pa.Field(isin=STATES, description="what it amounts to")
    reason: str = name("why there is no p-value; null if there is", nullable=True)
    simulated: bool = pa.Field(nullable=True, description="true for an offline judge")
