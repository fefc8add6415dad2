"""Votes on single answers as ratings: a row per ballot and criterion."""

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.curation import Known
from schemas.judging import Ballots, Judges, Pairs, Votes
from tasks.judging.rating_parser import WHOLE
from tasks.judging.sequential_stopping import PAIR
from tasks.prompting.prompt import Prompt
from tasks.prompts import prompt_of

WHERE = ["pair_id", "dataset", "sample", "cluster", "arm", "perturbation", "kind"]
ANCHOR_ITEM = "/anchor"
"""Ends the item of an anchor; the item of a target is the sample."""
REFUSED, SEVERAL, NONE = "refused", "several different ratings", "no rating"
OFF, FRACTION = "off the scale", "a fraction on a scale of whole numbers"
"""Why a vote has no rating."""
SCALES = {
    "prompt": pl.String,
    "criterion": pl.String,
    "form": pl.String,
    "lowest": pl.Float64,
    "highest": pl.Float64,
    "whole": pl.Boolean,
    "weight": pl.Float64,
    "passes_at": pl.Float64,
}
READ = {"prompt": pl.String, "rating": pl.String, "criterion": pl.String, "value": pl.Float64}
WORDS = {"verdict": ("fail", "pass"), "label": ("no", "yes")}
"""Form of a rating -> its labels for 0 and 1."""


def rate_votes(
    pairs: DataFrame[Pairs],
    ballots: DataFrame[Ballots],
    judges: DataFrame[Judges],
    votes: DataFrame[Votes],
    *,
    waiting: pl.Series,
    categories: pl.DataFrame | None = None,
    known: DataFrame[Known] | None = None,
) -> DataFrame[Ratings]:
    """Return the rating of each criterion by each vote on a single answer.

    Ballots not in ``waiting`` were cast before; a ballot without a vote has no row. A vote without
    a rating of a criterion has a row that says why. Repeats of a replicate are renumbered from 0.
    ``categories`` has the ``category`` of each ``question_id``; ``known`` what the dataset says of
    the targets: people's grades of them are kept, for control.
    """
    if ballots.is_empty():
        return Ratings.empty()
    prompts = {name: prompt_of(name) for name in ballots["prompt"].unique().sort()}
    rated = (
        ballots.join(pairs.select(WHERE), on="pair_id")
        .rename({"kind": "perturbation_kind"})
        .join(judges.select("judge", "simulated"), on="judge")
        .with_columns(
            repeat=pl.when(pl.col("arm").cast(pl.String) == "replicate")
            .then(pl.col("repeat") - pl.col("repeat").min().over(PAIR))
            .otherwise(pl.col("repeat"))
        )
        .join(votes.select("ballot_id", "choice", "rating"), on="ballot_id")
        .join(pl.DataFrame(_scales(prompts), schema=SCALES, orient="row"), on="prompt")
    )
    texts = rated.select("prompt", "rating").unique().drop_nulls().rows()
    read = pl.DataFrame(_values(prompts, texts), schema=READ, orient="row")
    rated = rated.join(read, on=["prompt", "rating", "criterion"], how="left")
    rated = _with_known(_with_labels(rated), categories, known)
    target = pl.col("shown_first").cast(pl.String) == "target"
    return Ratings.of(
        rated.with_columns(
            item=pl.col("sample") + pl.when(target).then(pl.lit("")).otherwise(pl.lit(ANCHOR_ITEM)),
            side="shown_first",
            criterion=pl.when(pl.col("criterion") != WHOLE).then("criterion"),
            kind=pl.when(pl.col("form") == "number")
            .then(pl.lit("number"))
            .otherwise(pl.lit("label")),
            cached=~pl.col("ballot_id").is_in(waiting.implode()),
            human=pl.lit(value=False),
            inconsistent=pl.lit(value=False),
        )
    )


def _scales(prompts: dict[str, Prompt]) -> Iterator[tuple[Any, ...]]:
    """Yield the criteria of each prompt with their scales; each label is a criterion."""
    for name, prompt in prompts.items():
        grading = prompt.grading
        for label in grading.labels:
            yield (name, label, "label", 0.0, 1.0, True, None, None)
        if grading.kind == "binary":
            yield (name, WHOLE, "verdict", 0.0, 1.0, True, None, 1.0)
        weights = {each.name: each.weight for each in grading.criteria}
        for criterion, scale in grading.scales.items():
            if scale is not None:
                ends = (scale.low, scale.high, scale.whole)
                yield (name, criterion, "number", *ends, weights.get(criterion), scale.passes_at)


