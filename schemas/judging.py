"""Frames of judging: pairs, ballots, votes, tallies, verdicts and shifts."""

from pathlib import Path
from typing import Annotated, Any, get_args

import pandera.polars as pa
import polars as pl

from schemas.curation import KINDS, VERDICTS
from schemas.frame import Fact, Frame, Result, counted, name, optional, share
from schemas.keys import Choice, Mode, NoVerdict, Preference, RatingKind

ARMS = ["control", "experimental", "sham", "replicate", "reworded"]
"""A replicate asks about the control pair again, with higher repeat numbers; ``reworded`` asks
about it in other words that mean the same (``perturbation`` names the variant of the prompt)."""

SIDES = ["anchor", "target"]
FORMATS = ("header", "list", "bold")
"""Kinds of markup that are also counted separately."""
VALID = [*get_args(Preference)]
WITHOUT_VERDICT = [*get_args(NoVerdict)]
VERSUS = " vs "
"""Separates the names of two models in a subgroup, so no name may contain it."""
STOPS = ["lossless", "pair", "deterministic"]
CHOICES = [*get_args(Choice)]
MODES = [*get_args(Mode)]
RATED = "rated"
"""Choice of a vote on one answer, whose rating was read."""
PROMPT_KINDS = ["pair", *get_args(RatingKind)]
TALLIES = Path(__file__).with_name("tallies.sql").read_text(encoding="utf-8")
LAST_REPEAT = 126
"""Last repeat that ``tallies.sql`` can count: a set of repeats is an integer of 127 bits."""
SETS = {7: "utinyint", 31: "uinteger", LAST_REPEAT: "hugeint"}
"""Last repeat in a set -> DuckDB's smallest type that holds it; larger types take more time."""


def tallies_query(last_repeat: int) -> str:
    """Return the query that counts the votes of a study without repeats above ``last_repeat``.

    The DuckDB variable ``study`` names the study; for the rows see :class:`Tallies`.
    """
    kind = next(kind for last, kind in SETS.items() if last_repeat <= last)
    return TALLIES.replace("hugeint", kind)


def author(side: str) -> Any:
    """Return a field for the author of an answer."""
    return name(f"model that wrote the {side}; null if unknown", nullable=True)


def size(what: str) -> Any:
    """Return a field for a size, null if unknown."""
    return optional(f"{what}; null if unknown", ge=0)


def only_order(what: str) -> Any:
    """Return a field for the order in logs where a judge saw every pair in one order only."""
    return optional(
        f"which answer was shown first in {what}, if the judge saw each pair in one "
        "order only; else null",
        isin=SIDES,
    )


def ballots(arm: str) -> Any:
    """Return a field for a pair's number of ballots in an arm."""
    return optional(
        f"ballots of the {arm} pair, including unnecessary ones; null if not asked", ge=1
    )


class Judges(Fact, table="judges", key=("judge",)):
    """One row per judge: a model with fixed parameters, or a person."""

    judge: str = name("name with its provider, as in offline/honest")
    provider: str = name("provider that runs the model")
    model: str = name("name of the model in litellm")
    params: str = name("JSON of all parameters of a call, including its address")
    system: str = pa.Field(
        description="the judge's own system message, which precedes the prompt's"
    )
    simulated: bool = pa.Field(description="true for a simulated judge, which is not a model")


class Prompts(Fact, table="prompts", key=("prompt",)):
    """One row per judge prompt."""

    prompt: str = name("name of the judge prompt; one of the user's own with its digest")
    kind: str = pa.Field(
        isin=PROMPT_KINDS,
        description="pair: two answers are compared; for one answer, single: a grade, binary: pass "
        "or fail, rubric: a grade for each criterion, labels: a set of labels",
    )
    source: str = name("source of the prompt")
    verdict: str = name(
        "format of the verdict in the reply: tag, json or button; or JSON of the pattern or "
        "pointer that finds it, with the choice for each text; for one answer also JSON of the "
        "scale, criteria and labels"
    )
    system: str = pa.Field(description="system message")
    user: str = name("user message with placeholders for question and answers")
    digest: str = name("digest of its wording; null if unknown", nullable=True)


