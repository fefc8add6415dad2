"""Pairs of a judge's label and people's combined label, with what is missing kept apart."""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from tasks.agreement.combine import combined, left_out, nearest
from tasks.agreement.label_kinds import (
    AS_GIVEN,
    Declared,
    Fractions,
    LabelReading,
    OddLabels,
    Ranges,
    ScaleKind,
    are_numbers,
    differing_ranges,
    few_fractions,
    is_whole,
    odd_labels,
    positive_of,
    read_beside,
    reading_of,
)
from tasks.calibration.label_values import (
    Labelled,
    as_word,
    read_labels,
    unreadable,
    why_unreadable,
)
from tasks.pointwise.rated_items import is_on_scale

MOST_NAMES = 100
"""Sets of labels with at most this many names have a criterion per name; others stay whole."""


class Unusual(NamedTuple):
    """What a user should check in the labels of one criterion."""

    criterion: str | None
    undeclared: tuple[float, float] | None
    """The lowest and the highest grade, where no scale is declared."""
    odd: OddLabels | None
    """Labels that are neither verdicts nor grades, so that all are compared as names."""
    fractions: Fractions | None
    """The few grades of people that are no whole numbers."""
    ranges: tuple[Ranges, ...]
    """Judges whose range of grades differs clearly from people's, where no scale is declared."""


class Paired(NamedTuple):
    """One criterion: labels of each judge beside people's."""

    criterion: str | None
    kind: ScaleKind
    rows: pl.DataFrame
    """One row per judge and item, see :func:`pair_labels`."""
    people: pl.DataFrame
    """One row per person and item with other people: ``agrees``, or ``error`` of grades."""
    scale: tuple[float, float] | None
    """Lowest and highest value: declared, or given by anybody."""
    unread: pl.DataFrame
    """``item`` and ``label`` (JSON) of each label of people that is not of the kind, such as a
    grade off the scale."""
    unusual: Unusual
    of_label: bool = False
    """Whether a pass means that an item has the label, the last part of ``criterion``."""
    graded: bool = False
    """Whether all labels of people are numbers, and nobody has declared what to do with them."""


def pair_labels(labelled: Labelled, declared: Declared = AS_GIVEN) -> Iterator[Paired]:
    """Yield the pairs of each criterion.

    ``rows`` has the columns of the items, the judge (``name``, ``judge``, ``prompt``, ``wave``,
    ``simulated``), ``judge_word``, ``judge_value``, ``human_word``, ``human_value``, ``people``,
    ``human_share``, and ``status``, one of each item: ``used``; ``unlabelled`` if the judge alone
    gave a valid label; ``tied`` if people's have no majority; else ``missing`` or ``invalid``, if
    the judge gave no label or an invalid one, whether or not people gave one.
    """
    sides = [with_criterion(each) for each in (labelled.humans, labelled.judges)]
    criteria = labelled.items["criterion"].unique().sort().to_list()
    for criterion in criteria:
        own = pl.col("criterion").eq_missing(pl.lit(criterion, pl.String))
        humans, judges = (each.filter(own) for each in sides)
        placed = labelled.items.filter(own)
        names = _names(humans, judges) if are_sets(humans["label"]) else {}
        if 0 < len(names) <= MOST_NAMES:
            for name, (has, j) in names.items():
                part = ": ".join(filter(None, (criterion, name)))
                h = with_complete_labels(has, labelled.unlabelled, name)
                found = _pair(labelled.who, placed, part, (h, j), LabelReading("pass_fail"))
                yield found._replace(of_label=True)
        else:
            humans = with_complete_labels(humans, labelled.unlabelled)
            both = pl.concat([humans["label"], judges["label"]])
            own_pass = positive_of(declared.positive, both)
            reading = reading_of(humans["label"], declared._replace(positive=own_pass))
            reading = reading._replace(whole=criterion in labelled.whole)
            found = _pair(labelled.who, placed, criterion, (humans, judges), reading)
            graded = not declared.has_grades and are_numbers(humans["label"])
            unusual = found.unusual._replace(odd=odd_labels(humans, reading))
            if labelled.means is not None:  # labels of a log may be means of repeats
                unusual = unusual._replace(fractions=None)
            yield found._replace(unusual=unusual, graded=graded)


def with_criterion(labels: pl.DataFrame) -> pl.DataFrame:
    """Return labels with the column ``criterion``, null if they have none."""
    if "criterion" in labels.columns:
        return labels
    return labels.drop_nulls("item").with_columns(criterion=pl.lit(None, pl.String))


def with_complete_labels(
    humans: pl.DataFrame, unlabelled: pl.DataFrame | None, name: str | None = None
) -> pl.DataFrame:
    """Leave out people's labels of items whose label ``name`` is empty; without it, if any is."""
    if unlabelled is None:
        return humans
    empty = unlabelled if name is None else unlabelled.filter(name=name)
    return humans.join(empty, on="item", how="anti", maintain_order="left")


