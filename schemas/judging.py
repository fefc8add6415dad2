"""Frames of judging: pairs, ballots, votes, and what is counted from them."""

from pathlib import Path
from typing import Annotated, Any

import pandera.polars as pa
import polars as pl

from schemas.curation import KINDS
from schemas.frame import Fact, Frame, Result, counted, name, optional, share

ARMS = ["control", "experimental", "sham", "replicate"]
"""A replicate is control shown again; its repeats continue the numbering of control."""

SIDES = ["anchor", "target"]
FORMATS = ("header", "list", "bold")
"""Kinds of markup that also have counts of their own."""
VALID = ["first", "second", "tie"]
VERSUS = " vs "
"""Separates the names of two models in a subgroup, so no name may contain it."""
STOPS = ["lossless", "pair", "deterministic"]
VERDICTS = ["anchor", "tie", "target"]
CHOICES = [*VALID, "invalid", "abstain", "ambiguous"]
TALLIES = Path(__file__).with_name("tallies.sql").read_text(encoding="utf-8")
"""Counts the votes of the study named by the DuckDB variable ``study``; see :class:`Tallies`."""


def author(side: str) -> Any:
    """Return a field for the author of an answer."""
    return name(f"model that wrote the {side}; null if unknown", nullable=True)


def size(what: str) -> Any:
    """Return a field for a size, null if unknown."""
    return pa.Field(ge=0, nullable=True, description=f"{what}; null if unknown")


def only_order(what: str) -> Any:
    """Return a field for the order in logs where a judge saw every pair in one order only."""
    return pa.Field(
        isin=SIDES,
        nullable=True,
        description=f"which answer stood first in {what}, where the judge saw every pair in one "
        "order only; else null",
    )


def ballots(arm: str) -> Any:
    """Return a field for a pair's number of ballots in an arm."""
    return pa.Field(ge=1, nullable=True, description=f"the same of {arm}; null if not asked")


class Judges(Fact, table="judges", key=("judge",)):
    """One row per judge: a model with fixed parameters, or a person."""

    judge: str = name("provider and name, as in offline/honest")
    provider: str = name("who runs it")
    model: str = name("the model as litellm names it")
    params: str = name("JSON of all parameters of a call, and of where it goes")
    system: str = pa.Field(description="system message of its own, before that of the prompt")
    simulated: bool = pa.Field(description="true for an offline judge, which is not a model")


class Prompts(Fact, table="prompts", key=("prompt",)):
    """One row per judge prompt."""

    prompt: str = name("name of the judge prompt")
    kind: str = pa.Field(isin=["pair"], description="pairwise, single or reference-guided")
    source: str = name("where the form comes from")
    verdict: str = pa.Field(
        isin=["tag", "json", "button"], description="form of the verdict in the reply"
    )
    system: str = pa.Field(description="system message")
    user: str = name("user message with places for question and answers")


class Pairs(Fact, table="pairs", key=("pair_id",), references={"cluster": "questions"}):
    """One row per two answers as a judge may see them."""

    pair_id: str = name("key of everything else in the row")
    dataset: str = name("name of the dataset")
    sample: str = name("a question with its anchor and target, named by the target's answer_id")
    cluster: str = name("what is independent of what: the question")
    arm: str = pa.Field(isin=ARMS, description="control, experimental, sham or replicate")
    perturbation: str = name("name of the perturbation; null in control", nullable=True)
    kind: str = optional("promote or detract; null in control", isin=KINDS)
    question: str = name("the question's text")
    anchor: str = name("text of A1, never perturbed")
    target: str = name("text of A2 in this arm")


class StudyPairs(Result, table="study_pairs", key=("pair_id",), references={"pair_id": "pairs"}):
    """One row per pair that the results of a study rest on: what people vote on too."""

    pair_id: str = name("the pair")


class Ballots(
    Fact,
    table="ballots",
    key=("pair_id", "judge", "prompt", "wave", "shown_first", "repeat"),
    references={
        "pair_id": "pairs",
        "judge": "judges",
        "prompt": "prompts",
    },
):
    """One row per asking that a study needs; equal askings share a ballot_id."""

    ballot_id: str = name(
        "key of all that can change the reply: model, parameters, prompt, repeat, wave"
    )
    pair_id: str = name("what is shown")
    judge: str = name("who is asked")
    prompt: str = name("how")
    wave: str = pa.Field(description="label of a measurement in time; empty if there is one only")
    shown_first: str = pa.Field(isin=SIDES, description="which answer stands first")
    repeat: int = counted("number of the repeat")


