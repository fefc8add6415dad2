"""Checks of how labels are declared, and labels as they are read so."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tasks.agreement.label_kinds import (
    Declared,
    LabelReading,
    are_mostly_numbers,
    positive_of,
    reading_of,
    values_of,
)
from tasks.agreement.paired_labels import are_sets, with_complete_labels, with_criterion, words_of
from tasks.calibration.label_values import NO_TEXTS, Labelled
from tasks.kit.printable import joined_few, several
from tasks.metrics import METRICS
from tasks.progress import current_status
from tasks.readers.bounded import clip
from tasks.readers.label_table import EMPTY, SLICE

MOST_SHOWN = 10
"""Most labels that an error lists."""


def require_positive(labelled: Sequence[Labelled], declared: Declared, source: str) -> None:
    """Refuse a label for a pass that nobody gave; say which different labels fail.

    A ValueError gives the labels that there are.
    """
    positive = declared.positive
    if positive is None or any(are_sets(each.humans["label"]) for each in labelled):
        return
    labels = pl.concat(side["label"] for each in labelled for side in (each.humans, each.judges))
    require_known(labels, positive, source)
    report_fails(pl.concat(each.humans["label"] for each in labelled), positive, declared)


def require_known(labels: pl.Series, positive: str, source: str) -> None:
    """Refuse a label for a pass that is none of the ``labels`` (JSON), with a ValueError."""
    if positive_of(positive, labels) is not None:
        return
    words = values_of(labels, LabelReading("name"))["word"].drop_nulls().unique().sort().to_list()
    shown = joined_few([clip(word)[1:-1] for word in words], MOST_SHOWN)
    raise ValueError(
        f"no label of {source} is {clip(positive)}; the labels are: {shown or 'none'}. "
        "Name the one that counts as a pass with --pass."
    )


def report_unknown_items(labels: pl.DataFrame, known: Sequence[str], file: str, where: str) -> None:
    """Say how many labels of a file are about items that ``where`` does not have, if some are."""
    given = labels.drop_nulls("item")
    unknown = given.filter(~pl.col("item").is_in(known))
    if 0 < unknown.height < given.height:
        one = unknown.height == 1
        current_status().tell(
            f"{unknown.height} of {several(given.height, 'label')} of {Path(file).name} "
            f"{'is about an item that is' if one else 'are about items that are'} not in {where}, "
            f"such as {clip(unknown['item'].min())}."
        )


def report_fails(labels: pl.Series, positive: str, declared: Declared) -> None:
    """List the labels of people that count as fails, if there are several."""
    words = values_of(labels, LabelReading("name")).select("label", "word").drop_nulls("word")
    known = [word.strip().lower() for word in words["word"]]
    fails = values_of(labels, reading_of(labels, declared), known).filter(value=0)
    given = labels.rename("label").to_frame().join(words, on="label")
    others = given.join(fails, on="label", how="semi")["word"].value_counts(sort=True)
    if others.height > 1:
        shown = joined_few([f"{clip(each)[1:-1]} {n}" for each, n in others.rows()], MOST_SHOWN)
        current_status().tell(
            f"--pass {clip(positive)[1:-1]}: all other labels of people count as fails, also where "
            f"a judge gives them: {shown}. Empty the cells of labels that are no verdict."
        )


def require_grades(labelled: Sequence[Labelled], declared: Declared, source: str) -> None:
    """Refuse a scale or threshold if people gave no grades, or none that it could tell apart.

    A ValueError gives what the labels are, or the declared scale if that does not hold it.
    """
    if not declared.has_grades:
        return
    scale, threshold = declared.scale, declared.threshold
    people = (with_criterion(each.humans).partition_by("criterion") for each in labelled)
    parts = [part["label"] for each in people for part in each]
    graded = [labels for labels in parts if are_mostly_numbers(labels)]
    if threshold is None:
        if not graded:
            raise ValueError(
                f"--scale is about grades, but the labels of people in {source} are no numbers. "
                "Leave it out."
            )
        return
    if scale and not scale[0] < threshold <= scale[1]:
        raise ValueError(
            f"--threshold {threshold:g} is not on the scale from {scale[0]:g} to {scale[1]:g}, so "
            f"all grades {'pass' if threshold <= scale[0] else 'fail'}. Choose a threshold above "
            f"{scale[0]:g} and at most {scale[1]:g}."
        )
    if not graded:
        raise ValueError(
            f"--threshold {threshold:g} turns grades into pass and fail, but the labels of people "
            f"in {source} are no numbers. Leave it out."
        )
    values = (values_of(labels, LabelReading("grade"))["value"] for labels in graded)
    grades = pl.concat(values).drop_nulls().to_list()
    low, high = min(grades), max(grades)
    if not low < threshold <= high:
        raise ValueError(
            f"--threshold {threshold:g}: people's grades in {source} are from {low:g} to {high:g}, "
            f"so all of them {'pass' if threshold <= low else 'fail'}. Choose a threshold above "
            f"{low:g} and at most {high:g}."
        )


def require_same_form(labelled: Labelled, declared: Declared, study: str) -> None:
    """Refuse to compare verdicts of judges with grades of people, unless a threshold is declared.

    A ValueError gives the grades, and what to give.
    """
    people, judges = labelled.humans["label"], labelled.judges["label"]
    if reading_of(people, declared).kind != "grade" or not _are_verdicts(judges):
        return
    grades = values_of(people, LabelReading("grade"))["value"].to_list()
    raise ValueError(
        f"the judges of study {study!r} say pass or fail, and the labels of people are grades from "
        f"{min(grades):g} to {max(grades):g}. Say from which grade on an answer passes with "
        "--threshold GRADE, or add a column human_label (pass or fail) to the data and audit them "
        "again (no vote is asked twice)."
    )


def _are_verdicts(labels: pl.Series) -> bool:
    words = values_of(labels, LabelReading("pass_fail"))["word"]
    return words.count() > 0 and values_of(labels, LabelReading("grade"))["value"].count() == 0


def suitable_metrics(people: Sequence[pl.Series], first: str) -> list[str]:
    """Return the metrics that suit people's labels: ``first``, and the bundled and own others."""
    labels = pl.concat(people).drop_nulls()
    kinds = {"text", "any"}
    if are_sets(labels):
        kinds.add("set")
    elif are_mostly_numbers(labels):
        kinds.add("number")
    others = [name for name in METRICS if name != first and METRICS[name].labels in kinds]
    return [first, *others]


