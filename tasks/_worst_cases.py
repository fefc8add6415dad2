"""What findings rest on, measured again with unreadable votes at their worst (section 16)."""

import polars as pl

from schemas.results import Estimates
from tasks.conclude import BESIDE, WORST
from tasks.defaults import LOST_MINIMUM, MOST_LOST
from tasks.statistics import STATISTICS
from tasks.statistics._arms import unreadable
from tasks.statistics._bootstrap import formulas_only
from tasks.statistics._filled import opposed
from tasks.statistics._verdicts import shifts_of, verdicts_of

JUDGE = ("dataset", "judge", "prompt", "wave")
CELL = (*JUDGE, "perturbation")


def worst_cases(tallies: pl.DataFrame, shifts: pl.DataFrame) -> pl.DataFrame:
    """Measure what findings rest on twice with all unreadable votes filled in, where many are.

    Only cells in which an arm lost more than ``MOST_LOST`` of its votes, or the experimental arm
    ``LOST_MINIMUM`` more or fewer than another: a word must then be the same in both worst cases
    (``tasks.conclude``). One row per statistic, cell and worst case, which ``subgroup`` names;
    no bootstrap and no permutation.
    """
    cells = _with_many_lost(tallies)
    if shifts.is_empty() or cells.is_empty():
        return Estimates.empty()
    control = pl.col("arm") == "control"
    kept = pl.concat(
        [
            tallies.filter(~control).join(cells, on=CELL, how="semi", maintain_order="left"),
            tallies.filter(control).join(cells, on=JUDGE, how="semi", maintain_order="left"),
        ]
    )
    found = []
    needed = {"mps_sham", *BESIDE} - {"e_value"}
    statistics = [entry for entry in STATISTICS.values() if needed & {*entry.gives}]
    with formulas_only():
        for side, name in WORST.items():
            filled = opposed(kept, side)
            verdicts = verdicts_of(filled, shifts["mode"][0])
            frames = {"tallies": filled, "shifts": shifts_of(verdicts)}
            rows = pl.concat(statistic.draft(**frames) for statistic in statistics)
            found.append(rows.filter(subgroup="").with_columns(subgroup=pl.lit(name)))
    return pl.concat(found)


def _with_many_lost(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the cells whose words might depend on unreadable votes."""
    arms = ("experimental", "sham", "control")
    shares = {
        arm: pl.col(f"{arm}_lost").sum() / pl.col(f"{arm}_voted").sum().replace(0, None)
        for arm in arms
    }
    # The test takes the mean over samples, this all votes together: half is wide enough.
    differences = [
        (shares["experimental"] - shares[arm]).abs() >= LOST_MINIMUM / 2 for arm in arms[1:]
    ]
    many = pl.any_horizontal(*(share > MOST_LOST for share in shares.values()), *differences)
    return (
        unreadable(tallies)
        .group_by(CELL)
        .agg(many.fill_null(value=False).alias("many"))
        .filter("many")
        .select(CELL)
    )
