"""Worst cases of invalid votes and ratings (methods, section 16: missing votes)."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.conclusions.rules import SUPPORTING, WORST
from tasks.counting.arms import arms_beside
from tasks.counting.verdicts import match_groups, opposed, tally_votes
from tasks.inference.bootstrap import formulas_only
from tasks.kit.defaults import limits
from tasks.pointwise.shifts import rating_shifts
from tasks.statistics import STATISTICS, Statistic

CELL = (*JUDGE, "perturbation")
RATED_WORST = {
    "anchor": "invalid experimental ratings the lowest, others the highest",
    "target": "invalid experimental ratings the highest, others the lowest",
}
"""Side that an invalid experimental rating counts for -> ``subgroup`` of that worst case."""


def worst_cases(tallies: pl.DataFrame, shifts: pl.DataFrame) -> pl.DataFrame:
    """Recompute the statistics behind findings for both worst cases of invalid votes.

    Only for cells in which an arm lost more than ``most_lost`` of its votes, or the experimental
    arm differs from another by half of ``minimum_lost``: a finding must then be the same in both
    worst cases (``tasks.conclude``). One row per statistic, cell and worst case, named in
    ``subgroup``; without bootstrap and permutation.
    """
    cells = _with_many_lost(
        arms_beside(tallies),
        lambda arm: pl.col(f"{arm}_lost").sum() / pl.col(f"{arm}_voted").sum().replace(0, None),
    )
    if shifts.is_empty() or cells.is_empty():
        return Estimates.empty()
    kept = _kept(tallies, cells, pl.col("arm") == "control")

    def frames(side: str) -> dict[str, pl.DataFrame]:
        filled = opposed(kept, side)
        verdicts = tally_votes(filled, shifts["mode"][0])
        return {"tallies": filled, "shifts": match_groups(verdicts)}

    needed = {"mps_sham", *SUPPORTING} - {"e_value"}
    statistics = [entry for entry in STATISTICS.values() if needed & {*entry.gives}]
    return _of_sides(WORST, frames, statistics)


def rating_worst_cases(ratings: pl.DataFrame) -> pl.DataFrame:
    """Recompute the shifts of ratings for both worst cases of invalid ratings.

    For the same cells as :func:`worst_cases`, and only on a declared scale, as the ends are unknown
    otherwise.
    """
    if ratings.is_empty() or not ratings["invalid"].is_not_null().any():
        return Estimates.empty()
    shifts = rating_shifts(ratings)
    if shifts.is_empty():
        return Estimates.empty()
    cells = _with_many_lost(
        shifts.filter(subgroup=""),
        lambda arm: (
            1 - pl.col(f"{arm}_readable").sum() / pl.col(f"{arm}_votes").sum().replace(0, None)
        ),
    )
    if cells.is_empty():
        return Estimates.empty()
    kept = _kept(ratings, cells, pl.col("perturbation").is_null())
    return _of_sides(
        RATED_WORST,
        lambda side: {"ratings": _filled(kept, experimental_high=side == "target")},
        [STATISTICS[name] for name in ("rating_shift", "flaws_detected")],
    )


def _with_many_lost(arms: pl.DataFrame, share: Callable[[str], pl.Expr]) -> pl.DataFrame:
    """Return the cells whose findings might depend on lost votes; ``share`` gives an arm's."""
    experimental, *others = (share(arm) for arm in ("experimental", "sham", "control"))
    # The test averages over samples, this pools all votes: half the minimum is a safe screen.
    screen, most = limits().minimum_lost / 2, limits().most_lost
    many = pl.any_horizontal(
        experimental > most,
        *(other > most for other in others),
        *((experimental - other).abs() >= screen for other in others),
    )
    return (
        arms.group_by(CELL)
        .agg(many.fill_null(value=False).alias("many"))
        .filter("many")
        .select(CELL)
    )


def _kept(frame: pl.DataFrame, cells: pl.DataFrame, natural: pl.Expr) -> pl.DataFrame:
    """Return the perturbed rows of the cells, and the ``natural`` ones, which have no cell."""
    return pl.concat(
        [
            frame.filter(~natural).join(cells, on=CELL, how="semi", maintain_order="left"),
            frame.filter(natural).join(cells, on=JUDGE, how="semi", maintain_order="left"),
        ]
    )


def _of_sides(
    names: Mapping[str, str],
    frames: Callable[[str], dict[str, pl.DataFrame]],
    statistics: Sequence[Statistic],
) -> pl.DataFrame:
    """Compute statistics from the frames of each worst case, by formulas alone."""
    found = []
    with formulas_only():
        for side, name in names.items():
            filled = frames(side)
            rows = pl.concat(statistic.draft(**filled) for statistic in statistics)
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
