"""Frames of conclusions about waves, panels of judges, the jury and wins of models."""

import pandera.polars as pa

from schemas.curation import KINDS
from schemas.frame import Result, name, share
from schemas.judging import Measured
from schemas.results import FINDINGS

DESIGNS = ["balanced", "random"]
NOTICES = ["another model", "another fingerprint"]


class Waves(Measured, table="waves", key=("dataset", "judge", "prompt", "wave")):
    """One row per dataset, judge, prompt and wave: how the judge was asked."""

    design: str = pa.Field(
        isin=DESIGNS,
        description="balanced if each pair was planned equally often in both orders, else random",
    )
    epoch: int = pa.Field(
        ge=1,
        nullable=True,
        description="number of the epoch; a confirmed alert starts a new one",
    )


class ReplyChanges(Result, table="reply_changes", key=("judge", "prompt", "wave")):
    """One row per judge, prompt and wave: another model or fingerprint replied than before."""

    judge: str = name("who was asked")
    prompt: str = name("name of the judge prompt")
    wave: str = pa.Field(description="label of a measurement in time")
    notice: str = pa.Field(isin=NOTICES, description="what changed since the wave before")


class PanelMembers(
    Measured,
    table="panel_members",
    key=("dataset", "judge", "prompt", "wave", "mode", "perturbation"),
):
    """One row per judge and perturbation: whether the judge is part of the jury and of means.

    People never are, and simulated judges only if all judges are simulated.
    """

    mode: str = pa.Field(description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    kind: str = pa.Field(isin=KINDS, nullable=True, description="promote or detract")
    simulated: bool = pa.Field(nullable=True, description="true for a simulated judge")
    votes_per_pair: int = pa.Field(
        ge=0, nullable=True, description="ballots per pair that its shift rests on"
    )
    juror: bool = pa.Field(description="whether it is a member of the jury of all judges")
    averaged: bool = pa.Field(description="whether means of attack success include it")
    kept: bool = pa.Field(description="whether they still do without the excluded judges")


class JuryFindings(
    Measured,
    table="jury_conclusions",
    key=("dataset", "judge", "prompt", "wave", "mode", "perturbation", "left_out"),
):
    """One row per perturbation: the finding about the jury; and its shift without each member."""

    mode: str = pa.Field(description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    left_out: str = name("the member left out; null for the jury of all judges", nullable=True)
    kind: str = pa.Field(isin=KINDS, nullable=True, description="promote or detract")
    simulated: bool = pa.Field(nullable=True, description="true if a member is simulated")
    statistic: str = pa.Field(
        isin=["jury_mps", "jury_mps_sham"], description="statistic used as the primary endpoint"
    )
    member_shift: float = pa.Field(nullable=True, description="shift of the member left out")
    shift: float = pa.Field(nullable=True, description="mean preference shift of the jury")
    low: float = pa.Field(nullable=True, description="lower bound of its 95 % interval")
    high: float = pa.Field(nullable=True, description="upper bound of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_adjusted: float = share(
        "Benjamini-Hochberg over the jury's perturbations; null with too few questions, and "
        "without a member",
        nullable=True,
    )
    adjustment: str = name("how the p-value was adjusted; null without one", nullable=True)
    minimum: float = pa.Field(gt=0, description="smallest relevant shift")
    finding: str = pa.Field(
        isin=FINDINGS,
        nullable=True,
        description="the conclusion; null if there is none, see reason",
    )
    n: int = pa.Field(ge=0, description="samples used")
    clusters: int = pa.Field(ge=0, description="questions used")
    reason: str = name("why there is no conclusion, or what limits the finding", nullable=True)


class WinChecks(
    Measured,
    table="win_checks",
    key=("dataset", "judge", "prompt", "wave", "mode", "subgroup", "perturbation"),
):
    """One row per win of a model over another, and perturbation: whether that bias explains it."""

    mode: str = pa.Field(description="how votes became a verdict; any for the win itself")
    subgroup: str = name("the two models")
    perturbation: str = name("name of the perturbation; null for the win itself", nullable=True)
    simulated: bool = pa.Field(nullable=True, description="true for a simulated judge")
    bias_bound: float = pa.Field(
        nullable=True, description="largest part of the win that the bias can explain"
    )
    tipping_shift: float = pa.Field(nullable=True, description="shift that would reverse the win")
    rests_on: str = name("how it is known which answers carry the feature", nullable=True)
    clusters: int = pa.Field(ge=0, description="questions that the conclusion rests on")
    win_rate: float = pa.Field(nullable=True, description="share of wins of the first model")
    win_rate_low: float = pa.Field(nullable=True, description="lower bound of its interval")
    win_rate_high: float = pa.Field(nullable=True, description="upper bound of its interval")
    margin: float = pa.Field(ge=0, nullable=True, description="distance of the win rate from 1/2")
    won: bool = pa.Field(
        nullable=True, description="whether the interval excludes 1/2; null without an interval"
    )
    too_few: str = name("why the questions are too few for a conclusion, or null", nullable=True)
    robust: bool = pa.Field(
        nullable=True,
        description="whether the bias cannot explain the win; null if nothing is concluded",
    )
    conclusion: str = name("the same in words")
