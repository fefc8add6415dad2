"""Ratings as items of statistics: by criterion and as a whole, with the ends of their scale."""

import polars as pl

from schemas.keys import JUDGE
from tasks.inference.cluster_sums import PART, join_cells

BALLOT = (*JUDGE, "item", "sample", "side", "arm", "perturbation", "repeat")
THING = (*JUDGE, "subgroup", "item", "sample", "side", "arm", "perturbation")
SCALE = ("dataset", "prompt", "subgroup")
ABOUT = ("cluster", "kind", "simulated", "graded", "lowest", "highest", "passes_at")
CONTROL = pl.col("arm") == "control"
TARGET = pl.col("side").is_null() | (pl.col("side") == "target")
"""Marks ratings of targets; a rating that names no side is of a target."""
NOTHING = pl.lit(None, pl.Float64)
IN_ONE_REPLY = pl.col("criterion").is_not_null() & (
    pl.col("sample").is_not_null() | pl.col("weight").is_not_null()
)
"""Marks ratings of criteria that one reply rates. Criteria of a log need not be parts of one."""
OFF_SCALE = "no answer has a valid rating and a grade of people on the same scale"
"""Why judge and people are not compared in grades."""
PAIRS = "pairs"
"""Quantity of verdicts on pairs."""


def rated(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return one row per rating of each criterion, and of the whole where criteria have weights.

    The whole (``subgroup`` "") is the mean of the criteria by their weights; where their scales
    differ, each as a share of its scale, so that the whole is from 0 to 1. A ballot with an
    invalid criterion has none. Verdicts on pairs, and labels without values, are left out.

    Returns
    -------
    DataFrame
        ``THING, repeat, cluster, kind, simulated``; ``value`` and ``passed`` (1 or 0), null if
        invalid; ``graded``, false if there is only pass and fail; ``passes_at, human_value``;
        ``lowest, highest``: ends of the scale as declared, else as seen in the dataset and prompt.
    """
    single = ratings.filter(pl.col("kind") != "verdict")
    if single.is_empty():
        return single
    criterion = ("dataset", "prompt", "criterion")
    binary = (pl.col("kind") == "label") & pl.col("value").is_in([0.0, 1.0]).fill_null(value=True)
    rows = (
        single.with_columns(
            graded=~binary.all().over(criterion),
            named=pl.col("value").is_not_null().any().over(criterion),
            # Criteria without a readable rating count too: without them there is no whole.
            all_parts=pl.col("criterion").n_unique().over(JUDGE),
        )
        .filter("named")
        .select(
            *BALLOT,
            "cluster",
            "simulated",
            "graded",
            "value",
            "lowest",
            "highest",
            "passes_at",
            "human_value",
            kind="perturbation_kind",
            subgroup=pl.col("criterion").fill_null(""),
            weight=pl.col("weight").fill_null(1.0),
            parts=IN_ONE_REPLY,
            all_parts="all_parts",
        )
    )
    rows = _with_ends(rows)
    verdict = pl.when(pl.col("graded") & pl.col("passes_at").is_not_null()).then(
        (pl.col("value") >= pl.col("passes_at")).cast(pl.Float64)
    )
    rows = rows.with_columns(passed=pl.when("graded").then(verdict).otherwise("value"))
    parts = rows.filter("parts")
    if parts.is_empty():
        return rows
    return pl.concat([rows, _wholes(parts)], how="diagonal_relaxed")


def quantities(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return what each prompt's ratings measure: ``quantity`` per ``dataset`` and ``prompt``.

    Prompts have the same quantity if their ratings have the same kind (grades, pass and fail,
    criteria, labels), the same criteria or labels, and the same declared scale. Only these are
    compared. It is also what tables and charts call them, such as ``grades from 1 to 10``. Where
    the scales of a rubric's criteria differ, its whole is from 0 to 1.
    """
    single = ratings.filter(pl.col("kind") != "verdict")
    grades = (pl.col("kind") == "number").any()
    parts = single.group_by("dataset", "prompt", "criterion").agg(
        pl.when(grades).then(pl.col("lowest", "highest").max()),
        graded=grades,
        together=IN_ONE_REPLY.any(),
    )
    low, high = (
        pl.col(name).cast(pl.String).str.strip_suffix(".0") for name in ("lowest", "highest")
    )
    named, graded = pl.col("criterion").is_not_null(), pl.col("graded")
    scale = pl.format("{} to {}", low, high)
    part = (
        pl.when(named & graded)
        .then(pl.coalesce(pl.format("{} ({})", "criterion", scale), "criterion"))
        .when(named)
        .then("criterion")
        .when(graded)
        .then(pl.coalesce(pl.format("grades from {}", scale), pl.lit("grades")))
        .otherwise(pl.lit("pass or fail"))
    )
    begin = (
        pl.when(~named.any())
        .then(pl.lit(""))
        .when(graded.any())
        .then(pl.lit("criteria "))
        .otherwise(pl.lit("labels "))
    )
    several = pl.any_horizontal(
        pl.col(end).filter("together").n_unique() > 1 for end in ("lowest", "highest")
    )
    end = pl.when(several).then(pl.lit(", the whole from 0 to 1")).otherwise(pl.lit(""))
    quantity = pl.concat_str(begin, part.sort().str.join(", "), end)
    return parts.group_by("dataset", "prompt").agg(quantity=quantity)


def _with_ends(rows: pl.DataFrame) -> pl.DataFrame:
    ends = {"lowest": pl.col("value").min(), "highest": pl.col("value").max()}
    return rows.with_columns(
        pl.when("graded")
        .then(pl.coalesce(name, seen.over(SCALE)))
        .otherwise(float(name == "highest"))
        .alias(name)
        for name, seen in ends.items()
    )


def _wholes(parts: pl.DataFrame) -> pl.DataFrame:
    weight = pl.col("weight")

    def mean(name: str) -> pl.Expr:
        whole = (pl.col(name) * weight).sum() / weight.sum()
        return pl.when(pl.col(name).is_not_null().all()).then(whole).alias(name)

    parts = _on_one_scale(parts)
    found = parts.group_by(BALLOT, maintain_order=True).agg(
        pl.col("cluster", "kind", "simulated", "all_parts").first(),
        *(mean(name) for name in ("value", "lowest", "highest", "human_value")),
        graded=pl.col("graded").any(),
        passed=pl.when(~pl.col("graded").any()).then(mean("passed")),
        rows=pl.len(),
    )
    complete = pl.col("rows") == pl.col("all_parts")
    return found.with_columns(
        pl.when(complete).then(pl.col("value", "passed")),
        subgroup=pl.lit(""),
        passes_at=NOTHING,
    ).drop("rows")


def _on_one_scale(parts: pl.DataFrame) -> pl.DataFrame:
    """Turn the ratings of a prompt's criteria into shares of their scales if these differ."""
    ends = {"lowest": 0.0, "highest": 1.0}
    differ = pl.any_horizontal(pl.col(end).n_unique().over("dataset", "prompt") > 1 for end in ends)
    shares = [
        pl.when(differ & pl.col(name).is_not_null())
        .then(on_scale(name))
        .otherwise(name)
        .alias(name)
        for name in ("value", "human_value")
    ]
    return parts.with_columns(
        *shares,
        *(pl.when(differ).then(end).otherwise(name).alias(name) for name, end in ends.items()),
    )


def things(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per rated answer, arm and criterion, with means over its valid repeats.

    ``score`` and ``passed``; ``square``, the mean square; ``readable`` of ``votes`` ratings;
    ``mode``, always ``any``.
    """
    found = rows.group_by(THING, maintain_order=True).agg(
        pl.col(*ABOUT).first(),
        pl.col("human_value").first(),
        pl.col("passed").mean(),
        score=pl.col("value").mean(),
        square=(pl.col("value") ** 2).mean(),
        readable=pl.col("value").count(),
        votes=pl.len().cast(pl.Int64),
    )
    return found.with_columns(mode=pl.lit("any"))


def control_things(ratings: pl.DataFrame, *, repeats: bool = False) -> pl.DataFrame:
    """Return the unperturbed answers with their ratings; with ``repeats`` also of replicates."""
    asked = pl.col("arm").cast(pl.String).is_in(["control", *(["replicate"] if repeats else [])])
    rows = rated(ratings.filter(asked))
    if rows.is_empty():
        return rows
    return things(rows.with_columns(arm=pl.lit("control")))


def is_on_scale(name: str) -> pl.Expr:
    """Tell whether a grade of people is on the judge's scale; a grade beyond it is on another."""
    return pl.col(name).is_between("lowest", "highest")


def on_scale(name: str) -> pl.Expr:
    """Return a rating as a share of its scale, 0 the lowest grade and 1 the highest."""
    span = pl.col("highest") - pl.col("lowest")
    return pl.when(span > 0).then((pl.col(name) - pl.col("lowest")) / span).otherwise(0.0)


def in_points(estimates: pl.DataFrame, items: pl.DataFrame, *, shift: bool) -> pl.DataFrame:
    """Turn estimates on a scale from 0 to 1 into points; ``shift`` for differences.

    A scale of one grade, which is declared nowhere, leaves no interval.
    """
    scales = items.group_by(PART).agg(
        _lowest=pl.col("lowest").first(), _span=(pl.col("highest") - pl.col("lowest")).first()
    )
    found = join_cells(estimates, scales)
    start = pl.lit(0.0) if shift else pl.col("_lowest")
    ends = ("low", "high", "boot_low", "boot_high")
    known = pl.col("_span") > 0
    numbers = found.with_columns(
        estimate=pl.col("estimate") * pl.col("_span") + start,
        standard_error=pl.col("standard_error") * pl.col("_span"),
        hits=pl.lit(None, pl.Int64),
        **{end: pl.when(known).then(pl.col(end) * pl.col("_span") + start) for end in ends},
        reason=pl.when(known | pl.col("estimate").is_null())
        .then("reason")
        .otherwise(pl.lit(ONE_GRADE)),
    )
    return numbers.select(estimates.columns)


ONE_GRADE = "all ratings are equal and the scale is not declared: no interval"


def differences_in_unit(estimates: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Turn differences on a scale from 0 to 1 into points, or shares for pass and fail."""
    return in_unit(in_points(estimates, items, shift=True), items)


def in_unit(estimates: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Set the unit ``share`` where estimates are of pass and fail."""
    graded = items.group_by(PART).agg(_graded=pl.col("graded").any())
    found = join_cells(estimates, graded)
    share = pl.when(~pl.col("_graded")).then(pl.lit("share"))
    return found.with_columns(unit=share).select(estimates.columns)
