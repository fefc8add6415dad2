"""Bias of a judge's mean rating against people's."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from tasks.counting.cells import differences
from tasks.inference.delta_method import linearised, summed
from tasks.pointwise.rated_items import (
    OFF_SCALE,
    control_things,
    differences_in_unit,
    is_on_scale,
    on_scale,
)
from tasks.pointwise.shifts import with_score_interval
from tasks.statistics import Rows, statistic
from tasks.statistics.rating_shift import SUMS, in_deviations


@statistic(
    source="methods.md, section 6 (pointwise judges)",
    family="pointwise",
    unit="points",
    null=0.0,
    rows={"rating_bias_sd": {"unit": "sd"}},
    needs=("human_value",),
    missing={"rating_bias": OFF_SCALE},
)
def rating_bias(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how much higher a judge rates unperturbed answers than people do.

    ``rating_bias = mean_i (y(i) - h(i))``, h people's mean grade of the answer; for pass and fail
    the difference of pass rates. ``rating_bias_sd`` divides the bias of grades by the standard
    deviation (divisor n) of the judge's single ratings of these answers.

    Parameters
    ----------
    ratings
        One row per rating; only answers with ``human_value`` are used.

    Returns
    -------
    Estimates
        In points by cluster linearisation, with a p-value against 0; for pass and fail a share with
        Tango's interval and p-value; Newcombe's interval if judge and people differ equally
        everywhere. In standard deviations by the delta method, null if all grades are equal.

    Notes
    -----
    A grade of people beyond the judge's scale is on another scale: the answer is dropped. If the
    judge says pass or fail and people gave grades other than 1 and 0, nothing is compared. A
    calibration (``voirdire calibrate``) tells more: agreement, correlation, disagreements.

    References
    ----------
    methods.md, sections 3 and 6.

    Examples
    --------
    The judge's grades 7, 8 and 4, people's 6, 8 and 3: 2/3; the judge's standard deviation is
    1.700, so .392.
    """
    if not ratings["human_value"].is_not_null().any():
        return []
    found = control_things(ratings)
    if found.is_empty():
        return []
    people = pl.col("human_value")
    inside = is_on_scale("human_value")
    # Grades of people are not verdicts, even where they are 1.
    verdicts = people.is_null() | people.is_in([0.0, 1.0])
    same_form = pl.col("graded") | verdicts.all().over("dataset", "judge", "prompt", "subgroup")
    rated = inside.fill_null(value=False).any().over("dataset", "judge", "subgroup")
    found = found.filter(rated & same_form)
    if found.is_empty():
        return []
    theirs = pl.when(inside).then(on_scale("human_value"))
    shifted = differences("rating_bias", found, on_scale("score"), theirs)
    passes = found.filter(~pl.col("graded"))
    rows = with_score_interval(shifted, passes, on_scale("score") - theirs)
    apart = pl.col("score") - pl.when(inside).then(people)
    known = apart.is_not_null()
    terms = {"d": apart, "y": pl.col("score"), "q": pl.col("square")}
    items = found.filter("graded").with_columns(**terms, counted=known, dropped=~known)
    standardised = linearised("rating_bias_sd", summed(items, SUMS), in_deviations)
    return [differences_in_unit(rows, found), standardised]