class Votes(Fact, table="votes", key=("ballot_id",), references={"ballot_id": "ballots"}):
    """One row per ballot cast."""

    ballot_id: str = name("the ballot")
    choice: str = pa.Field(isin=CHOICES, description="what the parser read in the reply")
    raw: str = pa.Field(description="the reply, verbatim")
    model: str = optional("model string as the provider reported it")
    fingerprint: str = optional("system fingerprint as reported")
    finish_reason: str = optional("why the reply ended, as reported")
    seconds: float = pa.Field(ge=0, description="from request to reply")
    prompt_tokens: int = pa.Field(ge=0, nullable=True, description="as reported")
    completion_tokens: int = pa.Field(ge=0, nullable=True, description="as reported")
    cost_usd: float = pa.Field(ge=0, nullable=True, description="null if the price is unknown")
    attempts: int = pa.Field(ge=1, description="requests made for this reply")
    dropped_params: str = optional("JSON of parameters the model does not take, so not sent")
    first_token: str = optional("first token of the reply, where log probabilities were asked for")
    first_probability: float = share("chance that the model gave to that token", nullable=True)
    cast_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(description="when the reply came")


class Claims(Frame, table="claims", key=("ballot_id",)):
    """One row per ballot that a run is about to ask, so that no other run asks it too."""

    ballot_id: str = name("the ballot")
    run: str = name("id of the run that asks it")


