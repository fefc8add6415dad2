"""Ratings of a log as a user declares them: what passes, and the ends of the scale of grades."""

import polars as pl

from schemas.calibration import Ratings
from tasks.agreement.compare import Options
from tasks.agreement.kinds import FAIL, PASS, Reading, read_beside
from tasks.agreement.paired import are_sets
from tasks.agreement.pass_words import PASS_WORDS, is_failure
from tasks.agreement.sources import require_known
from tasks.calibration.label_values import as_json
from tasks.logs.mapped import NO_NUMBER
from tasks.logs.ratings import whole_number
from tasks.logs.reading import Log
from tasks.logs.unreadable import UNREADABLE

ABOUT = ("dataset", "criterion")
OFF_SCALE = "a grade off the scale"
NOT_READ = "neither pass nor fail"
GRADED = pl.col("kind") == "number"
TOLD = pl.col("invalid").is_null() | (pl.col("invalid") == UNREADABLE)
"""Marks ratings whose label was read, or is there and could not be without a declaration."""


def with_declared(log: Log, options: Options, file: str) -> Log:
    """Return a log whose grades and labels are read as ``options`` say.

    Grades off the declared scale become invalid. With a threshold all grades, and with a label
    that counts as a pass all labels, become pass or fail, as where judges are compared with people.
    Verdicts on pairs, and sets of labels, stay as they are.

    Raise ValueError if the log has no grade to which a scale or a threshold applies, or nobody gave
    the label that counts as a pass.
    """
    rows: pl.DataFrame = log.ratings
    if options.scale or options.threshold is not None:
        rows = _as_grades(rows)
        _require_grades(rows, options, file)
        rows = _with_scale(rows, options.scale)
    if options.threshold is not None:
        rows = _with_threshold(rows, options.threshold)
    if options.positive is not None:
        single = rows.filter(pl.col("kind") != "verdict")
        parts = single.partition_by(ABOUT, maintain_order=True)
        verdicts = rows.filter(pl.col("kind") == "verdict")
        rows = pl.concat(
            [verdicts, *(_with_passes(part, options.positive, file) for part in parts)]
        )
    # Grades that passed or failed are no grades any more.
    left = options if options.threshold is None else options._replace(scale=None, threshold=None)
    return log._replace(ratings=Ratings.of(rows), declared=left)


def _require_grades(rows: pl.DataFrame, options: Options, file: str) -> None:
    if rows.select(GRADED.any()).item():
        return
    option = "--scale" if options.scale else "--threshold"
    raise ValueError(f"{option} is about grades, and {file} has none. Leave it out.")


def _as_grades(rows: pl.DataFrame) -> pl.DataFrame:
    """Read the labels of a criterion as grades if more than half of them are numbers."""
    valid = (pl.col("kind") == "label") & pl.col("invalid").is_null()
    number = pl.col("label").str.strip_chars().cast(pl.Float64, strict=False)
    counted = (valid & number.is_not_null()).sum().over(ABOUT) * 2 > valid.sum().over(ABOUT)
    graded = (pl.col("kind") == "label") & counted
    lost = graded & valid & number.is_null()
    return rows.with_columns(
        kind=pl.when(graded).then(pl.lit("number")).otherwise("kind"),
        value=pl.when(graded).then(pl.when(valid).then(number)).otherwise("value"),
        invalid=pl.when(lost).then(pl.lit(NO_NUMBER)).otherwise("invalid"),
    )


def _with_scale(rows: pl.DataFrame, scale: tuple[float, float] | None) -> pl.DataFrame:
    if scale is None:
        return rows
    low, high = scale
    off = GRADED & pl.col("invalid").is_null() & ~pl.col("value").is_between(low, high)
    return rows.with_columns(
        invalid=pl.when(off).then(pl.lit(OFF_SCALE)).otherwise("invalid"),
        value=pl.when(~off.fill_null(value=False)).then("value"),
        label=pl.when(~off.fill_null(value=False)).then("label"),
        lowest=pl.when(GRADED).then(low).otherwise("lowest"),
        highest=pl.when(GRADED).then(high).otherwise("highest"),
    )


def _with_threshold(rows: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Turn grades into pass or fail; beside them, words for pass and fail stay verdicts."""
    word = pl.col("label").str.strip_chars().str.to_lowercase()
    said = word.replace_strict(PASS_WORDS, default=None, return_dtype=pl.Boolean)
    beside = (pl.col("kind") == "label") & TOLD & GRADED.any().over(ABOUT)
    rows = rows.with_columns(
        value=pl.when(beside).then(said.cast(pl.Float64)).otherwise("value"),
        invalid=pl.when(~beside)
        .then("invalid")
        .when(said.is_null())
        .then(pl.coalesce("invalid", pl.lit(NOT_READ))),
    )
    passes = pl.col("value") >= threshold
    nothing = pl.lit(None, pl.Float64)
    return rows.with_columns(
        label=pl.when(GRADED & passes)
        .then(pl.lit(PASS))
        .when(GRADED & ~passes)
        .then(pl.lit(FAIL))
        .otherwise("label"),
        value=pl.when(GRADED).then(passes.cast(pl.Float64)).otherwise("value"),
        lowest=pl.when(GRADED).then(nothing).otherwise("lowest"),
        highest=pl.when(GRADED).then(nothing).otherwise("highest"),
        kind=pl.when(GRADED).then(pl.lit("label")).otherwise("kind"),
    )


def _with_passes(rows: pl.DataFrame, positive: str, file: str) -> pl.DataFrame:
    """Give the labels of one criterion 1 if they are the label of a pass, and 0 if they are not."""
    valid = TOLD
    given = rows.with_columns(label=pl.coalesce("label", whole_number("value")))
    labels = given.filter(valid).select("label", "human").unique().drop_nulls("label")
    labels = labels.with_columns(json=pl.col("label").map_elements(as_json, pl.String))
    if are_sets(labels["json"]):
        return rows
    require_known(labels["json"], positive, file)
    # Without people, what judges say is known, except that a grader failed.
    failed = pl.col("label").map_elements(is_failure, pl.Boolean)
    people = labels.filter("human" if labels["human"].any() else ~failed)["json"]
    read = read_beside(labels["json"], people, Reading("pass_fail", positive.strip()))
    passes = labels.join(read, left_on="json", right_on="label").select("label", _passes="value")
    told = given.join(passes.unique(), on="label", how="left", maintain_order="left")
    lost = valid & pl.col("_passes").is_null()
    return told.with_columns(
        kind=pl.lit("label"),
        value=pl.when(valid).then("_passes"),
        invalid=pl.when(~valid)
        .then("invalid")
        .when(lost)
        .then(pl.coalesce("invalid", pl.lit(NOT_READ))),
    ).drop("_passes")
