"""Ratings of a log as a user declares them: what passes, and the ends of the scale of grades."""

import polars as pl

from schemas.calibration import Ratings
from tasks.agreement.declared_labels import require_known
from tasks.agreement.label_kinds import (
    AS_GIVEN,
    Declared,
    LabelReading,
    are_mostly_numbers,
    positive_of,
    read_beside,
)
from tasks.agreement.paired_labels import are_sets
from tasks.agreement.pass_words import is_failure
from tasks.calibration.label_values import as_json
from tasks.logs.log_reader import Log
from tasks.logs.ratings import passes, verdict_of, whole_number
from tasks.logs.unreadable import UNREADABLE
from tasks.readers.expressions import NO_NUMBER

OFF_SCALE = "a grade off the scale"
NOT_READ = "neither pass nor fail"
RATER = ("dataset", "criterion", "judge", "prompt")
GRADED = pl.col("kind") == "number"
HAS_LABEL = pl.col("invalid").is_null() | (pl.col("invalid") == UNREADABLE)
"""Marks ratings whose label was read, or is there and could not be without a declaration."""


def with_declared(log: Log, declared: Declared) -> Log:
    """Return a log whose grades and labels are read as ``declared``.

    Grades off the declared scale become invalid. With a threshold all grades, and with a label
    that counts as a pass all labels, become pass or fail, as where judges are compared with people.
    Verdicts on pairs, and sets of labels, stay as they are.

    Raise ValueError if the log has no grade although a scale or a threshold is declared, or nobody
    gave the label that counts as a pass.
    """
    positive, scale, threshold = declared
    single = pl.col("kind") != "verdict"
    rows: pl.DataFrame = log.ratings.filter(single)
    if positive is not None:
        require_known(_labels(rows)["json"], positive, log.name)
    parts = rows.partition_by("dataset", "criterion", maintain_order=True)
    graded = any(_are_grades(part, words=threshold is not None) for part in parts)
    if declared.has_grades and not graded:
        option = "--scale" if scale else "--threshold"
        raise ValueError(f"{option} is about grades, and {log.name} has none. Leave it out.")
    parts = [_read(part, declared) for part in parts]
    # What passed or failed is no grade or label any more.
    verdicts = threshold is not None or positive is not None
    read = pl.concat([log.ratings.filter(~single), *parts])
    return log._replace(ratings=Ratings.of(read), declared=AS_GIVEN if verdicts else declared)


def repeats_as_declared(ratings: pl.DataFrame, declared: Declared) -> pl.DataFrame:
    """Return the ratings of judges that repeat items, each read as ``declared``.

    Repeats are combined after that: an item passes if most of its repeats do. Where a label is
    named as the pass, repeats keep labels of the log: that one, and one that is none.
    Other raters have no row.
    """
    single = ratings.filter(pl.col("kind") != "verdict")
    nothing = single.clear()
    if declared == AS_GIVEN:
        return nothing
    again = ~pl.col("human") & pl.struct(*RATER, "item").is_duplicated()
    raters = single.filter(again).select(RATER).unique()
    if raters.is_empty():
        return nothing
    read = [
        _read_repeats(part, declared)
        for part in single.partition_by("dataset", "criterion", maintain_order=True)
    ]
    return pl.concat(read).join(
        raters, on=RATER, how="semi", nulls_equal=True, maintain_order="left"
    )


def _read_repeats(rows: pl.DataFrame, declared: Declared) -> pl.DataFrame:
    read = _read(rows.with_columns(_given="label"), declared)
    named = positive_of(declared.positive, _labels(rows)["json"])
    # A threshold makes words for pass and fail of grades, whatever label is named.
    if named is not None and (declared.threshold is None or not _are_grades(rows)):
        value = pl.col("value")
        fails = pl.col("_given").filter(value == 0).min()
        word = pl.when(value == 1).then(pl.lit(named)).otherwise(fails)
        read = read.with_columns(label=pl.when(value.is_not_null()).then(word).otherwise("label"))
    return read.drop("_given")


def _are_grades(rows: pl.DataFrame, *, words: bool = True) -> bool:
    return bool(_as_grades(rows, words=words).select(GRADED.any()).item())


def _read(rows: pl.DataFrame, declared: Declared) -> pl.DataFrame:
    positive, scale, threshold = declared
    if declared.has_grades:
        rows = _as_grades(rows, words=threshold is not None)
    if scale:
        rows = _with_scale(rows, *scale)
    if threshold is not None:
        rows = _with_threshold(rows, threshold)
    return rows if positive is None else _with_passes(rows, positive)


