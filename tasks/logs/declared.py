"""Ratings of a log as a user declares them: what passes, and the ends of the scale of grades."""

import polars as pl

from schemas.calibration import Ratings
from tasks.agreement.compare import Options
from tasks.agreement.kinds import FAIL, PASS, Reading, positive_of, read_beside
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
    if options.positive is not None:
        labels = _as_json(rows.filter(pl.col("kind") != "verdict"))
        require_known(labels["json"], options.positive, file)
    if options.scale or options.threshold is not None:
        rows = _as_grades(rows, words=options.threshold is not None)
        _require_grades(rows, options, file)
        rows = _with_scale(rows, options.scale)
    if options.threshold is not None:
        rows = _with_threshold(rows, options.threshold)
    if options.positive is not None:
        single = rows.filter(pl.col("kind") != "verdict")
        parts = single.partition_by(ABOUT, maintain_order=True)
        passed = [_with_passes(part, options.positive) for part in parts]
        rows = pl.concat([rows.filter(pl.col("kind") == "verdict"), *passed])
    # What passed or failed is no grade or label any more.
    verdicts = options.threshold is not None or options.positive is not None
    left = options._replace(positive=None, scale=None, threshold=None) if verdicts else options
    return log._replace(ratings=Ratings.of(rows), declared=left)


def _require_grades(rows: pl.DataFrame, options: Options, file: str) -> None:
    if rows.select(GRADED.any()).item():
        return
    option = "--scale" if options.scale else "--threshold"
    raise ValueError(f"{option} is about grades, and {file} has none. Leave it out.")


def _as_grades(rows: pl.DataFrame, *, words: bool) -> pl.DataFrame:
    """Read labels as grades where most of people's (of all without people) are numbers.

    With ``words`` those for pass and fail stay labels.
    """
    valid = (pl.col("kind") == "label") & TOLD
    number = pl.col("label").str.strip_chars().cast(pl.Float64, strict=False)
    number = pl.when(number.is_finite()).then(number)
    decides = valid & (pl.col("human") | ~pl.col("human").any().over(ABOUT))
    numbers = (decides & number.is_not_null()).sum().over(ABOUT)
    counted = numbers * 2 > decides.sum().over(ABOUT)
    # Where people's grades are numbers already, a judge's labels may be numbers as well.
    counted |= GRADED.any().over(ABOUT) & number.is_not_null()
    stays = pl.lit(words) & number.is_null() & _verdict().is_not_null()
    graded = (pl.col("kind") == "label") & counted & ~stays
    lost = graded & valid & number.is_null()
    return rows.with_columns(
        kind=pl.when(graded).then(pl.lit("number")).otherwise("kind"),
        value=pl.when(graded).then(pl.when(valid).then(number)).otherwise("value"),
        invalid=pl.when(lost).then(pl.lit(NO_NUMBER)).when(~(graded & valid)).then("invalid"),
    )


def _verdict() -> pl.Expr:
    """Return whether a label means a pass; null for one that is no word for pass or fail."""
    word = pl.col("label").str.strip_chars().str.to_lowercase()
    return word.replace_strict(PASS_WORDS, default=None, return_dtype=pl.Boolean)


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
    said = _verdict()
    beside = (pl.col("kind") == "label") & TOLD & GRADED.any().over(ABOUT)
    rows = rows.with_columns(
        value=pl.when(beside).then(said.cast(pl.Float64)).otherwise("value"),
        label=pl.when(beside & said)
        .then(pl.lit(PASS))
        .when(beside & ~said)
        .then(pl.lit(FAIL))
        .otherwise("label"),
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


def _as_json(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct labels of ratings, also grades, with who gave them and as ``json``."""
    text = pl.coalesce("label", whole_number("value"))
    labels = rows.filter(TOLD).select("human", label=text).unique().drop_nulls("label")
    return labels.with_columns(json=pl.col("label").map_elements(as_json, pl.String))


def _with_passes(rows: pl.DataFrame, positive: str) -> pl.DataFrame:
    """Turn the labels of one criterion into pass and fail, if one is the label of a pass."""
    valid = TOLD
    given = rows.with_columns(label=pl.coalesce("label", whole_number("value")))
    labels = _as_json(rows)
    if are_sets(labels["json"]) or positive_of(positive, labels["json"]) is None:
        return rows
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
        label=pl.when(valid & (pl.col("_passes") == 1))
        .then(pl.lit(PASS))
        .when(valid & (pl.col("_passes") == 0))
        .then(pl.lit(FAIL))
        .otherwise("label"),
        invalid=pl.when(~valid)
        .then("invalid")
        .when(lost)
        .then(pl.coalesce("invalid", pl.lit(NOT_READ))),
    ).drop("_passes")
