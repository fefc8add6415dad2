"""How far a perturbation moves ratings and pass rates: the pointwise primary endpoint."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.results import Estimates
from tasks.counting.arms import mean_shift
from tasks.counting.cells import means
from tasks.inference.cluster_sums import PART, Sums, join_cells
from tasks.inference.delta_method import Linear, linearised, summed
from tasks.inference.linearised_errors import over
from tasks.pointwise.rated_items import in_points
from tasks.pointwise.shifts import passes, rating_shifts, with_score_interval
from tasks.statistics import Rows, statistic

COMPARED = (
    ("{}_shift", "experimental", "control"),
    ("{}_shift_sham", "experimental", "sham"),
    ("{}_sham_shift", "sham", "control"),
)
"""Row -> the arm and the base that it compares."""

SUMS = ("d", "y", "q")
CONSTANT = "the judge gives all control answers the same rating: no standard deviation"
UNMOVED = "the judge passes or fails every answer, changed or not: more answers cannot show a shift"
TINY = 1e-9
ENDS = ("low", "high", "p_value", "level")


@statistic(
    source="methods.md, sections 6 and 16 (pointwise endpoint)",
    family="pointwise",
    unit="points",
    null=0.0,
    rows={
        "rating_shift_sham": {"floor": "sham"},
        "rating_sham_shift": {},
        "rating_shift_sd": {"unit": "sd"},
        "rating_shift_sham_sd": {"unit": "sd", "floor": "sham"},
        "rating_sham_shift_sd": {"unit": "sd"},
        "pass_rate_shift": {"unit": "share"},
        "pass_rate_shift_sham": {"unit": "share", "floor": "sham"},
        "pass_rate_sham_shift": {"unit": "share"},
        "pass_flips": {"unit": "share", "null": None, "floor": "sham if asked"},
        "pass_flips_sham": {"unit": "share", "null": None},
    },
    needs=("perturbation",),
    missing={
        **dict.fromkeys(
            ("rating_shift", "pass_rate_shift", "pass_flips"),
            "no sample has valid ratings in control and in the experimental arm",
        ),
        **dict.fromkeys(
            ("rating_shift_sham", "pass_rate_shift_sham"),
            "no sample has valid ratings in the sham and in the experimental arm",
        ),
        **dict.fromkeys(
            ("rating_sham_shift", "pass_rate_sham_shift", "pass_flips_sham"),
            "no sample has valid ratings in control and in the sham",
        ),
    },
)
def rating_shift(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how far a perturbation moves the ratings of an answer, and its passes.

    ``rating_shift = mean_i (y_exp(i) - y_ctrl(i))``, ``rating_shift_sham`` the same over the sham,
    ``rating_sham_shift`` of the sham over the control; ``..._sd`` divides by the standard deviation
    (divisor n) of the judge's single ratings of the same answers in control, in which each answer
    counts once. ``pass_rate_shift``, ``..._sham`` and ``pass_rate_sham_shift`` are the same for
    passes. ``pass_flips = mean_i [p_e (1 - p_c) + p_c (1 - p_e)]`` is the chance that a rating in
    the experimental arm and one in control differ in passing; ``pass_flips_sham`` is this chance
    for the sham and control.

    Parameters
    ----------
    ratings
        One row per rating. Only targets count, in control as in the other arms.

    Returns
    -------
    Estimates
        Shifts in points by cluster linearisation on the scale from 0 to 1; in standard deviations
        by the delta method, which counts the error of the standard deviation too; shares by
        cluster linearisation, flips by cluster-adjusted Wilson. ``perturbation`` is the cell's, a
        criterion is a subgroup.

    Notes
    -----
    A sample without a valid rating in either arm is dropped. If every question shifts by the
    same amount the interval is Newcombe's, on the scale; in standard deviations it is that one
    divided by the standard deviation, which is null if all control ratings are equal. Pass-rate
    shifts have Tango's interval at the effective sample size, and the p-value of its test: where
    passes or fails are rare, the t interval is too narrow. A judge that passes every answer of both
    arms, or fails every one, has neither: nothing could move it. With one vote, ``pass_flips`` of a
    noisy judge is above 0 without any bias: compare it with the sham's.

    References
    ----------
    methods.md, sections 3, 6 and 16. Glass (1976), Educ. Res. 5, 3-8 (the control's deviation).
    Tango (1998), Stat. Med. 17, 891-908 (paired proportions).

    Examples
    --------
    Control grades 4, 6, 8 and experimental ones 5, 6, 10: shifts 1, 0 and 2, mean 1; the control's
    standard deviation is sqrt(8/3) = 1.633, so .612. Passing at 6: passes 0, 1, 1 and 0, 1, 1, so
    shift 0 and no flip.
    """
    shifts = rating_shifts(ratings)
    if shifts.is_empty():
        return []
    graded, passed = shifts.filter("graded"), passes(shifts)
    found = []
    for name, arm, base in COMPARED:
        asked = pl.col("has_sham") if "sham" in (arm, base) else pl.lit(value=True)
        points = _in_points(name.format("rating"), graded.filter(asked), arm, base)
        found += [
            points,
            _in_deviations(name.format("rating"), graded.filter(asked), points, arm, base),
            _passes(name.format("pass_rate"), passed.filter(asked), arm, base),
        ]
    flips = _flips("pass_flips", passed, "experimental")
    floor = _flips("pass_flips_sham", passed.filter("has_sham"), "sham")
    return [*found, flips, floor]


