"""Labels of people and judges from ratings of single answers, for a calibration."""

import json
from collections.abc import Iterable

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.keys import BETWEEN
from tasks.calibration.label_values import (
    NO_TEXTS,
    TIED,
    Labelled,
    are_whole,
    require_two_names,
    unreadable,
)
from tasks.readers.bounded import clip

PEOPLE = "people"
"""Name of those who gave the labels that came with a dataset."""
UNIT = ("judge", "prompt", "wave")
LABEL = ("annotator", "item", "criterion", "label")


def labels_of_ratings(
    ratings: DataFrame[Ratings], people: pl.DataFrame | None = None
) -> list[Labelled]:
    """Return what judges and people say of unperturbed targets, one entry per dataset and prompt.

    Repeats of a judge are combined: the mean grade, or the verdict of the majority, also where all
    grades are 0 or 1. The labels of a ``labels`` prompt are a set, and those of which people say
    nothing are ``unlabelled``. What people say of an answer that a judge passes or fails is pass
    or fail if all of it is 1 or 0; else they are grades.

    Parameters
    ----------
    ratings
        Ratings of a study; those that came with its data are ``human_value``.
    people
        Labels of people (``annotator``, ``item``, ``label``) instead; an item may be called by the
        id of its question, with the dataset's name or without.
    """
    originals = ratings.filter(arm="control", side="target")
    several = originals["prompt"].n_unique() > 1
    found = []
    for (dataset, prompt), rows in sorted(
        originals.partition_by("dataset", "prompt", as_dict=True).items()
    ):
        about = _with_form(rows)
        chance, unlabelled = pl.lit(None, pl.Float64), None
        if people is None:
            chance, unlabelled = pl.col("label_chance"), _unlabelled(about)
            given = _with_grades(about.filter(pl.col("human_value").is_not_null()))
            given = given.unique(["item", "about"]).sort("item", "about")
            humans = _labels(given, pl.lit(PEOPLE), "human_value")
        else:
            humans = _of_items(people, about["item"].unique(), str(dataset))
        judges = _labels(_with_bits(about, humans), pl.col("name"), "value")
        who = about.select("name", *UNIT, "simulated").unique("name").sort("name")
        items = (
            about.select("item", "criterion", "cluster", "lowest", "highest", label_chance=chance)
            .unique(["item", "criterion"])
            .sort("item", "criterion")
            .with_columns(texts=pl.lit(NO_TEXTS))
        )
        name = f"{dataset}: {prompt}" if several else str(dataset)
        whole = _whole(about, humans)
        labelled = Labelled(name, humans, judges, who, items, whole, unlabelled=unlabelled)
        found.append(require_two_names(labelled))
    return found