def described(items: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return items with the texts, slices and clusters of a table that has one row per item.

    Items that it has no texts of keep their own, and without a column of clusters all theirs.
    """
    found = [name for name in known.columns if name.startswith(SLICE) or name == "cluster"]
    joined = items.drop(found, strict=False).join(
        known.select("item", pl.col("texts").alias("found"), *found),
        on="item",
        how="left",
        maintain_order="left",
    )
    slices = [pl.col(name).fill_null(EMPTY) for name in found if name.startswith(SLICE)]
    return joined.with_columns(
        pl.coalesce(pl.col("found").replace(NO_TEXTS, None), "texts")
        .fill_null(NO_TEXTS)
        .alias("texts"),
        pl.coalesce("cluster", "item").alias("cluster"),
        *slices,
    ).drop("found")


def readable_labels(labelled: Labelled, declared: Declared) -> Labelled:
    """Return labels for tests that know neither kinds nor criteria.

    Each item and criterion becomes an item. Labels that are invalid as people's kind of label
    become null, so that an error of the judge does not count as a label, and different words for
    pass and fail become the same. Items keep their clusters.
    """
    parts = []
    both_sides = [with_criterion(each) for each in (labelled.humans, labelled.judges)]
    criteria = both_sides[0]["criterion"].unique().sort()
    for criterion in criteria:
        own = pl.col("criterion").eq_missing(pl.lit(criterion, pl.String))
        sides = [each.filter(own) for each in both_sides]
        sides[0] = with_complete_labels(sides[0], labelled.unlabelled)
        if not are_sets(sides[0]["label"]):
            positive = positive_of(declared.positive, pl.concat(s["label"] for s in sides))
            reading = reading_of(sides[0]["label"], declared._replace(positive=positive))
            sides = [words_of(each, reading, sides[0]["label"]) for each in sides]
        parts.append(sides)
    humans, judges = (pl.concat(side) for side in zip(*parts, strict=True))
    items = labelled.items.select("item", "cluster").unique("item", maintain_order=True)
    if criteria.null_count() == criteria.len():
        return labelled._replace(humans=humans, judges=judges, items=items)
    both = pl.concat_str("item", "criterion", separator=": ", ignore_nulls=True)
    items = (
        humans.select(both.alias("both"), "item")
        .unique("both")
        .join(items, on="item")
        .select("cluster", item="both")
    )
    humans, judges = (each.with_columns(item=both) for each in (humans, judges))
    return labelled._replace(humans=humans, judges=judges, items=items)


def by_criterion(labelled: Labelled) -> list[Labelled]:
    """Return readable labels as one entry per criterion, the last part of its ``dataset``.

    Kappa and alpha of several criteria together would rest on the differences between their scales.
    """
    sides = (labelled.humans, labelled.judges)
    if any("criterion" not in side.columns for side in sides):
        return [labelled]
    criteria = labelled.humans["criterion"].unique().sort()
    if len(criteria) < 2:
        return [labelled]
    found = []
    for criterion in criteria:
        own = pl.col("criterion").eq_missing(pl.lit(criterion, pl.String))
        name = ": ".join(filter(None, (labelled.dataset, criterion)))
        humans, judges = (side.filter(own) for side in sides)
        found.append(labelled._replace(dataset=name, humans=humans, judges=judges))
    return found