class Pairs(Fact, table="pairs", key=("pair_id",), references={"cluster": "questions"}):
    """One row per answers to a question as a judge may see them: two, or the target alone."""

    pair_id: str = name("digest of all other columns")
    dataset: str = name("name of the dataset")
    sample: str = name("id of the question with its anchor and target: the target's answer_id")
    cluster: str = name("unit of independence: the question")
    arm: str = pa.Field(isin=ARMS, description=f"one of {', '.join(ARMS)}")
    perturbation: str = name(
        "name of the perturbation, or of the variant; null in control", nullable=True
    )
    kind: str = optional("promote or detract; null in control", isin=KINDS)
    question: str = name("the question's text")
    anchor: str = pa.Field(
        description="text of A1, never perturbed; empty if the question has one answer"
    )
    target: str = name("text of A2 in this arm")


class StudyPairs(Result, table="study_pairs", key=("pair_id",), references={"pair_id": "pairs"}):
    """One row per pair that the results of a study rest on: what people vote on too."""

    pair_id: str = name("the pair")


class Ballots(
    Fact,
    table="ballots",
    key=("pair_id", "judge", "prompt", "wave", "shown_first", "repeat"),
    references={"pair_id": "pairs", "judge": "judges", "prompt": "prompts"},
):
    """One row per asking that a study needs; equal askings share a ballot_id."""

    ballot_id: str = name(
        "digest of everything that can change the reply: model, parameters, prompt, repeat, wave"
    )
    pair_id: str = name("the pair that is shown")
    judge: str = name("the judge that is asked")
    prompt: str = name("how")
    wave: str = pa.Field(description="label of a measurement in time; empty if there is only one")
    shown_first: str = pa.Field(
        isin=SIDES, description="which answer is shown first, or alone if the prompt shows one"
    )
    repeat: int = counted("number of the repeat, from 0")


class Votes(Fact, table="votes", key=("ballot_id",), references={"ballot_id": "ballots"}):
    """One row per ballot cast."""

    ballot_id: str = name("the ballot")
    choice: str = pa.Field(
        isin=[*CHOICES, RATED],
        description="vote that was read from the reply; rated for a rating of one answer",
    )
    raw: str = pa.Field(description="the reply, verbatim")
    model: str = optional("model name in the reply")
    fingerprint: str = optional("system fingerprint in the reply")
    finish_reason: str = optional("finish reason in the reply")
    seconds: float = counted("seconds from the request to the reply")
    prompt_tokens: int = optional("as reported", ge=0)
    completion_tokens: int = optional("as reported", ge=0)
    cost_usd: float = optional("cost of the reply; null if the price is unknown", ge=0)
    attempts: int = pa.Field(ge=1, description="number of requests made for this reply")
    dropped_params: str = optional(
        "JSON of parameters that were not sent because the model does not accept them"
    )
    first_token: str = optional("first token of the reply, if log probabilities were requested")
    first_probability: float = share("probability that the model gave to that token", nullable=True)
    cast_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(description="time of the reply")
    rating: str = optional(
        "rating that was read, also one off the scale, as JSON: criterion, empty for the whole "
        "answer -> grade, true or false, or list of labels; for a pair whose prompt asks for two "
        "grades: first and second -> grade"
    )


class Claims(Frame, table="claims", key=("ballot_id",)):
    """One row per ballot that a run is about to ask, so that no other run asks it too."""

    ballot_id: str = name("the ballot")
    run: str = name("id of the run that asks the ballot")


class Measured(Result):
    """Columns that all results begin with: what they are about."""

    dataset: str = name("name of the dataset")
    judge: str = name("the judge that was asked")
    prompt: str = name("name of the judge prompt")
    wave: str = pa.Field(description="label of a measurement in time")


class Compared(Measured):
    """Columns about the two answers of a pair, null where unknown."""

    anchor_author: str = author("anchor")
    target_author: str = author("target")
    anchor_length: int = size("characters of the anchor")
    target_length: int = size("characters of the target")
    anchor_header: int = size("headings of the anchor")
    target_header: int = size("headings of the target")
    anchor_list: int = size("list items of the anchor")
    target_list: int = size("list items of the target")
    anchor_bold: int = size("bold words of the anchor")
    target_bold: int = size("bold words of the target")
    anchor_markup: int = size(
        "all markup of the anchor: headings, list items, bold words, table rows, code blocks, emoji"
    )
    target_markup: int = size(
        "all markup of the target: headings, list items, bold words, table rows, code blocks, emoji"
    )
    human_score: float = share(
        "people's score of the pair: 0 anchor, 1 target; null if not labelled", nullable=True
    )
    label_chance: float = optional(
        "probability that the pair was selected for labelling by people; null if unknown",
        gt=0,
        le=1,
    )