def _passes(name: str, passed: pl.DataFrame, arm: str, base: str) -> pl.DataFrame:
    """Return a shift of the pass rate; no interval or test of a judge that does not discriminate.

    Such a judge shifts by 0 whatever the perturbation does, so a narrow interval would be no
    evidence.
    """
    scores = (f"{arm}_score", f"{base}_score")
    compared = passed.drop_nulls(scores)
    shifted = mean_shift(name, passed, scores[1], arm=scores[0])
    rows = with_score_interval(shifted, compared, pl.col(scores[0]) - pl.col(scores[1]))
    constant = pl.max_horizontal(scores).max() == pl.min_horizontal(scores).min()
    return without_unmoved(rows, compared.group_by(PART).agg(unmoved=constant))


def without_unmoved(rows: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """Remove intervals and tests of the ``cells`` that are ``unmoved``: nothing could move them."""
    some = ~pl.col("unmoved").fill_null(value=False)
    return join_cells(rows, cells).with_columns(
        pl.when(some).then(pl.col(*ENDS, "standard_error", "df", "boot_low", "boot_high")),
        method=pl.when(some).then("method").otherwise(pl.lit("none")),
        reason=pl.when(some).then("reason").otherwise(pl.lit(UNMOVED)),
    )


def _in_points(name: str, shifts: pl.DataFrame, arm: str, base: str) -> pl.DataFrame:
    rows = mean_shift(name, shifts, f"{base}_score", arm=f"{arm}_score")
    return in_points(rows, shifts, shift=True)


def _in_deviations(
    name: str, shifts: pl.DataFrame, points: pl.DataFrame, arm: str, base: str
) -> pl.DataFrame:
    """Return the shift over the deviation of control ratings; an interval at least as in points."""
    if shifts.is_empty():
        return Estimates.empty()
    items = deviations(shifts, arm, base)
    sums = summed(items, SUMS, lambda sums: in_deviations(sums).estimate)
    found = linearised(f"{name}_sd", sums, in_deviations)
    whole = (
        items.filter("counted")
        .group_by(PART)
        .agg(_sd=(pl.col("q").mean() - pl.col("y").mean() ** 2).clip(lower_bound=0.0).sqrt())
    )
    beside = points.select(*PART, *(pl.col(end).alias(f"_{end}") for end in ENDS), _method="method")
    joined = join_cells(join_cells(found, whole), beside)
    alike = (
        pl.col("estimate").is_not_null() & pl.col("low").is_null() & pl.col("_low").is_not_null()
    )
    return joined.with_columns(
        *(pl.when(alike).then(pl.col(f"_{e}") / pl.col("_sd")).otherwise(e).alias(e) for e in BOTH),
        *(pl.when(alike).then(f"_{e}").otherwise(e).alias(e) for e in ("p_value", "level")),
        method=pl.when(alike).then("_method").otherwise("method"),
        reason=pl.when(~alike).then("reason"),
    )


BOTH = ("low", "high")


def deviations(shifts: pl.DataFrame, arm: str, base: str) -> pl.DataFrame:
    """Return the terms of a standardised shift: ``d``, and mean ``y`` and square ``q`` in control.

    ``counted`` are the samples with a valid rating in all of these arms.
    """
    shift = pl.col(f"{arm}_points") - pl.col(f"{base}_points")
    known = shift.is_not_null() & pl.col("control_points").is_not_null()
    return shifts.with_columns(
        counted=known, dropped=~known, d=shift, y="control_points", q="control_square"
    )


def in_deviations(sums: dict[str, Sums]) -> Linear:
    """Return a shift over the deviation of control ratings, from sums of :func:`deviations`."""
    n = sums["n"]
    shift, mean, square = (over(sums[name], n) for name in SUMS)
    variance = square - mean**2
    scale = np.maximum(np.abs(square), 1.0)
    deviation = np.sqrt(np.where(variance > TINY * scale, variance, np.nan))
    effect = shift / deviation
    slope = over(-effect, 2 * deviation**2)
    slopes = {"d": over(1.0, n * deviation), "y": over(-2 * mean * slope, n), "q": over(slope, n)}
    slopes = {name: np.nan_to_num(values) for name, values in slopes.items()}
    return Linear(effect, slopes, reason=np.where(n > 0, CONSTANT, NOBODY))


def linearised_shift(d: pl.Expr, y: pl.Expr, q: pl.Expr, by: Sequence[str]) -> pl.Expr:
    """Return shifts in standard deviations of control, linearised: their mean is the effect.

    ``e + (d_i - D) / s - e / (2 s^2) ((q_i - Q) - 2 Y (y_i - Y))`` with ``e = D / s``: their
    mean has the error of the delta method (:func:`in_deviations`). Null if all control ratings are
    equal. ``d``, ``y`` and ``q`` are as in :func:`deviations`, and null together; means are of the
    rows with equal values of ``by``.
    """
    mean, level, square = (each.mean().over(by) for each in (d, y, q))
    variance = square - level**2
    variance = pl.when(variance > TINY * square.clip(lower_bound=1.0)).then(variance)
    effect = mean / variance.sqrt()
    of_deviation = (q - square) - 2 * level * (y - level)
    return effect + (d - mean) / variance.sqrt() - effect / (2 * variance) * of_deviation


NOBODY = "no sample has valid ratings in the arms that are compared and in control"


def _flips(name: str, passed: pl.DataFrame, arm: str) -> pl.DataFrame:
    one, other = pl.col(f"{arm}_score"), pl.col("control_score")
    return means(name, passed, one * (1 - other) + other * (1 - one))
