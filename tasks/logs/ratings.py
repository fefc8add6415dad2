"""Ratings of other tools' logs as annotations, contests and counts, which statistics read."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Contests, Tallies
from schemas.results import Annotations
from tasks.agreement.label_kinds import FAIL, PASS
from tasks.agreement.pass_words import PASS_WORDS
from tasks.calibration.label_values import are_whole, nearest_whole
from tasks.counting.positions import BY_PLACE
from tasks.readers.label_table import CHANCE

PAIR = ("dataset", "judge", "prompt", "item")
RATED = ("dataset", "criterion", "judge", "prompt", "item")
COUNTS = ("voted", "invalid", "anchor_12", "tie_12", "target_12")
BOTH = ("planned", "planned_12", "voted_12", "voted")


MOST_VALUES = 5
"""Most grades that the text of a mean lists."""


def whole_number(value: str) -> pl.Expr:
    """Return a number as text, a whole one without a decimal point."""
    number = pl.col(value)
    whole = pl.when(number == number.round()).then(number.cast(pl.Int64, strict=False))
    return pl.coalesce(whole.cast(pl.String), number.cast(pl.String))


def passes() -> pl.Expr:
    """Tell whether a ``label`` is a word for pass or for fail; null for another one."""
    word = pl.col("label").str.strip_chars().str.to_lowercase()
    return word.replace_strict(PASS_WORDS, default=None, return_dtype=pl.Boolean)


def require_one_chance(name: str, rows: pl.DataFrame) -> None:
    """Refuse an item that people were asked about with different probabilities."""
    found = rows.select("item", CHANCE).drop_nulls().unique(maintain_order=True)
    several_of = found.filter(pl.col("item").is_duplicated())["item"]
    if several_of.len():
        raise ValueError(
            f"{name}: item {several_of[0]!r:.60} has more than one {CHANCE}. Give each item one."
        )


def with_passes(rows: pl.DataFrame) -> pl.DataFrame:
    """Give labels without values 1 and 0 if all of their criterion are words for pass and fail."""
    bare = (pl.col("kind") == "label") & pl.col("value").is_null()
    if not rows.select(bare.any()).item():
        return rows
    unread = pl.col("label").is_null() | pl.col("invalid").is_not_null()
    known = bare & (passes().is_not_null() | unread)
    alone = known.all().over("dataset", "criterion")
    return rows.with_columns(
        value=pl.when(alone).then(passes().cast(pl.Float64)).otherwise("value")
    )


def verdict_of(passed: pl.Expr) -> pl.Expr:
    """Return the word for a pass or a fail; null for neither."""
    return pl.when(passed).then(pl.lit(PASS)).when(~passed).then(pl.lit(FAIL))


def annotations_of(ratings: pl.DataFrame, *, exact: bool = False) -> DataFrame[Annotations]:
    """Return one label per item, criterion and annotator from all valid repeats.

    Grades are averaged. Unless ``exact``, the mean of whole grades is rounded to a whole one, and
    different words for pass and fail become the same. The majority of verdicts counts, a tie if
    there is none. The most common of other labels counts, also of numbers that are verdicts (see
    ``_valid``), and none if two are equally common.
    """
    valid = _valid(ratings)
    if not exact:
        valid = _with_same_words(valid)
    key = [*RATED, "kind"]
    whole = are_whole(pl.col("value")).over("dataset", "criterion") & pl.lit(value=not exact)
    common = {
        "cluster": pl.col("cluster").first(),
        "human": pl.col("human").first(),
        "votes": pl.len(),
    }
    numbers = (
        valid.filter(kind="number")
        .with_columns(whole=whole)
        .group_by(key, maintain_order=True)
        .agg(mean=pl.col("value").mean(), whole=pl.col("whole").first(), **common)
        .with_columns(value=pl.when("whole").then(nearest_whole(pl.col("mean"))).otherwise("mean"))
        .with_columns(label=whole_number("value"))
        .drop("mean", "whole")
    )
    verdicts = (
        valid.filter(kind="verdict")
        .group_by(key, maintain_order=True)
        .agg(
            value=(pl.col("value") - 0.5).sign().sum().sign(),
            inconsistent=pl.col("inconsistent").any(),
            **common,
        )
        .with_columns(
            label=pl.col("value").cast(pl.Int64).replace_strict(BY_PLACE, return_dtype=pl.String),
            inconsistent=pl.col("inconsistent") & (pl.col("value") == 0),
        )
    )
    counted = (
        valid.filter(kind="label")
        .group_by(*key, "label", maintain_order=True)
        .agg(value=pl.col("value").first(), **common)
    )
    most = counted.filter(pl.col("votes") == pl.col("votes").max().over(key))
    labels = most.filter(pl.len().over(key) == 1)
    rows = pl.concat([numbers, verdicts, labels], how="diagonal").with_columns(
        aspect="criterion",
        annotator="judge",
        prompt=pl.when(~pl.col("human")).then("prompt"),
        wave=pl.lit(""),
        inconsistent=pl.col("inconsistent").fill_null(value=False),
    )
    return Annotations.coded(rows)


def _valid(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return the valid ratings with the kind as which repeats are combined.

    It is ``label`` where kinds differ, and for numbers that are verdicts: all of an annotator's
    are 0 or 1, and all of people's.
    """
    about = ("dataset", "criterion")
    bits = pl.col("value").is_in([0.0, 1.0])
    theirs = (bits | ~pl.col("human")).all().over(about)
    verdicts = (pl.col("kind") == "number") & theirs & bits.all().over(*about, "judge", "prompt")
    different = pl.col("kind").n_unique().over(about) > 1
    return ratings.filter(pl.col("invalid").is_null()).with_columns(
        kind=pl.when(different | verdicts)
        .then(pl.lit("label"))
        .otherwise(pl.col("kind").cast(pl.String))
    )