def _pair(
    who: pl.DataFrame,
    items: pl.DataFrame,
    criterion: str | None,
    sides: tuple[pl.DataFrame, pl.DataFrame],
    reading: LabelReading,
) -> Paired:
    """Pair the labels of people and of judges, which are the two ``sides``."""
    grades = reading.kind == "grade"
    people, said = (_read(each, reading, sides[0]["label"]) for each in sides)
    readable = people.drop_nulls("word")
    fractions, scale = None, None
    if grades:
        means = readable.group_by("item").agg(pl.col("value").mean())["value"]
        scale = _scale(readable, means, reading)
    labels = combined(readable, scale)
    if scale is not None:
        fractions = _fractions(readable, labels, scale, reading)
    grid = who.join(items, how="cross")
    rows = grid.join(
        said.select("item", "label", name="annotator", judge_word="word", judge_value="value"),
        on=["name", "item"],
        how="left",
        maintain_order="left",
    ).join(
        labels.rename({"word": "human_word", "value": "human_value", "share": "human_share"}),
        on="item",
        how="left",
        maintain_order="left",
    )
    by_people, by_judge = pl.col("people").is_not_null(), pl.col("judge_word").is_not_null()
    status = (
        pl.when(~by_people & by_judge)
        .then(pl.lit("unlabelled"))
        .when(pl.col("tied"))
        .then(pl.lit("tied"))
        .when(by_judge)
        .then(pl.lit("used"))
        .when(pl.col("label").is_not_null())
        .then(pl.lit("invalid"))
        .otherwise(pl.lit("missing"))
    )
    on_prompt = "lowest" in items.columns and items["lowest"].count() > 0
    undeclared = reading.low is None and not on_prompt
    ranges: Iterable[Ranges] = ()
    if undeclared and grades:
        ranges = differing_ranges(rows, readable["value"])
    elif undeclared and reading.threshold is not None:
        theirs, ours = (_read(each, LabelReading("grade"), sides[0]["label"]) for each in sides)
        ours = ours.select(name="annotator", judge_value="value")
        ranges = differing_ranges(ours, theirs["value"])
    values = pl.concat([rows["judge_value"], readable["value"]]).drop_nulls()
    ends = (reading.low, reading.high)
    seen = None if values.is_empty() else (float(values.min()), float(values.max()))  # type: ignore[arg-type]
    declared = None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
    if reading.kind == "pass_fail":
        declared = (0.0, 1.0)
    return Paired(
        criterion,
        reading.kind,
        rows.with_columns(status=status),
        left_out(readable, grades=grades),
        declared or seen,
        _unread(people, items, grades=grades),
        Unusual(
            criterion, None if declared or not grades else seen, None, fractions, tuple(ranges)
        ),
    )


def _unread(people: pl.DataFrame, items: pl.DataFrame, *, grades: bool) -> pl.DataFrame:
    """Return people's labels that are not of the kind, or grades off the scale of the judge."""
    wrong = pl.col("word").is_null() & pl.col("label").is_not_null()
    rows = people
    if grades and "lowest" in items.columns:
        ends = items.select("item", "lowest", "highest")
        rows = people.join(ends, on="item", how="left", maintain_order="left")
        wrong |= ~is_on_scale("value").fill_null(value=True)
    return rows.filter(wrong).select("item", "label")


def _read(labels: pl.DataFrame, reading: LabelReading, people: pl.Series) -> pl.DataFrame:
    """Add ``word`` and ``value`` of each label; null for one that is not of the kind."""
    values = read_beside(labels["label"], people, reading)
    return labels.join(values, on="label", how="left", maintain_order="left")


def words_of(labels: pl.DataFrame, reading: LabelReading, people: pl.Series) -> pl.DataFrame:
    """Replace each label by its word as JSON; null for one that is not of the kind."""
    words = _read(labels, reading, people)
    quoted = pl.col("word").map_elements(json.dumps, return_dtype=pl.String)
    return words.with_columns(label=quoted).drop("word", "value")


def _fractions(
    people: pl.DataFrame, labels: pl.DataFrame, scale: pl.DataFrame, reading: LabelReading
) -> Fractions | None:
    """Return the few grades of people that are not whole, if they change combined labels."""
    whole = people.filter(is_whole())
    if whole.height in (0, people.height):
        return None
    means = labels["value"]
    others = nearest(means, _scale(whole, means, reading))
    return few_fractions(people, int((nearest(means, scale) != others).sum()))


def _scale(people: pl.DataFrame, means: pl.Series, reading: LabelReading) -> pl.DataFrame:
    """Return the grades, in order, among which the one nearest to a mean is sought.

    They are those that people gave or, on a declared scale of whole numbers, the whole grades next
    to each of the ``means``.
    """
    given = people.select(value=pl.col("word").cast(pl.Float64)).to_series().unique()
    ends = pl.Series([reading.low, reading.high], dtype=pl.Float64).drop_nulls()
    if ends.len() and all((each == each.floor()).all() for each in (ends, given)):
        given = pl.concat([given, means.floor(), means.ceil()]).unique()
    given = given.sort()
    words = [as_word(grade) for grade in given]
    return pl.DataFrame({"word": pl.Series(words, dtype=pl.String), "value": given})


def are_sets(people: pl.Series) -> bool:
    """Tell whether labels (JSON) are sets."""
    labels = people.drop_nulls()
    return not labels.is_empty() and labels.str.starts_with("[").all()


def _names(
    humans: pl.DataFrame, judges: pl.DataFrame
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """Return, for each name in sets of labels, whether each annotator's set has it."""
    labels = pl.concat([humans["label"], judges["label"]]).drop_nulls().unique().sort()
    sets = read_labels("set", [json.loads(label) for label in labels])
    names = sorted({name for each in sets if isinstance(each, frozenset) for name in each})
    found: dict[str, tuple[pl.DataFrame, pl.DataFrame]] = {}
    for name in names[: MOST_NAMES + 1]:
        has = [
            unreadable(why_unreadable(label) or label)
            if each is None
            else json.dumps(str(name in each).lower())  # type: ignore[operator]
            for label, each in zip(labels, sets, strict=True)
        ]
        table = pl.DataFrame(
            {"label": labels, "has": has}, schema={"label": pl.String, "has": pl.String}
        )
        parts = [
            each.join(table, on="label", how="left", maintain_order="left").with_columns(
                label="has"
            )
            for each in (humans, judges)
        ]
        found[name] = (parts[0], parts[1])
    return found
