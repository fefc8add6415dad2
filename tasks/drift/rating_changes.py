"""Changes of the ratings of single answers between two waves (methods, sections 10 and 16)."""

from typing import Any

import polars as pl

from schemas.keys import CELL, SERIES
from tasks.counting.missing_reasons import explained
from tasks.drift.changes import by_mcnemar, contrast
from tasks.kit.defaults import limits
from tasks.pointwise.rated_items import TARGET, on_scale, rated, things
from tasks.pointwise.shifts import arms_beside

RATED = ("rating_drift", "rating_shift_drift")
MISSING = dict.fromkeys(RATED, "no answer has valid ratings in both waves")
ENDS = ("estimate", "low", "high", "standard_error", "boot_low", "boot_high")


def rated_answers(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return one row per answer, arm and wave with the mean of its ratings; a rubric's whole."""
    rows = rated(ratings.with_columns(pl.col(pl.Categorical).cast(pl.String)))
    return rows if rows.is_empty() else things(rows.filter(pl.col("subgroup") == ""))


def rating_changes(answers: pl.DataFrame, bases: pl.DataFrame) -> pl.DataFrame:
    """Return the changes of ratings since the base, as :func:`tasks.drift.changes.changes` does.

    ``rating_drift``: mean rating of unperturbed answers, or pass rate, minus the base wave's;
    ``rating_shift_drift``: the same for a perturbation's shift. Both are paired by answer with
    cluster-linearised errors; for pass and fail of one answer per question the p-value of the rate
    is McNemar's. Passes are shares. Grades are in points, and their ``minimum`` is the minimum
    rating shift times the standard deviation of the judge's ratings of unperturbed answers in the
    base.
    """
    control = pl.col("arm") == "control"
    level = answers.filter(control).with_columns(
        sample="item", num=on_scale("score"), den=pl.lit(1.0)
    )
    found = [
        (contrast if graded else _rates)("rating_drift", some.drop("subgroup"), bases, widest=1.0)
        for (graded,), some in level.partition_by("graded", as_dict=True).items()
    ]
    shifts = arms_beside(answers.filter(TARGET))
    if not shifts.is_empty():
        # The same base in all waves: losing shams in one wave must not look like a change.
        shammed = pl.col("has_sham").all().over([name for name in CELL if name != "wave"])
        base = pl.when(shammed).then("sham_score").otherwise("control_score")
        moved = shifts.with_columns(num=pl.col("experimental_score") - base, den=pl.lit(1.0))
        found.append(contrast("rating_shift_drift", moved.drop("subgroup"), bases))
    rows = explained(pl.concat(found, how="diagonal_relaxed"), MISSING)
    return _in_points(rows, answers)


def _rates(*items: Any, widest: float) -> pl.DataFrame:
    return by_mcnemar(contrast(*items, widest=widest))


def _in_points(rows: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Turn changes of grades, which are shares of their scale, into points; add their minimum."""
    scale = answers.group_by("dataset", "prompt").agg(
        graded=pl.col("graded").any(), span=(pl.col("highest") - pl.col("lowest")).first()
    )
    mean, square = pl.col("score").mean(), pl.col("square").mean()
    spread = (
        answers.filter(pl.col("arm") == "control")
        .group_by(*SERIES, subgroup="wave")
        .agg(deviation=(square - mean**2).clip(lower_bound=0.0).sqrt())
    )
    graded = pl.col("graded")
    return (
        rows.join(scale, on=["dataset", "prompt"], how="left")
        .join(spread, on=[*SERIES, "subgroup"], how="left")
        .with_columns(
            *(
                pl.when(graded).then(pl.col(end) * pl.col("span")).otherwise(end).alias(end)
                for end in ENDS
            ),
            minimum=pl.when(graded)
            .then(limits().minimum_rating_shift * pl.col("deviation"))
            .otherwise(limits().minimum_pass_rate_shift),
            unit=pl.when(graded).then(pl.lit("points")).otherwise(pl.lit("share")),
        )
        .drop("graded", "span", "deviation")
    )
