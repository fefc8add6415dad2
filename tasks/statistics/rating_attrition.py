"""Invalid ratings by arm."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.results import Estimates
from tasks.counting.cells import differences, portions
from tasks.pointwise.shifts import ARMS, rating_shifts
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 16 (missing votes)",
    gives=("rating_lost_over_control", "rating_lost_over_sham", "rating_lost_rate"),
    family="validity",
    rows={"rating_lost_over_control": {"null": 0.0}, "rating_lost_over_sham": {"null": 0.0}},
    needs=("perturbation",),
    missing={
        "rating_lost_over_control": "no sample was rated in control and in the experimental arm",
        "rating_lost_over_sham": "no sample was rated in the sham and in the experimental arm",
        "rating_lost_rate": "no rating was asked in this arm",
    },
)
def rating_attrition(ratings: DataFrame[Ratings]) -> Rows:
    """Compare the share of invalid ratings between the arms.

    ``rating_lost_over_control`` and ``rating_lost_over_sham`` are the mean over samples of the lost
    share of experimental ratings minus the lost share in the other arm; ``rating_lost_rate`` is the
    share in each arm.

    Parameters
    ----------
    ratings
        One row per rating. A rubric counts as a whole, and is lost if one criterion is invalid.

    Returns
    -------
    Estimates
        Differences in [-1, 1] by cluster linearisation, above 0 if perturbed answers lose more;
        one row of the rate per arm (``subgroup``), n ratings, by cluster-adjusted Wilson.

    Notes
    -----
    If arms lose different shares, those that are left can differ without any bias; a finding must
    then be the same whatever the lost ratings would have been.

    References
    ----------
    methods.md, sections 1, 3 and 16.

    Examples
    --------
    Two samples with two ratings each: experimental loses 1 and 0, control none: (1/2 + 0) / 2.
    """
    shifts = rating_shifts(ratings)
    shifts = shifts if shifts.is_empty() else shifts.filter(subgroup="")
    if shifts.is_empty():
        return []
    compared = [_compared(shifts, base) for base in ("control", "sham")]
    return [*compared, *(_rate(shifts, arm) for arm in ARMS)]


def _lost(arm: str) -> pl.Expr:
    return 1 - pl.col(f"{arm}_readable") / pl.col(f"{arm}_votes")


def _compared(shifts: pl.DataFrame, base: str) -> DataFrame[Estimates]:
    some = shifts.filter("has_sham") if base == "sham" else shifts
    return differences(f"rating_lost_over_{base}", some, _lost("experimental"), _lost(base))


def _rate(shifts: pl.DataFrame, arm: str) -> pl.DataFrame:
    asked = shifts.filter(pl.col(f"{arm}_votes").is_not_null())
    items = asked.with_columns(
        num=pl.col(f"{arm}_votes") - pl.col(f"{arm}_readable"),
        den=pl.col(f"{arm}_votes"),
        dropped=pl.lit(0),
    )
    return portions("rating_lost_rate", items).with_columns(subgroup=pl.lit(arm))
