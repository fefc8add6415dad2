"""What people read about a gate: its reason, and its words in a recommendation."""

import re

import polars as pl

from schemas.results import (
    BEYOND_CHANCE,
    IN_LOGITS,
    IN_MEAN_SCORES,
    IN_SDS,
    MEAN_DETECTED,
)
from tasks.conclusions.cautions import differs_between_questions, mixed_words
from tasks.conclusions.rules import (
    BY_LOGITS,
    ONLY_ALONE,
    shown,
    written,
    written_count,
    written_p,
)
from tasks.gates.more_questions import is_doubtful
from tasks.inference.linearised_errors import FEW
from tasks.kit.defaults import limits

SUBJECTS = {
    "position": "position",
    "validity": "validity",
    "discernment": "discernment",
    "agreement": "agreement with people",
    "drift": "drift",
}
"""Gate of the whole judge -> how a recommendation names it."""
ABSENT = {
    "bias": "biases",
    **{gate: SUBJECTS[gate] for gate in ("discernment", "agreement", "drift")},
}
"""Gate that a judge may lack -> how a recommendation says so."""
WITH_LABELS = "agreement with the labels"
"""How a recommendation names the gate agreement where each item has one label."""
FAILED = {
    "position": "prefers the {} slot",
    "validity": "invalid replies",
    "discernment": "does not detect flaws",
    "agreement": "agrees less with people than people with each other",
    "drift": "has changed since its baseline",
}
FOUND = {
    "biased": "biased by {}",
    "overlooks": "overlooks {}",
    "rewards": "rewards {}",
    "mixed": "mixed under {}",
    "detects some": "detects some of {}, perhaps too few",
}
"""Finding about a perturbation that limits the use of a judge -> its words."""
LOST = "agreement lost"
"""What the gate agreement measures beside people who agree with each other."""
HARDLY = "agrees with the labels hardly better than by chance"
"""How a judge fails the gate agreement where each item has one label."""
ONE_LABEL = "one label per item does not tell how well people agree with each other"
LOGITS = rf"({re.escape(BY_LOGITS)}): [^;]*"
"""The effect in logits in the reason of a finding about easy pairs."""
BY_MEAN = "mean over the kinds of flaws"
NO_MARGIN = "no margin: the adjusted p-value or the effect in logits decides, not this interval"


def reason() -> pl.Expr:
    """Say what limits the verdict of a gate, or why it has no margin; null if nothing does."""
    about = (
        pl.when(_is_alone())
        .then(pl.lit(ONE_LABEL))
        .when(_is_mean())
        .then(pl.lit(BY_MEAN))
        .otherwise(after_change())
    )
    worst = pl.format("the worst of {} criteria: {}", "criteria", "criterion")
    margin = pl.when("contradicted").then(pl.lit(NO_MARGIN))
    # The value of the gate is this effect already.
    why = pl.when(pl.col("measure") == IN_LOGITS).then(_why().str.replace(LOGITS, "$1"))
    parts = pl.concat_str(
        about, why.otherwise(_why()), worst, margin, separator="; ", ignore_nulls=True
    )
    return pl.when(parts != "").then(parts)


def share_name(name: pl.Expr, by_d: pl.Expr) -> pl.Expr:
    """Say of a share of flaws detected that it is D, the one in mean scores, if it is."""
    return pl.when(by_d).then(name.replace(IN_MEAN_SCORES)).otherwise(name)


def _is_mean() -> pl.Expr:
    return pl.col("measure").is_in([MEAN_DETECTED, IN_MEAN_SCORES[MEAN_DETECTED]])


def after_change() -> pl.Expr:
    """Say that drift is measured from a baseline that a change started; null if none did."""
    return pl.format("its baseline follows {}", "earlier_change")


def subject() -> pl.Expr:
    """Name what a gate is about."""
    labels = pl.when(_is_alone()).then(pl.lit(WITH_LABELS))
    named = pl.coalesce("perturbation", labels, pl.col("gate").replace(SUBJECTS))
    return named.str.replace_all("_", " ", literal=True)


def words() -> pl.Expr:
    """Word what a gate contributes to a recommendation, with its numbers and limit.

    A gate that is passed is worth a word only if the sham itself moves the judge.
    """
    sham = shown("sham_shift", "sham_shift")
    passed = pl.format("{}: the sham itself shifts the judge by {}", subject(), sham)
    decided = _is_found() | (pl.col("verdict") == "fail")
    return (
        pl.when(pl.col("verdict") == "pass")
        .then(passed)
        .when(decided)
        .then(_against())
        .otherwise(_inconclusive())
    )


def _against() -> pl.Expr:
    """Word what a finding or a failed gate says against a judge."""
    said = pl.col("gate").replace(FAILED)
    slot = pl.when(pl.col("value") < 0).then(pl.lit("second")).otherwise(pl.lit("first"))
    said = (
        pl.when(pl.col("gate") == "position")
        .then(said.str.replace("{}", slot, literal=True))
        .otherwise(said)
    )
    for finding, text in FOUND.items():
        about = (pl.col("gate") == "bias") & (pl.col("finding") == finding)
        said = pl.when(about).then(pl.format(text, subject())).otherwise(said)
    said = pl.when(_is_alone()).then(pl.lit(HARDLY)).otherwise(said) + _on_criterion()
    said += pl.format(": {}", "changed").fill_null("")
    said += pl.when(_is_mean()).then(pl.lit(" on average")).fill_null("")
    # A mixed bias rests on the spread of the shifts, not on their mean.
    between_questions, between_categories = mixed_words("shift_spread")
    mixed = pl.when(differs_between_questions("shift_spread")).then(between_questions)
    numbers = (
        pl.when(pl.col("finding") == "mixed")
        .then(pl.format(" ({})", mixed.otherwise(between_categories)))
        .when(pl.col("effect_logits").is_not_null())
        .then(_in_logits())
    )
    # A flaw may be detected for certain once more questions are asked.
    missing = pl.when(_is_found()).then(pl.format(", {}", _missing()))
    return said + pl.coalesce(numbers, _numbers(missing), pl.lit(""))