def _labels(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct labels of ratings, also grades, with who gave them and as ``json``."""
    text = pl.coalesce("label", whole_number("value"))
    labels = rows.filter(HAS_LABEL).select("human", label=text).unique().drop_nulls("label")
    return labels.with_columns(json=pl.col("label").map_elements(as_json, pl.String))


def _as_grades(rows: pl.DataFrame, *, words: bool) -> pl.DataFrame:
    """Read the labels of one criterion as grades if most of people's, or of all, are numbers.

    With ``words`` those for pass and fail stay labels.
    """
    given = rows.filter(HAS_LABEL).select(
        "human", label=pl.coalesce("label", whole_number("value"))
    )
    people = given.filter("human") if given["human"].any() else given
    json = people["label"].drop_nulls().map_elements(as_json, pl.String)
    if not are_mostly_numbers(json):
        return rows
    number = pl.col("label").str.strip_chars().cast(pl.Float64, strict=False)
    number = pl.when(number.is_finite()).then(number)
    stays = pl.lit(words) & number.is_null() & passes().is_not_null()
    graded = (pl.col("kind") == "label") & ~stays.fill_null(value=False)
    read = graded & HAS_LABEL
    return rows.with_columns(
        kind=pl.when(graded).then(pl.lit("number")).otherwise("kind"),
        value=pl.when(read).then(number).otherwise("value"),
        invalid=pl.when(read & number.is_null())
        .then(pl.lit(NO_NUMBER))
        .when(~read)
        .then("invalid"),
    )


def _with_scale(rows: pl.DataFrame, low: float, high: float) -> pl.DataFrame:
    off = GRADED & pl.col("invalid").is_null() & ~pl.col("value").is_between(low, high)
    return rows.with_columns(
        invalid=pl.when(off).then(pl.lit(OFF_SCALE)).otherwise("invalid"),
        value=pl.when(~off.fill_null(value=False)).then("value"),
        label=pl.when(~off.fill_null(value=False)).then("label"),
        lowest=pl.when(GRADED).then(low).otherwise("lowest"),
        highest=pl.when(GRADED).then(high).otherwise("highest"),
    )


def _with_threshold(rows: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Turn the grades of one criterion into verdicts; beside them, words for both stay verdicts."""
    if not rows.select(GRADED.any()).item():
        return rows
    nothing = pl.lit(None, pl.Float64)
    passed = pl.when(GRADED).then(pl.col("value") >= threshold).otherwise(passes())
    verdicts = _as_verdicts(rows, passed, ~GRADED & HAS_LABEL)
    return verdicts.with_columns(lowest=nothing, highest=nothing)


def _with_passes(rows: pl.DataFrame, positive: str) -> pl.DataFrame:
    """Turn the labels of one criterion into verdicts, if one is the label of a pass."""
    labels = _labels(rows)
    if are_sets(labels["json"]) or positive_of(positive, labels["json"]) is None:
        return rows
    # Without people, what judges say is known, except that a grader failed.
    failed = pl.col("label").map_elements(is_failure, pl.Boolean)
    people = labels.filter("human" if labels["human"].any() else ~failed)["json"]
    read = read_beside(labels["json"], people, LabelReading("pass_fail", positive.strip()))
    known = labels.join(read, left_on="json", right_on="label").select("label", _passes="value")
    given = rows.with_columns(label=pl.coalesce("label", whole_number("value")))
    given = given.join(known.unique(), on="label", how="left", maintain_order="left")
    return _as_verdicts(given, pl.col("_passes") == 1, HAS_LABEL).drop("_passes")


def _as_verdicts(rows: pl.DataFrame, passed: pl.Expr, given: pl.Expr) -> pl.DataFrame:
    """Turn ratings into pass or fail; ``given`` ratings that are neither become invalid."""
    passed = pl.when(HAS_LABEL).then(passed)
    return rows.with_columns(
        kind=pl.lit("label"),
        label=pl.coalesce(verdict_of(passed), "label"),
        value=passed.cast(pl.Float64),
        invalid=pl.when(~given)
        .then("invalid")
        .when(passed.is_null())
        .then(pl.coalesce("invalid", pl.lit(NOT_READ))),
    )
