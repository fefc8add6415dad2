"""Test-retest reliability: how far repeated ratings of one answer differ."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from tasks.counting.cells import weighted_shares
from tasks.inference.cluster_sums import Sums
from tasks.inference.delta_method import Linear, linearised, summed
from tasks.inference.linearised_errors import ROUNDING, over
from tasks.pointwise.rated_items import control_things
from tasks.statistics import Rows, statistic

SUMS = ("k", "kk", "ky", "kyy", "within")
ONCE = "no answer has two valid ratings"
ALIKE = "all ratings are equal: no variance to divide"
STEP = 1e-6


@statistic(
    source="methods.md, section 6 (pointwise judges); arXiv:2406.07791, section 3",
    gives=("within_item_variance", "rating_icc", "retest_flips"),
    family="pointwise",
    rows={
        "within_item_variance": {"unit": "squared points"},
        "rating_icc": {"unit": "coefficient"},
    },
    missing={"retest_flips": ONCE},
)
def rating_retest(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how far a judge repeats its ratings of the same unperturbed answers.

    With k_i ratings y_ij of answer i: ``within_item_variance = sum_ij (y_ij - y_i)^2 / sum_i (k_i -
    1)``. ``rating_icc`` is the intraclass correlation of a single rating, one-way:
    ``(MSB - MSW) / (MSB + (k_0 - 1) MSW)``. ``retest_flips = mean_i 2 p_i (1 - p_i) k_i / (k_i -
    1)`` is the chance that two ratings of an answer differ in passing.

    Parameters
    ----------
    ratings
        One row per rating; repeats of control and of replicates count alike.

    Returns
    -------
    Estimates
        ``within_item_variance`` in squared points and ``rating_icc`` by the delta method, within
        their ranges; ``retest_flips`` by cluster-adjusted Wilson. n counts answers with two
        valid ratings or more; without any there are no rows.

    Notes
    -----
    ``k_0 = (K - sum k_i^2 / K) / (n - 1)`` with K ratings of n answers. The correlation depends on
    how different the answers are. It is null if all ratings are equal. A judge at temperature 0
    that always repeats itself has variance 0 and no interval.

    References
    ----------
    Shrout and Fleiss (1979), Psychol. Bull. 86, 420-428, ICC(1). methods.md, sections 3 and 6.

    Examples
    --------
    Grades 4, 6 and 8, 8: within variance (2 + 0) / 2 = 1. MSB = 2 (1.5^2 + 1.5^2) = 9, MSW = 1,
    ICC = 8 / 10 = .8. Passing at 5, the first answer flips surely: (1 + 0) / 2.
    """
    if not (ratings["repeat"].max() or (ratings["arm"] == "replicate").any()):
        return []
    found = control_things(ratings, repeats=True)
    if found.is_empty():
        return []
    twice = pl.col("readable") > 1
    found = found.filter(twice.any().over("dataset", "judge", "prompt", "wave", "subgroup"))
    if found.is_empty():
        return []
    k, y = pl.col("readable").cast(pl.Float64), pl.col("score")
    # The difference of squares is 0 up to rounding for equal ratings.
    within = (k * (pl.col("square") - y**2)).clip(lower_bound=0.0)
    within = pl.when(within < 1e-9).then(0.0).otherwise(within)
    items = found.with_columns(
        counted=twice, dropped=~twice, k=k, kk=k**2, ky=k * y, kyy=k * y**2, within=within
    )
    cells = summed(items, SUMS)
    graded = summed(items.filter("graded"), ("k", "within")) if found["graded"].any() else None
    p = pl.col("passed")
    passing = items.filter(pl.col("passed").is_not_null().any().over("judge", "prompt", "subgroup"))
    flips = passing.with_columns(num=2 * p * (1 - p) * k / (k - 1), den=pl.lit(1.0))
    rows = [
        _at_least(linearised("rating_icc", cells, _icc), -1.0, 1.0),
        weighted_shares("retest_flips", flips.with_columns(num=pl.col("num").fill_nan(0.0))),
    ]
    if graded is not None:
        rows.append(_at_least(linearised("within_item_variance", graded, _within), 0.0, None))
    return rows


def _at_least(rows: pl.DataFrame, low: float, high: float | None) -> pl.DataFrame:
    return rows.with_columns(pl.col("low", "high").clip(low, high))


def _within(sums: dict[str, Sums]) -> Linear:
    free = sums["k"] - sums["n"]
    value = over(sums["within"], free)
    slopes = {"within": over(1.0, free), "k": over(-value, free)}
    return Linear(value, _finite(slopes), np.full(value.shape, ONCE))


def _finite(slopes: dict[str, Sums]) -> dict[str, Sums]:
    return {name: np.nan_to_num(values) for name, values in slopes.items()}


def _icc(sums: dict[str, Sums]) -> Linear:
    estimate = _correlation(sums, sums["n"] - 1)
    slopes = {}
    for name in ("k", "ky", "kyy", "within"):
        step = STEP * np.maximum(np.abs(sums[name]), 1.0)
        ends = [
            _correlation(sums | {name: sums[name] + way * step}, sums["n"], simple=True)
            for way in (1, -1)
        ]
        slopes[name] = (ends[0] - ends[1]) / (2 * step)
    why = np.where(sums["n"] > 1, ALIKE, ONCE)
    return Linear(estimate, _finite(slopes), why)


def _correlation(sums: dict[str, Sums], fewer: Sums, *, simple: bool = False) -> Sums:
    """Return ICC(1); ``simple`` leaves out terms of order 1 / n, for the derivatives."""
    k, n = sums["k"], sums["n"]
    between = over(sums["kyy"] - over(sums["ky"] ** 2, k), fewer)
    within = over(sums["within"], k - n)
    per_item = over(k, n) if simple else over(k - over(sums["kk"], k), fewer)
    whole = between + (per_item - 1) * within
    return over(between - within, np.where(np.abs(whole) > ROUNDING, whole, 0.0))
