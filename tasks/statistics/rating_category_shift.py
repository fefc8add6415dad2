"""Rating shift by category of questions."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from tasks.counting.arms import mean_shift
from tasks.counting.cells import question_categories
from tasks.counting.primary_endpoint import base_value
from tasks.inference.cluster_sums import grouped
from tasks.pointwise.rated_items import differences_in_unit
from tasks.pointwise.shifts import rating_shifts, with_score_interval
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 16 (pointwise endpoint)",
    family="pointwise",
    unit="points",
    null=0.0,
    needs=("category", "perturbation"),
)
def rating_category_shift(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how far a perturbation moves ratings, or passes, by category of questions.

    ``mean_i (y_exp(i) - y_base(i))`` over the samples of a category. The base is the one of the
    primary endpoint: the sham, or the control where there is none.

    Parameters
    ----------
    ratings
        One row per rating; only whole ratings of targets count.

    Returns
    -------
    Estimates
        One row per cell and category (``subgroup``), in points, or in shares for pass and fail, by
        cluster linearisation on the scale from 0 to 1; shares with Tango's interval and p-value.

    Notes
    -----
    There are no rows if no question has a category. A question whose samples name several has none.
    The family of all categories has p-values adjusted together (``mart.categories``).

    References
    ----------
    methods.md, sections 3 and 16.

    Examples
    --------
    Control grades 4, 6 of sums and 5 of words, experimental 5, 8 and 5: sums 1.5, words 0.
    """
    shifts = rating_shifts(ratings)
    known = question_categories(ratings)
    if shifts.is_empty() or known.is_empty():
        return []
    whole = shifts.filter(pl.col("subgroup") == "")
    groups = grouped(whole)
    parts = (
        whole.with_columns(base_score=base_value(whole, groups))
        .join(known, on=["dataset", "cluster"], how="inner", maintain_order="left")
        .with_columns(subgroup=pl.col("category").cast(pl.String))
    )
    rows = mean_shift("rating_category_shift", parts, "base_score")
    moved = pl.col("experimental_score") - pl.col("base_score")
    passes = parts.filter(~pl.col("graded"))
    return differences_in_unit(with_score_interval(rows, passes, moved), parts)
