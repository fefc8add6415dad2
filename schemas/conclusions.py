"""Frames of conclusions beyond findings: exclusions, contrasts, juries, gates."""

import pandera.polars as pa

from schemas.curation import KINDS
from schemas.frame import name, share
from schemas.judging import Measured
from schemas.results import FINDINGS


class Exclusions(Measured, table="excluded_judges", key=("dataset", "judge", "prompt", "wave")):
    """One row per dataset, judge, prompt and wave: whether the judge is left out, and why.

    It is left out of tables of attack success. A bound is the end of the 95 % interval that is
    nearer to 0; it is null with too few questions.
    """

    simulated: bool = pa.Field(nullable=True, description="true for an offline judge")
    excluded: bool = pa.Field(
        nullable=True, description="whether a bound is above its limit; null if it cannot be told"
    )
    reasons: str = name("what is above its limit; null if nothing is", nullable=True)
    position_gap: float = pa.Field(nullable=True, description="share of first picks, less 1/2")
    position_gap_low: float = pa.Field(nullable=True, description="lower end of its interval")
    position_gap_high: float = pa.Field(nullable=True, description="upper end of its interval")
    position_gap_bound: float = share("bound of its size", nullable=True)
    position_gap_limit: float = share("limit of its size")
    tie_rate: float = share("ties among valid votes", nullable=True)
    tie_rate_low: float = pa.Field(nullable=True, description="lower end of its interval")
    tie_rate_high: float = pa.Field(nullable=True, description="upper end of its interval")
    tie_rate_bound: float = share("its bound", nullable=True)
    tie_rate_limit: float = share("its limit")
    invalid_rate: float = share("invalid votes among ballots", nullable=True)
    invalid_rate_low: float = pa.Field(nullable=True, description="lower end of its interval")
    invalid_rate_high: float = pa.Field(nullable=True, description="upper end of its interval")
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
    kind: str = pa.Field(isin=KINDS, nullable=True, description="promote or detract")
    simulated: bool = pa.Field(nullable=True, description="true if one of the two is simulated")
    statistic: str = name("name of the contrast")
    contrast: float = pa.Field(nullable=True, description="value of the judge less the other's")
    low: float = pa.Field(nullable=True, description="lower end of its 95 % interval")
    high: float = pa.Field(nullable=True, description="upper end of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_holm: float = share(
        "Holm over all pairs under the perturbation (family F2); null with too few questions",
        nullable=True,
    )
    minimum: float = pa.Field(gt=0, description="smallest difference that matters")
    finding: str = pa.Field(
        isin=FINDINGS, nullable=True, description="the conclusion; null if refused, see reason"
    )
    judge_value: float = pa.Field(nullable=True, description="the judge's own estimate")
    other_value: float = pa.Field(nullable=True, description="the other judge's own estimate")
    n: int = pa.Field(ge=0, description="samples that both judges share")
    clusters: int = pa.Field(ge=0, description="questions that both judges share")
    dropped: int = pa.Field(ge=0, description="samples left out")
    votes_per_pair: int = pa.Field(ge=0, description="ballots per pair (the most common number)")
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
    kind: str = pa.Field(isin=KINDS, nullable=True, description="promote or detract")
    simulated: bool = pa.Field(nullable=True, description="true if a member is simulated")
    statistic: str = pa.Field(
        isin=["jury_mps", "jury_mps_sham"], description="the primary endpoint used"
    )
    shift: float = pa.Field(nullable=True, description="mean preference shift of the jury")
    low: float = pa.Field(nullable=True, description="lower end of its 95 % interval")
    high: float = pa.Field(nullable=True, description="upper end of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_adjusted: float = share(
        "Benjamini-Hochberg over the jury's perturbations; null with too few questions",
        nullable=True,
    )
    minimum: float = pa.Field(gt=0, description="smallest shift that matters")
    finding: str = pa.Field(
        isin=FINDINGS, nullable=True, description="the conclusion; null if refused, see reason"
    )
    n: int = pa.Field(ge=0, description="samples used")
    clusters: int = pa.Field(ge=0, description="questions used")
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
    simulated: bool = pa.Field(nullable=True, description="true for an offline judge")
    value: float = pa.Field(nullable=True, description="the estimate that the gate looks at")
    low: float = pa.Field(nullable=True, description="lower end of its 95 % interval")
    high: float = pa.Field(nullable=True, description="upper end of its 95 % interval")
    tolerance: float = pa.Field(nullable=True, description="limit of the gate")
    verdict: str = pa.Field(isin=["pass", "fail", "inconclusive"], description="the outcome")
    margin: float = pa.Field(
        nullable=True,
        description="share of the tolerance left at the worse end of the interval; null if unknown",
    )
    reason: str = name("what limits the verdict, or why there is no margin", nullable=True)