def _inconclusive() -> pl.Expr:
    """Word what the data do not decide, with the questions that it lacks or what else it lacks."""
    # More questions do not remove a reason such as a sham that moves the judge.
    why = _why().str.replace_all("; ", ", ", literal=True)
    # How many there are says how many are lacking.
    fewest = limits().fewest_questions
    few = FEW.format(fewest)
    of_fewest = pl.format("{} of at least {}", "clusters", pl.lit(few.removeprefix("fewer than ")))
    lacks = ((why == few) & (pl.col("clusters") < fewest)).fill_null(value=False)
    why = pl.when(lacks).then(of_fewest).otherwise(why)
    # Invalid votes may hide either finding.
    doubtful = (pl.col("gate") == "bias") & is_doubtful()
    unread = pl.format("{} of the votes of an arm are invalid", written("most_lost"))
    # The numbers of an effect stand beside its p-values.
    alone = pl.when(why.str.starts_with(ONLY_ALONE)).then(pl.format(", {}", why))
    why = pl.when(alone.is_null()).then(why)
    lacking = pl.coalesce(_missing(), why, pl.when(doubtful).then(unread))
    numbers = pl.coalesce(pl.format(" ({})", lacking), _numbers(alone), pl.lit(""))
    text = pl.format("{}{} is inconclusive{}", subject(), _on_criterion(), numbers)
    return pl.concat_str(text, after_change(), separator=" and ", ignore_nulls=True)


def _why() -> pl.Expr:
    """Say what stands in the way of a verdict: replies, a suspicion, or the data."""
    unconfirmed = pl.format("suspect, which the next wave must confirm: {}", "changed")
    alert = pl.when(pl.col("verdict") == "fail").then(pl.format("alert: {}", "changed"))
    no_reply = pl.format("{} of the ballots have no reply", written("no_reply"))
    return pl.coalesce(no_reply, alert, unconfirmed, "why")


def _numbers(more: pl.Expr | None = None) -> pl.Expr:
    """Write the value of a gate, its interval and its limit; null without one of them."""
    of_flaws = pl.col("measure").is_in([*IN_MEAN_SCORES, *IN_MEAN_SCORES.values()])
    in_logits = pl.col("measure") == IN_LOGITS
    named = of_flaws | _is_alone() | in_logits | (pl.col("measure") == LOST)
    measure = pl.when(named).then(pl.format("{} ", "measure"))
    limit = pl.format("limit {}", written("tolerance"))
    between = (pl.col("kind") == "detract") & ~pl.col("finding").is_in(["overlooks", "rewards"])
    both = pl.format("limits {} and {}", written(limits().overlooks_below), written("tolerance"))
    return pl.format(
        " ({}{} [{}, {}]{}, {}{})",
        measure.fill_null(""),
        *(written(name) for name in ("value", "low", "high")),
        pl.when(pl.col("measure") == IN_SDS).then(pl.lit(" SD")).otherwise(pl.lit("")),
        pl.when(between).then(both).otherwise(limit),
        pl.lit("") if more is None else more.fill_null(""),
    )


def _in_logits() -> pl.Expr:
    """Write the numbers of a bias with the p-value of its shift, or gap, and the size in logits."""
    return pl.format(
        " ({} {} [{}, {}]{}, and effect in logits {}, limit {})",
        "measure",
        *(written(name) for name in ("value", "low", "high")),
        pl.format(", adjusted p {}", written_p("p_adjusted")).fill_null(""),
        written("effect_logits"),
        written(limits().minimum_log_odds),
    )


def _missing() -> pl.Expr:
    """Say how many questions are lacking, of drift also where they must come from."""
    more, base = pl.col("more_questions"), pl.col("base_questions")
    plural = pl.when(more == 1).then(pl.lit("")).otherwise(pl.lit("s"))
    about = pl.format("about {} more question{}", written_count(more), plural)
    total = pl.col("questions") + more
    too_small = pl.format(
        "the baseline has only {} questions: a new one of about {}, of a larger dataset or in "
        "another warehouse, would decide",
        written_count(base),
        written_count(total),
    )
    theirs = pl.when(base.is_null()).then(pl.lit("baseline and wave share"))
    shared = pl.format("{} that {}", about, theirs.otherwise(pl.lit("the baseline has too")))
    is_drift = pl.col("gate") == "drift"
    return (
        pl.when(is_drift & (total > base))
        .then(too_small)
        .when(is_drift)
        .then(shared)
        .otherwise(about)
    )


def _on_criterion() -> pl.Expr:
    """Name the criterion of the gate agreement; empty without one."""
    # Readers split reasons at semicolons.
    named = pl.col("criterion").str.replace_all("; ", ", ", literal=True)
    return pl.format(" on {}", named).fill_null("")


def _is_alone() -> pl.Expr:
    """Tell whether the gate agreement is about one label per item, whose authors are not known."""
    return pl.col("measure").str.starts_with(BEYOND_CHANCE).fill_null(value=False)


def _is_found() -> pl.Expr:
    """Tell whether a gate follows a finding that limits the use of a judge."""
    return pl.col("finding").is_in([*FOUND]).fill_null(value=False)
