"""Frames of conclusions about waves, panels of judges, the jury and wins of models."""

import pandera.polars as pa

from schemas.curation import KINDS
from schemas.frame import Result, counted, name, optional, share
from schemas.judging import Measured
from schemas.keys import CELL, JUDGE
from schemas.results import FINDINGS

DESIGNS = ["balanced", "random"]
MEANS = ["mean_shift", "mean_asr", "mean_sham_floor", "mean_dasr"]
RECOMMENDATIONS = ["use", "use with care", "do not use", "not enough data"]
NOTICES = ["another model", "another fingerprint"]


class Waves(Measured, table="waves", key=JUDGE):
    """One row per dataset, judge, prompt and wave: how the judge was asked."""

    design: str = pa.Field(
        isin=DESIGNS,
        description="balanced if each pair was planned equally often in both orders, else random",
    )
    epoch: int = optional("number of the epoch; a confirmed alert starts a new one", ge=1)
    since_baseline: bool = pa.Field(
        description="whether changes since the baseline of its epoch are known, which are shown in "
        "place of changes since the first wave"
    )


class ReplyChanges(Result, table="reply_changes", key=("judge", "prompt", "wave")):
    """One row per judge, prompt and wave: another model or fingerprint replied than before."""

    judge: str = name("who was asked")
    prompt: str = name("name of the judge prompt")
    wave: str = pa.Field(description="label of a measurement in time")
    notice: str = pa.Field(isin=NOTICES, description="what changed since the wave before")