class VoteLog(
    Compared,
    table="vote_log",
    key=(
        "dataset",
        "judge",
        "prompt",
        "wave",
        "sample",
        "arm",
        "perturbation",
        "shown_first",
        "repeat",
    ),
):
    """One row per ballot of a study with its vote: all that the statistics of pairs read.

    Of single answers they read ``ratings``, where a study of these alone has all its rows. Both
    hold the wave measured last; ``votes`` holds all.
    """

    sample: str = name("a question with its anchor and target")
    cluster: str = name("unit of independence: the question")
    arm: str = pa.Field(isin=ARMS, description=f"one of {', '.join(ARMS)}")
    perturbation: str = name(
        "name of the perturbation; null in control, which all perturbations share; in the arm "
        "reworded, name of the variant of the prompt",
        nullable=True,
    )
    kind: str = optional("promote or detract; null in control", isin=KINDS)
    shown_first: str = pa.Field(isin=SIDES, description="which answer was shown first")
    repeat: int = counted("number of the repeat, from 0")
    choice: str = optional("the vote; null if not cast", isin=CHOICES)
    stopped: str = optional(
        "stopping rule that made the ballot unnecessary; null if it was needed", isin=STOPS
    )
    simulated: bool = optional("true for a simulated judge; null if unknown")
    cached: bool = optional("true if the vote was cast in an earlier run; null if unknown")
    label: str = optional("the correct verdict on the pair; null if unknown", isin=VERDICTS)
    human: bool = optional("true if the judge is a person")
    category: str = name("group of questions, such as a Bloom level", nullable=True)
    turn: str = name("turn of the conversation that is judged; null if unknown", nullable=True)
    ballot_id: str = name("the ballot; null for people, and in files", nullable=True)


class Tallies(
    Compared,
    key=("dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation"),
):
    """One row per judge, prompt, wave, sample, arm and perturbation: its votes, counted.

    Order 12 shows the anchor first, 21 the target; votes with the same repeat number in both orders
    are matched (``tallies.sql``).
    """

    sample: str = name("a question with its anchor and target")
    cluster: str = name("unit of independence: the question")
    arm: str = pa.Field(isin=ARMS, description=f"one of {', '.join(ARMS)}")
    perturbation: str = name("null in the control arm", nullable=True)
    kind: str = optional("null in the control arm", isin=KINDS)
    simulated: bool = optional("true for a simulated judge")
    planned: int = counted("ballots")
    stopped: int = counted("ballots that a stopping rule made unnecessary")
    voted: int = counted("votes, valid or not")
    invalid: int = counted("votes without a verdict")
    abstain: int = counted("refusals")
    ambiguous: int = counted("votes with conflicting verdicts")
    known: int = counted(
        "needed ballots for which it is known whether they were cast in an earlier run"
    )
    cached: int = counted("needed ballots that were cast in an earlier run")
    anchor_12: int = counted("votes for the anchor, anchor shown first")
    tie_12: int = counted("ties, anchor shown first")
    target_12: int = counted("votes for the target, anchor shown first")
    anchor_21: int = counted("votes for the anchor, target shown first")
    tie_21: int = counted("ties, target shown first")
    target_21: int = counted("votes for the target, target shown first")
    planned_12: int = counted("ballots with the anchor shown first")
    matched: int = counted("matches: repeats asked in both orders")
    alone: int = counted("matches with one valid vote")
    consistent: int = counted("consistent matches: the same answer twice, or two ties")
    both_target: int = counted("matches with two votes for the target")
    both_tie: int = counted("matches with two ties")
    primacy: int = counted("inconsistent matches that favour the first slot")
    recency: int = counted("inconsistent matches that favour the second slot")
    first_first: int = counted("matches with two votes for the first slot")
    second_second: int = counted("matches with two votes for the second slot")
    matched_once: bool = pa.Field(description="true if repeat 0 was asked in both orders")
    once_12: int = optional(
        "repeat 0 with the anchor shown first: -1 anchor, 0 tie, 1 target", ge=-1, le=1
    )
    once_21: int = optional(
        "repeat 0 with the target shown first: -1 anchor, 0 tie, 1 target", ge=-1, le=1
    )
    voted_12: int = counted("votes, valid or not, anchor shown first")
    voted_21: int = counted("votes, valid or not, target shown first")
    label: str = optional("the correct verdict; null if unknown", isin=VERDICTS)
    human: bool = optional("true if the judge is a person")
    matched_right: int = optional("matches with two correct votes; null without a label", ge=0)
    matched_voted: int = counted("matches with two votes, valid or not")
    matched_invalid: int = counted("matches with two votes, neither of them valid")
    category: str = name(
        "group of questions; for control pairs only, like the columns about the answers",
        nullable=True,
    )