def _with_same_words(valid: pl.DataFrame) -> pl.DataFrame:
    """Write labels as pass and fail where all of a criterion are words for them, as 1 and 0 are."""
    single = pl.col("kind") != "verdict"
    text = pl.coalesce(pl.col("label").str.strip_chars(), whole_number("value"))
    rows = valid.with_columns(label=pl.when(single).then(text).otherwise("label"))
    words = (passes().is_not_null() & single).all().over("dataset", "criterion")
    return rows.with_columns(
        kind=pl.when(words).then(pl.lit("label")).otherwise("kind"),
        label=pl.when(words).then(verdict_of(passes())).otherwise("label"),
        value=pl.when(words).then(passes().cast(pl.Float64)).otherwise("value"),
    )


def means_of(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return the grades behind each mean of several unequal grades of a judge, as ``held``."""
    grades = _valid(ratings).filter(~pl.col("human"), kind="number")
    several = grades.group_by(RATED, maintain_order=True).agg(
        pl.col("value").unique().sort().alias("values")
    )
    texts = pl.col("values").list.head(MOST_VALUES).list.eval(whole_number("")).list.join(", ")
    return several.filter(pl.col("values").list.len() > 1).select(
        *RATED, held=pl.format("mean of {}", texts)
    )


def contests_of(ratings: pl.DataFrame) -> DataFrame[Contests]:
    """Return the verdicts on pairs of two known models, with their mean score."""
    pairs = ratings.filter(
        pl.col("kind") == "verdict",
        pl.col("anchor_author").cast(pl.String) != pl.col("target_author").cast(pl.String),
    )
    others = [c for c in Contests.dtypes() if c in pairs.columns and c not in PAIR]
    found = pairs.group_by(PAIR, maintain_order=True).agg(
        pl.col(others).first(), score=pl.col("value").mean(), votes=pl.len()
    )
    return Contests.coded(found.with_columns(sample="item", wave=pl.lit("")))


def tallies_of(ratings: pl.DataFrame) -> DataFrame[Tallies]:
    """Count ratings per judge and item, as far as no order is needed.

    Verdicts are counted as if the anchor had been shown first: only statistics that do not depend
    on the order may read them. A grade or label is counted as a tie, for its validity only.
    """
    valid, label = pl.col("invalid").is_null(), pl.col("label")
    sides = {
        "anchor": valid & (label == "anchor"),
        "tie": valid & ~label.is_in(["anchor", "target"]),
        "target": valid & (label == "target"),
    }
    found = ratings.group_by(*RATED, maintain_order=True).agg(
        pl.col("cluster", "human", "category", "anchor_author", "target_author").first(),
        *(pl.len().alias(name) for name in BOTH),
        *(rows.sum().alias(f"{side}_12") for side, rows in sides.items()),
        invalid=(~valid).sum(),
        label=pl.col("correct").first(),
    )
    kinds = Tallies.dtypes()
    zero = [name for name in Tallies.required() if kinds[name].is_integer() and name not in found]
    # Most logs have one criterion, without a name.
    item = (
        "item"
        if ratings["criterion"].count() == 0
        else pl.concat_str("item", "criterion", separator=": ", ignore_nulls=True)
    )
    return Tallies.coded(
        found.with_columns(
            *(pl.lit(0).alias(name) for name in zero),
            sample=item,
            wave=pl.lit(""),
            arm=pl.lit("control"),
            matched_once=pl.lit(value=False),
        )
    )
