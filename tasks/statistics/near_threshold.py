"""Share of verdicts near the threshold between fail and pass."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from tasks.counting.cells import portions
from tasks.counting.missing_reasons import NO_RATING
from tasks.pointwise.rated_items import CONTROL, rated
from tasks.statistics import Rows, statistic

TENTH = 0.1


@statistic(
    source="methods.md, section 6 (pointwise judges)",
    family="pointwise",
    needs=("passes_at",),
    missing=NO_RATING,
)
def near_threshold(ratings: DataFrame[Ratings]) -> Rows:
    """Measure the share of grades that a small change would move across the threshold.

    ``near_threshold = #[t - m <= y < t + m] / n`` over valid control grades, t the grade that
    passes; the margin m is one grade if all grades are whole, else a tenth of the scale.

    Parameters
    ----------
    ratings
        One row per rating; only grades with a threshold (``passes_at``) are used.

    Returns
    -------
    Estimates
        One row per judge and criterion by cluster-adjusted Wilson; n the valid ratings.

    Notes
    -----
    Where many verdicts are near the threshold, a small bias or noise changes many of them.

    References
    ----------
    methods.md, sections 3 and 6.

    Examples
    --------
    Grades 3, 6, 7 and 9, passing at 7: 6 and 7 are near, 2/4.
    """
    rows = rated(ratings.filter(CONTROL))
    if not rows.is_empty():
        rows = rows.filter("graded", pl.col("passes_at").is_not_null())
    if rows.is_empty():
        return []
    value, threshold = pl.col("value"), pl.col("passes_at")
    whole = (value == value.round()).all().over("dataset", "judge", "prompt", "subgroup")
    tenth = TENTH * (pl.col("highest") - pl.col("lowest"))
    margin = pl.when(whole).then(1.0).otherwise(tenth)
    near = (value >= threshold - margin) & (value < threshold + margin)
    items = rows.with_columns(
        mode=pl.lit("any"),
        votes=pl.lit(1),
        num=near.fill_null(value=False).cast(pl.Int64),
        den=value.is_not_null().cast(pl.Int64),
        dropped=value.is_null().cast(pl.Int64),
    )
    return portions("near_threshold", items)
