"""Heterogeneity of rating shifts: between questions, from repeats, and between criteria."""

from functools import partial

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.keys import CELL, JUDGE
from schemas.results import Estimates
from tasks.counting.cells import valued
from tasks.counting.primary_endpoint import base_value
from tasks.inference.bootstrap import BOOT
from tasks.inference.cluster_sums import PART, grouped
from tasks.inference.delta_method import linearised, mean_of, summed
from tasks.inference.intervals import EMPTY
from tasks.inference.multiplicity import holm
from tasks.pointwise.rated_items import TARGET, in_unit, rated, things
from tasks.pointwise.shifts import arms_beside
from tasks.statistics import Rows, statistic
from tasks.statistics.heterogeneity import NOTHING, spread_rows

HALF = [*JUDGE, "mode", "subgroup", "perturbation", "sample"]


@statistic(
    source="methods.md, section 16 (heterogeneity)",
    gives=("rating_spread", "rating_mean_square", "criterion_shift", "criterion_spread"),
    family="pointwise",
    unit="sd",
    null=0.0,
    needs=("perturbation",),
)
def rating_spread(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how much true rating shifts differ between answers, and between criteria.

    With d_i1 and d_i2 the shifts of an answer in its repeats of even and of odd number, over the
    primary endpoint's base: ``rating_spread = sqrt(mean(d_i1 d_i2) - mean(d_i)^2)`` and
    ``rating_mean_square = mean(d_i1 d_i2)``, as for comparisons (``heterogeneity``).
    ``criterion_shift`` is the shift of each criterion, and ``criterion_spread`` the largest
    distance of one from the mean of all.

    Parameters
    ----------
    ratings
        One row per rating; a spread needs two repeats or more in each arm, criteria a rubric.

    Returns
    -------
    Estimates
        In standard deviations of the judge's control ratings, which are taken as known; for pass
        and fail in shares. ``rating_mean_square`` has a p-value from sign flips.
        ``criterion_spread`` has the smallest p-value, after Holm, of paired t tests of each
        criterion against the mean.

    Notes
    -----
    Repeats of one prompt share no noise, so it cancels in the product. With one vote there is no
    spread.

    References
    ----------
    methods.md, section 16. Holm (1979), Scand. J. Stat. 6, 65-70.

    Examples
    --------
    Shifts of 1, 1 in the repeats of one answer and 0, 0 of another, and a control deviation of 1:
    mean square 1/2, mean 1/2, spread sqrt(1/2 - 1/4) = 1/2.
    """
    if not (ratings["arm"] == "experimental").any():
        return []
    rows = rated(ratings.filter(TARGET))
    if rows.is_empty():
        return []
    effects = _effects(rows)
    if effects.is_empty():
        return []
    found = [in_unit(_criteria(effects), effects)]
    if (rows["repeat"] > 0).any():
        halves = [_effects(rows.filter(pl.col("repeat") % 2 == odd)) for odd in (0, 1)]
        found.append(in_unit(_spreads(effects, *halves), effects))
    return found


def _effects(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the arms of each sample, as grades in control deviations or as shares of passes."""
    wide = arms_beside(things(rows))
    if wide.is_empty():
        return wide
    groups = grouped(wide)
    base = base_value(wide, groups, "points")
    known = pl.col("control_points").is_not_null()
    variance = (
        pl.col("control_square").filter(known).mean()
        - pl.col("control_points").filter(known).mean() ** 2
    )
    deviation = pl.when(variance > 1e-9).then(variance.clip(lower_bound=0.0).sqrt()).over(PART)
    return wide.with_columns(
        shift=pl.col("experimental_points") - base,
        scale=pl.when("graded").then(deviation).otherwise(1.0),
    )


def _spreads(both: pl.DataFrame, one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    found = both.join(
        one.select(*HALF, one="shift"), on=HALF, how="left", maintain_order="left"
    ).join(other.select(*HALF, two="shift"), on=HALF, how="left", maintain_order="left")
    one_shift, two_shift = pl.col("one") / pl.col("scale"), pl.col("two") / pl.col("scale")
    known = (one_shift + two_shift).is_not_null()
    items = found.with_columns(
        counted=known, dropped=~known, d=(one_shift + two_shift) / 2, dd=one_shift * two_shift
    )
    rows = spread_rows(items, grouped(items))
    named = {"shift_spread": "rating_spread", "mean_square_shift": "rating_mean_square"}
    return rows.filter(pl.col("statistic").is_in([*named])).with_columns(
        pl.col("statistic").cast(pl.String).replace(named)
    )


def _criteria(effects: pl.DataFrame) -> pl.DataFrame:
    """Return the shift of each criterion, and the test that all are equal."""
    parts = effects.filter(pl.col("subgroup") != "")
    if parts.is_empty():
        return Estimates.empty()
    alike = [*CELL, "sample"]
    effect = pl.col("shift") / pl.col("scale")
    items = valued(parts, effect)
    shifts = _unclipped("criterion_shift", items)
    rated_by_all = pl.col("num").is_not_null().all().over(alike)
    centred = pl.when(rated_by_all).then(pl.col("num") - pl.col("num").mean().over(alike))
    apart = _unclipped("criterion_spread", valued(items, centred))
    adjusted = [
        some.with_columns(p_value=holm(some["p_value"]))
        for some in apart.partition_by([k for k in PART if k != "subgroup"])
    ]
    most = (
        pl.concat(adjusted)
        .with_columns(pl.col("estimate").abs())
        .sort("p_value", nulls_last=True)
        .unique([k for k in PART if k != "subgroup"], keep="first", maintain_order=True)
        .with_columns(
            subgroup=pl.lit(""),
            **dict.fromkeys(("low", "high", *BOOT, "standard_error", "level"), NOTHING),
            method=pl.lit("smallest of paired t tests of the criteria, Holm"),
        )
    )
    return pl.concat([shifts, most])


def _unclipped(name: str, items: pl.DataFrame) -> pl.DataFrame:
    """Return means by cluster linearisation of differences that may be beyond 1."""
    cells = summed(items.with_columns(x="num"), ("x",))
    return linearised(name, cells, partial(mean_of, "x", EMPTY))