class PanelMembers(Measured, table="panel_members", key=CELL):
    """One row per judge and perturbation: whether the judge is part of the jury and of means.

    People never are, and simulated judges only if all judges are simulated.
    """

    mode: str = pa.Field(description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true for a simulated judge")
    votes_per_pair: int = optional("ballots per pair that its shift rests on", ge=0)
    juror: bool = pa.Field(description="whether it is a member of the jury of all judges")
    averaged: bool = pa.Field(description="whether means of attack success include it")
    kept: bool = pa.Field(description="whether they still do without the excluded judges")


class PanelMeans(
    Measured, table="panel_means", key=(*CELL, "votes_per_pair", "statistic", "without_excluded")
):
    """One row per mean over judges of equal votes per pair, with and without excluded judges.

    A mean has an interval if all judges answer the same questions with equal votes per pair; else
    it is the plain mean of the judges' own rates.
    """

    mode: str = pa.Field(description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    votes_per_pair: int = counted("ballots per pair of the judges averaged")
    statistic: str = pa.Field(isin=MEANS, description="name of the mean")
    without_excluded: bool = pa.Field(description="whether excluded judges are left out")
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true if a judge averaged is simulated")
    judges: int = counted("number of judges with an attack success rate")
    left_out: str = name("excluded judges, with reasons; null if none", nullable=True)
    estimate: float = optional("the mean; null without rates")
    low: float = optional("lower bound of its interval; null without one")
    high: float = optional("upper bound of its interval")
    n: int = optional("samples that the interval rests on")
    clusters: int = optional("questions that the interval rests on")
    reason: str = name("why attack success has no interval; null if it has", nullable=True)


class Rankings(Measured, table="rankings", key=CELL):
    """One row per judge and perturbation: its rank with an interval, and its tier."""

    mode: str = pa.Field(description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true for a simulated judge")
    quantity: str = name(
        "what the verdicts measure, such as pairs or grades from 1 to 10: only judges with the "
        "same are ranked together; null in results of an earlier version",
        nullable=True,
    )
    rank: float = optional("the rank; null without an interval, as a bare rank may be noise")
    low: float = optional("lower bound of its interval")
    high: float = optional("upper bound of its interval")
    tier: str = name("judges that share a letter do not differ; null without", nullable=True)
    n: int = counted("samples that all ranked judges share")
    clusters: int = counted("questions that all ranked judges share")
    reason: str = name("why there is no rank; null if there is one", nullable=True)


class Voters(Result, table="voters", key=("dataset", "judge", "arm", "perturbation")):
    """One row per person, arm and perturbation: votes, those left out, and why."""

    dataset: str = name("name of the dataset")
    judge: str = name("the person")
    arm: str = name("the arm")
    perturbation: str = name("name of the perturbation; null in the control arm", nullable=True)
    votes: int = counted("number of votes")
    too_fast: int = optional("number of invalid votes that were cast too fast; null if unknown")
    not_familiar: int = counted("number of votes that abstain")
    median_seconds: float = optional("median time of a vote; null if it was not measured")
    counted: int = counted("number of valid votes")


class JuryFindings(Measured, table="jury_conclusions", key=(*CELL, "left_out")):
    """One row per perturbation: the finding about the jury; and its shift without each member."""

    mode: str = pa.Field(description="how votes became a verdict")
    perturbation: str = name("name of the perturbation")
    left_out: str = name("the member left out; null for the jury of all judges", nullable=True)
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true if a member is simulated")
    statistic: str = pa.Field(
        isin=["jury_mps", "jury_mps_sham"], description="statistic used as the primary endpoint"
    )
    member_shift: float = optional("shift of the member left out")
    shift: float = optional("mean preference shift of the jury")
    low: float = optional("lower bound of its 95 % interval")
    high: float = optional("upper bound of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_adjusted: float = share(
        "Benjamini-Hochberg over the jury's perturbations; null with too few questions, and "
        "without a member",
        nullable=True,
    )
    adjustment: str = name("how the p-value was adjusted; null without one", nullable=True)
    minimum: float = pa.Field(gt=0, description="smallest relevant shift")
    finding: str = optional("the conclusion; null if there is none, see reason", isin=FINDINGS)
    cost_usd: float = optional(
        "cost of a verdict of all its members, as their votes here cost; null if a price is unknown"
    )
    n: int = counted("samples used")
    clusters: int = counted("questions used")
    reason: str = name("why there is no conclusion, or what limits the finding", nullable=True)


class CategoryShifts(
    Measured,
    table="category_shifts",
    key=("dataset", "judge", "prompt", "wave", "mode", "perturbation", "category"),
):
    """One row per judge, perturbation and category of questions: its shift, p-value adjusted."""

    mode: str = pa.Field(description="how votes became a verdict; any for ratings")
    perturbation: str = name("name of the perturbation")
    category: str = name("category of the questions, or value of the column that was asked for")
    kind: str = optional("promote or detract", isin=KINDS)
    simulated: bool = optional("true for a simulated judge")
    statistic: str = pa.Field(
        isin=["category_shift", "rating_category_shift"], description="statistic of the shift"
    )
    unit: str = optional("unit of the shift: score, points or share")
    estimate: float = optional("shift over the base of the primary endpoint; null if there is none")
    low: float = optional("lower bound of its 95 % interval")
    high: float = optional("upper bound of its 95 % interval")
    p_value: float = share("two-sided, raw", nullable=True)
    p_adjusted: float = share(
        "Benjamini-Hochberg over all categories of all cells of the study that have enough "
        "questions; null with too few",
        nullable=True,
    )
    adjustment: str = name("how the p-value was adjusted; null without one", nullable=True)
    n: int = counted("samples used")
    clusters: int = counted("questions used")
    dropped: int = counted("samples left out because a needed arm has no verdict or rating")
    method: str = name("method of the interval")
    reason: str = name("why there is no shift, interval or adjusted p-value", nullable=True)


class WinChecks(
    Measured,
    table="win_checks",
    key=("dataset", "judge", "prompt", "wave", "mode", "subgroup", "perturbation"),
):
    """One row per win of a model over another, and perturbation: whether that bias explains it."""

    mode: str = pa.Field(description="how votes became a verdict; any for the win itself")
    subgroup: str = name("the two models")
    perturbation: str = name("name of the perturbation; null for the win itself", nullable=True)
    simulated: bool = optional("true for a simulated judge")
    bias_bound: float = optional("largest part of the win that the bias can explain")
    tipping_shift: float = optional("shift that would reverse the win")
    rests_on: str = name("how it is known which answers carry the feature", nullable=True)
    clusters: int = counted("questions that the conclusion rests on")
    win_rate: float = optional("share of wins of the first model")
    win_rate_low: float = optional("lower bound of its interval")
    win_rate_high: float = optional("upper bound of its interval")
    margin: float = optional("distance of the win rate from 1/2", ge=0)
    won: bool = optional("whether the interval excludes 1/2; null without an interval")
    too_few: str = name("why the questions are too few for a conclusion, or null", nullable=True)
    robust: bool = optional("whether the bias cannot explain the win; null if nothing is concluded")
    conclusion: str = name("the same in words")


class Recommendations(Measured, table="judge_recommendations", key=(*JUDGE, "mode")):
    """One row per judge, except people, and way to make verdicts: whether to use the judge."""

    mode: str = pa.Field(description="how votes became a verdict; any for ratings")
    simulated: bool = optional("true for a simulated judge")
    recommendation: str = pa.Field(
        isin=RECOMMENDATIONS, description="what its gates say together, by the study's policy"
    )
    list_order: int = optional(
        "order of the recommendation in lists: 1 for use, 3 for do not use, else 2; null in "
        "results of an earlier version",
        ge=1,
        le=3,
    )
    summary: str = name(
        "why, in one text: up to three reasons, the most serious first, and what is inconclusive; "
        "null in results of an earlier version",
        nullable=True,
    )
    reasons: str = name(
        "what forbids or limits its use (failed or inconclusive gates), the most serious first, "
        "each with its interval and limit or the questions that it needs; undecided has what makes "
        "the data not enough, so read both; null if nothing does",
        nullable=True,
    )
    undecided: str = name(
        "inconclusive position or validity (for a judge with not enough data, read it before "
        "reasons). For any judge also notes without consequence: a sham that moves the judge, "
        "grades or pass rates that differ from people's. Null if there is neither",
        nullable=True,
    )
    drift: str = name(
        "drift that is inconclusive without an alert, which limits nothing; else null",
        nullable=True,
    )
    more_questions: int = optional(
        "number of further questions that would make the data sufficient; if the data are "
        "sufficient, or no number helps, the number that would decide the gates in more_decide. "
        "The chance is 60 to 80 % per gate; null above ten times the questions asked, and for a "
        "judge that should not be used",
        ge=1,
    )
    more_decide: str = name("gates that so many further questions would decide", nullable=True)
    stays_open: str = name(
        "position or validity, if its interval reaches its limit so that no number up to ten times "
        "the questions asked decides it with such a chance",
        nullable=True,
    )
    too_few: str = name(
        "position or validity, if fewer questions have a verdict than a gate needs", nullable=True
    )
    unanswered: bool = optional(
        "true if validity lacks replies, for which the same audit asks again"
    )
    not_measured: str = name("what was not measured at all; null if nothing", nullable=True)
    passed: int = counted("number of gates passed")
    failed: int = counted("number of gates failed")
    inconclusive: int = counted("number of gates that are inconclusive")
