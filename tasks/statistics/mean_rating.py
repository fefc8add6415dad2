"""Mean rating and pass rate of unperturbed answers."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from tasks.counting.cells import means
from tasks.counting.missing_reasons import NO_RATING
from tasks.pointwise.rated_items import control_things, in_points, on_scale
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, sections 3 and 6 (pointwise judges)",
    gives=("mean_rating", "pass_rate"),
    family="pointwise",
    unit="points",
    rows={"pass_rate": {"unit": "share"}},
    missing=NO_RATING,
)
def mean_rating(ratings: DataFrame[Ratings]) -> Rows:
    """Measure the mean rating and the pass rate of unperturbed answers.

    ``mean_rating = mean_i y(i)``, y the mean of the valid repeats of an answer; ``pass_rate``
    the same of passes (1) and fails (0), or of chosen labels (1) among offered ones. The whole of
    a rubric is the mean of its criteria by their weights, each criterion is a subgroup. Where the
    scales of criteria differ, each counts as a share of its scale, and the whole is from 0 to 1.

    Parameters
    ----------
    ratings
        One row per rating; a person's ratings are measured like a judge's.

    Returns
    -------
    Estimates
        ``mean_rating`` in points, for grades; ``pass_rate``, for pass and fail, labels, and grades
        with a threshold. Both with the cluster-adjusted Wilson interval, for grades on their scale.

    Notes
    -----
    Invalid ratings are dropped, never fails. If the scale is not declared, its ends are the
    lowest and the highest grade of its prompt in the dataset. A whole needs all criteria of the
    ballot.

    References
    ----------
    methods.md, sections 3 and 6. Wilson (1927), JASA 22, 209-212.

    Examples
    --------
    Grades 4 and 6 of one answer and 9 of another: (5 + 9) / 2 = 7. With the threshold 6 these are
    passes of 1/2 and 1: pass rate 3/4.
    """
    return means_and_pass_rates(control_things(ratings), "mean_rating", "pass_rate")


def means_and_pass_rates(found: pl.DataFrame, mean: str, pass_rate: str) -> Rows:
    """Return the rows ``mean``, in points, and ``pass_rate`` of rated answers.

    They come from :func:`tasks.pointwise.rated_items.things`.
    """
    if found.is_empty():
        return []
    graded = found.filter("graded")
    passed = found.filter(pl.col("passed").is_not_null().any().over("judge", "prompt", "subgroup"))
    return [
        in_points(means(mean, graded, on_scale("score")), graded, shift=False),
        means(pass_rate, passed, pl.col("passed")),
    ]
