"""Worst cases of invalid ratings (methods, section 16: missing votes)."""

import polars as pl

from schemas.keys import CELL
from schemas.results import Estimates
from tasks.inference.bootstrap import formulas_only
from tasks.kit.defaults import limits
from tasks.pointwise.shifts import rating_shifts
from tasks.statistics import STATISTICS

RATED_WORST = {
    "anchor": "invalid experimental ratings the lowest, others the highest",
    "target": "invalid experimental ratings the highest, others the lowest",
}
"""Side that an invalid experimental rating counts for -> ``subgroup`` of that worst case."""

NEEDED = ("rating_shift", "flaws_detected")


def rating_worst_cases(ratings: pl.DataFrame) -> pl.DataFrame:
    """Recompute the shifts of ratings for both worst cases of invalid ratings.

    Only for cells in which an arm lost more than ``most_lost`` of its ratings, or the experimental
    arm differs from another by half of ``minimum_lost``; and only on a declared scale, as the ends
    are unknown otherwise. One row per statistic, cell and worst case, named in ``subgroup``.
    """
    if ratings.is_empty() or not ratings["invalid"].is_not_null().any():
        return Estimates.empty()
    shifts = rating_shifts(ratings)
    cells = _with_many_lost(shifts) if not shifts.is_empty() else shifts
    if cells.is_empty():
        return Estimates.empty()
    planted = ratings.join(
        cells, on=["dataset", "judge", "prompt", "wave", "perturbation"], how="semi"
    )
    natural = ratings.filter(pl.col("perturbation").is_null()).join(
        cells, on=["dataset", "judge", "prompt", "wave"], how="semi"
    )
    kept = pl.concat([planted, natural])
    found = []
    with formulas_only():
        for side, name in RATED_WORST.items():
            filled = _filled(kept, experimental_high=side == "target")
            rows = pl.concat(STATISTICS[each].draft(ratings=filled) for each in NEEDED)
            found.append(rows.filter(subgroup="").with_columns(subgroup=pl.lit(name)))
    return pl.concat(found)


def _filled(ratings: pl.DataFrame, *, experimental_high: bool) -> pl.DataFrame:
    binary = (pl.col("kind") == "label") & pl.col("value").is_in([0.0, 1.0]).fill_null(value=True)
    passing = binary.all().over("dataset", "prompt", "criterion")
    ends = {
        "highest": pl.when(passing).then(1.0).otherwise("highest"),
        "lowest": pl.when(passing).then(0.0).otherwise("lowest"),
    }
    high = (pl.col("arm") == "experimental") == experimental_high
    end = pl.when(high).then(ends["highest"]).otherwise(ends["lowest"])
    lost = pl.col("value").is_null() & pl.col("invalid").is_not_null()
    return ratings.with_columns(value=pl.when(lost).then(end).otherwise("value"))


def _with_many_lost(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return the cells whose findings might depend on invalid ratings."""
    arms = ("experimental", "sham", "control")
    shares = {
        arm: 1 - pl.col(f"{arm}_readable").sum() / pl.col(f"{arm}_votes").sum().replace(0, None)
        for arm in arms
    }
    # The test averages over samples, this pools all ratings: half the minimum is a safe screen.
    screen, most = limits().minimum_lost / 2, limits().most_lost
    differences = [(shares["experimental"] - shares[arm]).abs() >= screen for arm in arms[1:]]
    many = pl.any_horizontal(*(share > most for share in shares.values()), *differences)
    return (
        shifts.filter(subgroup="")
        .group_by(CELL)
        .agg(many.fill_null(value=False).alias("many"))
        .filter("many")
        .select(CELL)
    )
