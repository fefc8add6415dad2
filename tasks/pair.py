"""Pair: answers and perturbed answers to the pairs that judges see."""

from collections.abc import Sequence
from typing import cast

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.curation import Answers, Perturbations, PerturbedAnswers, Questions
from schemas.digests import content_keys
from schemas.judging import Pairs
from tasks.judging.turns import TURN_PLACES
from tasks.prompting.prompt import Prompt
from tasks.prompts import prompt_of

SHOWN = ["question", "anchor", "target"]
BACKGROUND = ("reference", "context")
WHERE = ["dataset", "sample", "cluster", "arm", "perturbation", "kind"]


def pair_up(
    questions: DataFrame[Questions],
    answers: DataFrame[Answers],
    perturbed: DataFrame[PerturbedAnswers],
    perturbations: DataFrame[Perturbations],
    checks: str,
    *,
    replicates: bool = False,
    shams: bool = True,
    variants: Sequence[str] = (),
) -> DataFrame[Pairs]:
    """Make the arms of each sample: control once, experimental and sham per perturbation.

    ``replicates`` adds a fourth arm, control shown again, and ``variants`` of the judge prompt a
    fifth, control under each of them. Without ``shams`` there is no sham arm.
    ``checks``: ``drop`` leaves out texts that failed a validity check, ``flag`` keeps them.
    """
    if checks not in {"drop", "flag"}:
        raise ValueError(f"checks {checks!r} must be 'drop' or 'flag'.")
    usable = pl.col("perturbed").is_not_null()
    sound = pl.lit(value=True) if checks == "flag" else pl.col("failure").is_null()
    kinds = perturbations.select("perturbation", "recipe", "kind")
    samples = (
        perturbed.filter(usable & sound)
        .join(kinds, on=["perturbation", "recipe"])
        .join(_both_answers(answers), on=["answer_id", "question_id"])
        .join(questions.select("question_id", "dataset", "question"), on="question_id")
        .rename({"answer_id": "sample", "question_id": "cluster"})
    )
    nothing = pl.lit(None, dtype=pl.String)
    control = samples.with_columns(
        arm=pl.lit("control"), target="original", perturbation=nothing, kind=nothing
    ).unique("sample", maintain_order=True)
    experimental = samples.with_columns(arm=pl.lit("experimental"), target="perturbed")
    matched = pl.col("sham").is_not_null() & pl.col("sham_failure").is_null()
    sham = samples.filter(matched & shams).with_columns(arm=pl.lit("sham"), target="sham")
    again = control.with_columns(arm=pl.lit("replicate")).head(control.height if replicates else 0)
    reworded = [
        control.with_columns(arm=pl.lit("reworded"), perturbation=pl.lit(name)) for name in variants
    ]
    arms = (control, experimental, sham, again, *reworded)
    pairs = pl.concat([arm.select(WHERE + SHOWN) for arm in arms])
    return Pairs.of(pairs.with_columns(content_keys(pairs, WHERE + SHOWN).alias("pair_id")))


def with_background(
    pairs: DataFrame[Pairs], questions: DataFrame[Questions], prompts: Sequence[str]
) -> DataFrame[Pairs]:
    """Add columns ``reference`` and ``context`` of the questions, if a judge prompt shows them."""
    shown = {column for name in prompts for column in background_of(prompt_of(name))}
    columns = [name for name in BACKGROUND if name in shown]
    if not columns:
        return pairs
    known = questions.select(*columns, cluster="question_id")
    return cast("DataFrame[Pairs]", pairs.join(known, on="cluster", how="left"))


def background_of(prompt: Prompt) -> list[str]:
    """Return the columns of questions that a judge prompt shows; an earlier turn is context."""
    places = prompt.places
    shown = places | ({"context"} if places & TURN_PLACES else set())
    return [name for name in BACKGROUND if name in shown]


def _both_answers(answers: DataFrame[Answers]) -> pl.DataFrame:
    """Join each answer (the target) with the other answer to its question (the anchor)."""
    other = answers.select("question_id", slot=3 - pl.col("slot"), anchor="answer")
    return (
        answers.select("answer_id", "question_id", "slot", original="answer")
        .join(other, on=["question_id", "slot"], how="left")
        .with_columns(pl.col("anchor").fill_null(""))
    )
