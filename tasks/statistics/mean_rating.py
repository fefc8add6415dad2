"""Mean rating and pass rate of unperturbed answers."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.results import Estimates
from tasks.counting.cells import weighted_shares
from tasks.pointwise.rated import control_things, in_points, on_scale
from tasks.statistics import statistic


@statistic(
    source="methods.md, sections 3 and 6 (pointwise judges)",
    gives=("mean_rating", "pass_rate"),
    family="pointwise",
    unit="points",
    rows={"pass_rate": {"unit": "share"}},
)
def mean_rating(ratings: DataFrame[Ratings]) -> DataFrame[Estimates]:
    """Measure the mean rating and the pass rate of unperturbed answers.

    ``mean_rating = mean_i y(i)``, y the mean of the readable repeats of an answer; ``pass_rate``
    the same of passes (1) and fails (0), or of chosen labels (1) among offered ones. The whole of
    a rubric is the mean of its criteria by their weights, each criterion is a subgroup.

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
    Unreadable ratings are dropped, never fails. If the scale is not declared, its ends are the
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
    found = control_things(ratings)
    if found.is_empty():
        return Estimates.empty()
    graded = _counted(found.filter("graded"), "score").with_columns(num=on_scale("score"))
    passed = found.filter(pl.col("passed").is_not_null().any().over("judge", "prompt", "subgroup"))
    rows = [
        in_points(weighted_shares("mean_rating", graded), graded, shift=False),
        weighted_shares("pass_rate", _counted(passed, "passed")),
    ]
    return Estimates.draft(pl.concat(rows))


def _counted(found: pl.DataFrame, value: str) -> pl.DataFrame:
    known = pl.col(value).is_not_null()
    return found.with_columns(counted=known, dropped=~known, num=pl.col(value), den=pl.lit(1.0))