class Measured(Result):
    """Columns that all results begin with: what they are about."""

    dataset: str = name("name of the dataset")
    judge: str = name("who was asked")
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
    anchor_markup: int = size("all markup of the anchor: these, table rows, code blocks, emoji")
    target_markup: int = size("all markup of the target: these, table rows, code blocks, emoji")
    human_score: float = share(
        "what people said of the pair: 0 anchor, 1 target; null if not labelled", nullable=True
    )
    label_chance: float = pa.Field(
        gt=0,
        le=1,
        nullable=True,
        description="chance that the pair had to be labelled by people; null if unknown",
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
    """One row per ballot of a study with its vote: all that the statistics read."""

    sample: str = name("a question with its anchor and target")
    cluster: str = name("what is independent of what: the question")
    arm: str = pa.Field(isin=ARMS, description="control, experimental, sham or replicate")
    perturbation: str = name("null in control, which serves every perturbation", nullable=True)
    kind: str = optional("promote or detract; null in control", isin=KINDS)
    shown_first: str = pa.Field(isin=SIDES, description="which answer stood first")
    repeat: int = counted("number of the repeat")
    choice: str = optional("the vote; null if not cast", isin=CHOICES)
    stopped: str = optional("rule by which the ballot was not needed; null if it was", isin=STOPS)
    simulated: bool = optional("true for an offline judge; null if unknown")
    cached: bool = optional("cast in an earlier run; null if unknown")
    label: str = optional("the right verdict on the pair; null if unknown", isin=VERDICTS)
    human: bool = optional("whether the judge is a person")
    category: str = name("group of questions, such as a Bloom level", nullable=True)


class Tallies(
    Compared,
    table="tallies",
    key=("dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation"),
):
    """One row per judge, prompt, wave, sample, arm and perturbation: its votes, counted.

    Order 12 shows the anchor first, 21 the target; votes with the same repeat number in both orders
    are matched (``tallies.sql``).
    """

    sample: str = name("a question with its anchor and target")
    cluster: str = name("what is independent of what: the question")
    arm: str = pa.Field(isin=ARMS, description="control, experimental, sham or replicate")
    perturbation: str = name("null in control", nullable=True)
    kind: str = optional("null in control", isin=KINDS)
    simulated: bool = optional("true for an offline judge")
    planned: int = counted("ballots")
    stopped: int = counted("ballots that a stopping rule made needless")
    voted: int = counted("votes, valid or not")
    invalid: int = counted("votes without a verdict")
    abstain: int = counted("refusals")
    ambiguous: int = counted("votes with conflicting verdicts")
    known: int = counted("needed ballots of which it is known whether they were cast before")
    cached: int = counted("of these, those cast in an earlier run")
    anchor_12: int = counted("votes for the anchor, anchor first")
    tie_12: int = counted("ties, anchor first")
    target_12: int = counted("votes for the target, anchor first")
    anchor_21: int = counted("votes for the anchor, target first")
    tie_21: int = counted("ties, target first")
    target_21: int = counted("votes for the target, target first")
    planned_12: int = counted("ballots with the anchor first")
    matched: int = counted("repeats asked in both orders")
    alone: int = counted("matches with one valid vote")
    consistent: int = counted("matches with the same answer preferred, or two ties")
    both_target: int = counted("matches with two votes for the target")
    both_tie: int = counted("matches with two ties")
    primacy: int = counted("matches that differ, with a vote for the first slot")
    recency: int = counted("matches that differ, with a vote for the second slot")
    first_first: int = counted("matches with two votes for the first slot")
    second_second: int = counted("matches with two votes for the second slot")
    matched_once: bool = pa.Field(description="whether repeat 0 was asked in both orders")
    once_12: int = pa.Field(ge=-1, le=1, nullable=True, description="repeat 0, anchor first")
    once_21: int = pa.Field(ge=-1, le=1, nullable=True, description="repeat 0, target first")
    voted_12: int = counted("votes, valid or not, anchor first")
    voted_21: int = counted("votes, valid or not, target first")
    label: str = optional("the right verdict", isin=VERDICTS)
    human: bool = optional("whether the judge is a person")
    matched_right: int = pa.Field(
        ge=0, nullable=True, description="matches with two right votes; null without a label"
    )
    matched_voted: int = counted("matches with two votes, valid or not")
    matched_invalid: int = counted("matches with two votes, neither of them valid")
    category: str = name(
        "group of questions; of control pairs only, as what is known of answers", nullable=True
    )


class Contests(Compared, table="contests", key=("dataset", "judge", "prompt", "wave", "sample")):
    """One row per judge, prompt, wave and control pair whose answers two known models wrote."""

    sample: str = name("a question with its anchor and target")
    cluster: str = name("what is independent of what: the question")
    votes: int = pa.Field(ge=1, description="ballots of the pair, those made needless too")
    score: float = share(
        "0 anchor, 1 target, mean over both orders; null unless each has a valid vote",
        nullable=True,
    )
    score_12: float = share("the same of the votes with the anchor first", nullable=True)
    score_21: float = share("the same of the votes with the target first", nullable=True)
    shown_first: str = only_order("its votes")
    anchor_author: str = name("model that wrote the anchor")
    target_author: str = name("model that wrote the target")
    simulated: bool = optional("true for an offline judge")


class Verdicts(
    Measured,
    table="verdicts",
    key=("dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation"),
):
    """One row per sample, arm, perturbation, judge, prompt and wave."""

    sample: str = name("a question with its anchor and target")
    cluster: str = name("what is independent of what: the question")
    arm: str = pa.Field(isin=ARMS, description="control, experimental, sham or replicate")
    perturbation: str = name("null in control", nullable=True)
    kind: str = optional("null in control", isin=KINDS)
    mode: str = pa.Field(isin=["paper", "balanced"], description="how votes became a verdict")
    votes: int = pa.Field(ge=1, description="ballots of the pair, those made needless too")
    valid_votes: int = counted("votes for first, second or tie")
    score: float = share("0 anchor, 1 target, mean of the valid votes", nullable=True)
    verdict: str = optional("null if it cannot be told", isin=["anchor", "tie", "target"])
    shown_first: str = only_order("its votes")
    simulated: bool = optional("true for an offline judge")


class Shifts(
    Measured, table="shifts", key=("dataset", "judge", "prompt", "wave", "sample", "perturbation")
):
    """One row per sample and perturbation, judge, prompt and wave: its arms side by side."""

    sample: str = name("a question with its anchor and target")
    cluster: str = name("what is independent of what: the question")
    perturbation: str = name("name of the perturbation")
    kind: str = pa.Field(isin=KINDS, description="promote or detract")
    mode: str = pa.Field(isin=["paper", "balanced"], description="how votes became a verdict")
    votes: int = pa.Field(
        ge=1, description="ballots of the experimental pair, those made needless too"
    )
    control_votes: int = ballots("control")
    sham_votes: int = ballots("sham")
    replicate_votes: int = ballots("replicate")
    control: str = optional("verdict", isin=["anchor", "tie", "target"])
    experimental: str = optional("verdict", isin=["anchor", "tie", "target"])
    sham: str = optional("verdict", isin=["anchor", "tie", "target"])
    control_score: float = share("score", nullable=True)
    experimental_score: float = share("score", nullable=True)
    sham_score: float = share("score", nullable=True)
    replicate: str = optional("verdict, control asked again", isin=["anchor", "tie", "target"])
    shown_first: str = only_order("the experimental pair")
    has_sham: bool = pa.Field(description="whether a sham was asked about")
    has_replicate: bool = pa.Field(description="whether control was asked about again")
    simulated: bool = optional("true for an offline judge")