def _values(
    prompts: dict[str, Prompt], texts: list[tuple[str, str]]
) -> Iterator[tuple[str, str, str, float]]:
    """Yield the value of each criterion in each different rating, as ``votes.rating`` has them."""
    for name, text in texts:
        for criterion, value in json.loads(text).items():
            if isinstance(value, list):
                yield from (
                    (name, text, label, float(label in value)) for label in prompts[name].labels
                )
            else:
                yield name, text, criterion, float(value)


def _with_labels(rated: pl.DataFrame) -> pl.DataFrame:
    """Add what a rating says as a label, or why there is none; remove values that do not count."""
    value, choice = pl.col("value"), pl.col("choice").cast(pl.String)
    invalid = (
        pl.when(choice == "abstain")
        .then(pl.lit(REFUSED))
        .when(value.is_null() & (choice == "ambiguous"))
        .then(pl.lit(SEVERAL))
        .when(value.is_null())
        .then(pl.lit(NONE))
        .when(~value.is_between("lowest", "highest"))
        .then(pl.lit(OFF))
        .when(pl.col("whole") & (value != value.floor()))
        .then(pl.lit(FRACTION))
    )
    number = pl.when(value == value.floor()).then(
        value.cast(pl.Int64, strict=False).cast(pl.String)
    )
    label = pl.coalesce(number, value.cast(pl.String))
    for form, (no, yes) in WORDS.items():
        word = pl.when(value == 1).then(pl.lit(yes)).otherwise(pl.lit(no))
        label = pl.when(pl.col("form") == form).then(word).otherwise(label)
    there = pl.col("invalid").is_null()
    return rated.with_columns(label=label, invalid=invalid).with_columns(
        pl.when(there).then(pl.col("value", "label"))
    )


def _with_known(
    rated: pl.DataFrame, categories: pl.DataFrame | None, known: DataFrame[Known] | None
) -> pl.DataFrame:
    """Add category, authors, turn, and what people say of control targets, with its chance."""
    if categories is not None:
        named = categories.select("category", cluster="question_id")
        rated = rated.join(named, on="cluster", how="left")
    if known is None or known.is_empty():
        return rated
    control = pl.col("arm").cast(pl.String) == "control"
    original = control & (pl.col("shown_first").cast(pl.String) == "target")
    authors = pl.col("anchor_author", "target_author")
    return (
        rated.join(
            known.select("sample", "anchor_author", "target_author", "turn", "label_chance"),
            on="sample",
            how="left",
        )
        .join(_human_values(known), on=["sample", "criterion", "form"], how="left")
        .with_columns(
            pl.when(control).then(authors),
            pl.when(original).then("label_chance"),
            pl.when(original & ((pl.col("highest") <= 1) | ~pl.col("passes"))).then("human_value"),
        )
    )


def _human_values(known: DataFrame[Known]) -> pl.DataFrame:
    """Return what people say of each sample and criterion, by the form of ratings compared with it.

    For a whole answer, verdicts are compared with people's pass or fail, and with grades only if
    nobody said pass or fail; grades with grades, and with what people called a label only if nobody
    gave a grade. ``passes`` is true where all such labels are pass or fail, 1 or 0: these are no
    grades on a longer scale.
    """
    texts = known.select("sample", "human_values").drop_nulls().rows()
    graded = [(sample, json.loads(text)) for sample, text in texts]
    named = {name for _, said in graded for name in said}
    compared = {
        "verdict": "label" if "label" in named else "grade",
        "number": "grade" if "grade" in named else "label",
    }
    labels = {said["label"] for _, said in graded if "label" in said}
    passes = compared["number"] == "label" and labels <= {0, 1}
    rows = [
        (sample, criterion, form, float(value), False)
        for sample, said in graded
        for criterion, value in said.items()
        for form in ("number", "label")
    ]
    rows += [
        (sample, WHOLE, form, float(said[name]), passes and form == "number")
        for sample, said in graded
        for form, name in compared.items()
        if name in said
    ]
    schema: Any = dict.fromkeys(("sample", "criterion", "form"), pl.String)
    schema |= {"human_value": pl.Float64, "passes": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")
