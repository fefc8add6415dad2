"""Bias of a judge's mean rating against people's."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.results import Estimates
from tasks.counting.cells import ratios
from tasks.pointwise.rated import control_things, in_points, in_unit, on_scale
from tasks.statistics import statistic


@statistic(
    source="methods.md, section 6 (pointwise judges)",
    family="pointwise",
    unit="points",
    null=0.0,
)
def rating_bias(ratings: DataFrame[Ratings]) -> DataFrame[Estimates]:
    """Measure how much higher a judge rates unperturbed answers than people do.

    ``rating_bias = mean_i (y(i) - h(i))``, h people's mean grade of the answer; for pass and fail
    the difference of pass rates.

    Parameters
    ----------
    ratings
        One row per rating; only answers with ``human_value`` are used.

    Returns
    -------
    Estimates
        In points (for pass and fail a share) by cluster linearisation, with a p-value against 0;
        Newcombe's interval if judge and people differ equally everywhere.

    Notes
    -----
    A grade of people beyond the judge's scale is on another scale: the answer is dropped. A
    calibration (``voirdire calibrate``) tells more: agreement, correlation, disagreements.

    References
    ----------
    methods.md, sections 3 and 6.

    Examples
    --------
    The judge's grades 7, 8 and 4, people's 6, 8 and 3: 2/3.
    """
    if not ratings["human_value"].is_not_null().any():
        return Estimates.empty()
    found = control_things(ratings)
    if found.is_empty():
        return Estimates.empty()
    people = pl.col("human_value")
    inside = people.is_between("lowest", "highest")
    found = found.filter(inside.fill_null(value=False).any().over("dataset", "judge", "subgroup"))
    if found.is_empty():
        return Estimates.empty()
    known = (pl.col("score").is_not_null() & inside).fill_null(value=False)
    items = found.with_columns(
        counted=known,
        dropped=~known,
        den=pl.lit(1.0),
        minuend=on_scale("score"),
        subtrahend=on_scale("human_value"),
    ).with_columns(num=pl.col("minuend") - pl.col("subtrahend"))
    rows = in_points(ratios("rating_bias", items), items, shift=True)
    return Estimates.draft(in_unit(rows, items))