class Contests(Compared, key=("dataset", "judge", "prompt", "wave", "sample")):
    """One row per judge, prompt, wave and control pair whose answers two known models wrote."""

    sample: str = name("a question with its anchor and target")
    cluster: str = name("unit of independence: the question")
    votes: int = pa.Field(ge=1, description="ballots of the pair, including unnecessary ones")
    score: float = share(
        "mean score (0 anchor, 1 target) over both orders; null unless each has a valid vote",
        nullable=True,
    )
    score_12: float = share("mean score of the votes with the anchor shown first", nullable=True)
    score_21: float = share("mean score of the votes with the target shown first", nullable=True)
    shown_first: str = only_order("its votes")
    anchor_author: str = name("model that wrote the anchor")
    target_author: str = name("model that wrote the target")
    simulated: bool = optional("true for a simulated judge")
    human: bool = optional("true for a person")


class Verdicts(
    Measured,
    table="verdicts",
    key=("dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation"),
):
    """One row per sample, arm, perturbation, judge, prompt and wave."""

    sample: str = name("a question with its anchor and target")
    cluster: str = name("unit of independence: the question")
    arm: str = pa.Field(isin=ARMS, description=f"one of {', '.join(ARMS)}")
    perturbation: str = name("null in the control arm", nullable=True)
    kind: str = optional("null in the control arm", isin=KINDS)
    mode: str = pa.Field(isin=MODES, description="how votes become a verdict")
    votes: int = pa.Field(ge=1, description="ballots of the pair, including unnecessary ones")
    valid_votes: int = counted("number of valid votes (first, second or tie)")
    score: float = share("mean score of the valid votes (0 anchor, 1 target)", nullable=True)
    verdict: str = optional("the verdict; null without enough valid votes", isin=VERDICTS)
    shown_first: str = only_order("its votes")
    simulated: bool = optional("true for a simulated judge")


class Shifts(
    Measured, table="shifts", key=("dataset", "judge", "prompt", "wave", "sample", "perturbation")
):
    """One row per sample and perturbation, judge, prompt and wave: its arms side by side."""

    sample: str = name("a question with its anchor and target")
    cluster: str = name("unit of independence: the question")
    perturbation: str = name("name of the perturbation")
    kind: str = pa.Field(isin=KINDS, description="promote or detract")
    mode: str = pa.Field(isin=MODES, description="how votes become a verdict")
    votes: int = pa.Field(
        ge=1, description="ballots of the experimental pair, including unnecessary ones"
    )
    control_votes: int = ballots("control")
    sham_votes: int = ballots("sham")
    replicate_votes: int = ballots("replicate")
    control: str = optional("verdict", isin=VERDICTS)
    experimental: str = optional("verdict", isin=VERDICTS)
    sham: str = optional("verdict", isin=VERDICTS)
    control_score: float = share("score", nullable=True)
    experimental_score: float = share("score", nullable=True)
    sham_score: float = share("score", nullable=True)
    replicate: str = optional("verdict when control is asked again", isin=VERDICTS)
    shown_first: str = only_order("the experimental pair")
    has_sham: bool = pa.Field(description="true if there is a sham arm")
    has_replicate: bool = pa.Field(description="true if control was asked again")
    simulated: bool = optional("true for a simulated judge")
