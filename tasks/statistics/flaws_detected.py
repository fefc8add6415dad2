"""Share of flaws that lower a rating: the pointwise counterpart of detection power."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.results import Estimates
from tasks.counting.cells import ratios
from tasks.counting.primary_endpoint import base_value
from tasks.inference.cluster_sums import grouped
from tasks.pointwise.shifts import passes, rating_shifts, with_score_interval
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, sections 2 and 16 (as detection power)",
    family="pointwise",
    null=0.0,
    floor="sham if asked",
    needs=("perturbation",),
    missing="no sample has a rating above the lowest without the flaw",
)
def flaws_detected(ratings: DataFrame[Ratings]) -> Rows:
    """Measure the share of flaws for which a judge lowers its rating, beyond noise.

    Over samples whose rating without the flaw is above the lowest,
    ``D = (#[y_exp < y_base] - #[y_exp > y_base]) / #[y_base > lowest]``: noise moves ratings up as
    often as down and cancels. For pass and fail it is the share of passes that the flaw removes,
    ``1 - sum p_exp / sum p_base``.

    Parameters
    ----------
    ratings
        One row per rating; only detract kinds are used. The base is the sham, or the control where
        the primary endpoint is over the control.

    Returns
    -------
    Estimates
        At most 1 (every flaw lowers the rating), 0 for a judge that sees none, below 0 for one that
        rewards them. By cluster linearisation, with Tango's interval at the effective sample size.

    Notes
    -----
    A judge that notices a flaw, but by chance rates the answer higher, is not counted as noticing
    it, so D is a lower bound of what it detects. Ratings at the lowest grade cannot fall.

    References
    ----------
    methods.md, sections 2, 6 and 16. Tango (1998), Stat. Med. 17, 891-908.

    Examples
    --------
    Sham grades 8, 7, 5 and 1 on a scale from 1; with the flaw 5, 7, 6 and 1: one lower, one higher,
    of three that could fall: D = 0. Sham passes 1, 1, 1, 0 and with the flaw 0, 0, 1, 0: 2/3.
    """
    shifts = rating_shifts(ratings)
    shifts = shifts if shifts.is_empty() else shifts.filter(pl.col("kind") == "detract")
    if shifts.is_empty():
        return []
    passed = passes(shifts.filter(~pl.col("graded")))
    return [_detected(some, by) for some, by in ((shifts.filter("graded"), True), (passed, False))]


def _detected(shifts: pl.DataFrame, by_sign: bool) -> DataFrame[Estimates]:  # noqa: FBT001
    if shifts.is_empty():
        return Estimates.empty()
    groups = grouped(shifts)
    base = base_value(shifts, groups)
    fall = base - pl.col("experimental_score")
    known = fall.is_not_null()
    if by_sign:
        could, num = (base > 0).cast(pl.Float64), fall.sign()
    else:
        could, num = base, fall
    items = shifts.with_columns(counted=known, dropped=~known, num=num, den=could)
    rows = ratios("flaws_detected", items, groups)
    return Estimates.draft(with_score_interval(rows, items, pl.col("num"), pl.col("den")))