def _with_form(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the ``form`` of ratings and the ``name`` of who rated; a set is about no criterion."""
    differing = ["wave"] if rows["wave"].n_unique() > 1 else []
    kind, criterion = pl.col("kind").cast(pl.String), pl.col("criterion")
    form = (
        pl.when(kind == "number")
        .then(pl.lit("number"))
        .when(criterion.is_null())
        .then(pl.lit("verdict"))
        .otherwise(pl.lit("set"))
    )
    return rows.with_columns(
        form=form,
        about=criterion,
        name=pl.concat_str("judge", *differing, separator=BETWEEN),
        criterion=pl.when(form != "set").then(criterion),
    )


def _unlabelled(rows: pl.DataFrame) -> pl.DataFrame | None:
    """Return the items and names of labels in sets of which the data do not say what people say."""
    empty = rows.filter(pl.col("human_value").is_null(), form="set")
    found = empty.select("item", name="about").unique().sort("item", "name")
    return None if found.is_empty() else found


def _with_bits(rows: pl.DataFrame, humans: pl.DataFrame) -> pl.DataFrame:
    """Mark grades that are verdicts as ``bit``: all of a judge's and of people's are 0 or 1."""
    number = pl.col("label").str.strip_chars('"').cast(pl.Float64, strict=False)
    given = humans.group_by("criterion").agg(theirs=number.is_in([0.0, 1.0]).all())
    found = rows.join(
        given, on="criterion", how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(own=pl.col("value").is_in([0.0, 1.0]).all().over("name", "criterion"))
    bits = (pl.col("form") == "number") & pl.col("theirs") & pl.col("own")
    return found.with_columns(form=pl.when(bits).then(pl.lit("bit")).otherwise("form"))


def _whole(rows: pl.DataFrame, humans: pl.DataFrame) -> tuple[str | None, ...]:
    """Return the criteria of which judges and people gave whole grades only."""
    grades = rows.filter(form="number").select("criterion", "value")
    theirs = humans.select("criterion", value=pl.col("label").cast(pl.Float64, strict=False))
    both = pl.concat([grades, theirs])
    found = both.group_by("criterion").agg(are_whole(pl.col("value")).alias("whole"))
    graded = grades["criterion"].unique().to_list()
    return tuple(each for each in found.filter("whole")["criterion"].sort() if each in graded)


def _with_grades(given: pl.DataFrame) -> pl.DataFrame:
    """Make numbers of what people say if it is not all pass or fail."""
    verdict = pl.col("form") == "verdict"
    graded = (verdict & ~pl.col("human_value").is_in([0.0, 1.0])).any()
    form = pl.when(verdict & graded).then(pl.lit("number")).otherwise("form")
    return given.with_columns(form=form)


def _labels(rows: pl.DataFrame, annotator: pl.Expr, value: str) -> pl.DataFrame:
    """Return one label (JSON) per annotator, item and criterion.

    A label none of whose ratings was read is invalid for the reason of the first of them.
    """
    names = rows["about"].drop_nulls().unique().to_list()
    quoted = {name: json.dumps(name) for name in names}
    reasons = rows["invalid"].cast(pl.String).drop_nulls().unique()
    why = {each: unreadable(each) for each in reasons}
    means = (
        rows.with_columns(annotator=annotator)
        .group_by("annotator", "item", "criterion", "form", "about", maintain_order=True)
        .agg(
            pl.col(value).mean().alias("mean"),
            why=pl.col("invalid").cast(pl.String).drop_nulls().first(),
        )
    )
    mean, form = pl.col("mean"), pl.col("form").first()
    chosen = (
        pl.col("about")
        .filter(mean > 0.5)
        .sort()
        .replace_strict(quoted, default=None, return_dtype=pl.String)
        .str.join(", ")
    )
    verdict, bit = (
        pl.when(mean.first() > 0.5)
        .then(pl.lit(good))
        .when(mean.first() < 0.5)
        .then(pl.lit(bad))
        .otherwise(pl.lit(TIED))
        for good, bad in (('"pass"', '"fail"'), ("1", "0"))
    )
    return (
        means.group_by("annotator", "item", "criterion", maintain_order=True)
        .agg(
            label=pl.when(mean.is_null().all())
            .then(pl.col("why").first().replace_strict(why, default=None, return_dtype=pl.String))
            .when(form == "number")
            .then(mean.first().cast(pl.String))
            .when(form == "verdict")
            .then(verdict)
            .when(form == "bit")
            .then(bit)
            .otherwise("[" + chosen + "]")
        )
        .select(LABEL)
    )


def item_names(items: Iterable[str], dataset: str) -> dict[str, str]:
    """Return what each item may be called: itself, and its question's id if that is unambiguous."""
    named: dict[str, set[str]] = {}
    for item in items:
        question = item.rpartition("/")[0]
        for name in {question, question.removeprefix(f"{dataset}/")} - {""}:
            named.setdefault(name, set()).add(item)
    alone = {name: own.pop() for name, own in named.items() if len(own) == 1}
    return alone | {item: item for item in items}


def _of_items(people: pl.DataFrame, items: pl.Series, dataset: str) -> pl.DataFrame:
    """Return people's labels of these items.

    Raise ValueError if none of the labels is of one of the items.
    """
    names = item_names(items, dataset)
    named = people.drop_nulls("item").with_columns(
        item=pl.col("item").replace_strict(names, default=None, return_dtype=pl.String),
        criterion=pl.lit(None, pl.String),
    )
    known = named.drop_nulls("item").select(LABEL)
    if known.is_empty():
        given = people["item"].drop_nulls().unique().sort().head(3)
        raise ValueError(
            f"no label of people is about an answer of the study. They name items such as "
            f"{', '.join(map(clip, given))}; the answers are {', '.join(items.sort().head(3))}. "
            "Name each item by its answer or question."
        )
    return known
