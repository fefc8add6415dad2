"""Contrasts of judges of single answers: whose ratings a perturbation moves further."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.keys import BETWEEN
from tasks.counting.cells import differences, rescaled
from tasks.counting.primary_endpoint import over_shams
from tasks.inference.bootstrap import by_chance
from tasks.inference.cluster_sums import PART, Sums, grouped, join_cells
from tasks.inference.delta_method import Linear, linearised, summed
from tasks.inference.permutation import DifferenceSums, JudgePairs, swap_sums
from tasks.panels.judge_pairs import BARE, swapped
from tasks.pointwise.shifts import passes, rating_shifts
from tasks.statistics import Rows, statistic
from tasks.statistics.rating_shift import SUMS, in_deviations, linearised_shift, without_unmoved

PERTURBED = ("dataset", "wave", "mode", "perturbation")
OTHER = "_other"
NAMES = {
    "rating": {False: "rating_contrast", True: "rating_sham_contrast"},
    "pass": {False: "pass_rate_contrast", True: "pass_rate_sham_contrast"},
}


@statistic(
    source="methods.md, sections 5 and 16 (pairs of judges; pointwise endpoint)",
    family="comparison",
    unit="sd",
    null=0.0,
    rows={
        "rating_sham_contrast": {"floor": "sham"},
        "pass_rate_contrast": {"unit": "share"},
        "pass_rate_sham_contrast": {"unit": "share", "floor": "sham"},
    },
    needs=("perturbation",),
    missing="no sample has valid ratings of both judges in the arms that are compared",
)
def rating_contrast(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how much further a perturbation moves one judge's ratings than another's.

    Compared are judges with the same prompt and, if there are several prompts, each judge with one
    prompt and the same judge with another, on the answers that both rated. Two prompts are compared
    only if their ratings are of the same kind, unit and scale: grades on one scale, passes (of
    grades from the same pass mark on), the same criteria, or the same labels. ``rating_contrast =
    rating_shift_sd(judge) - rating_shift_sd(other)``, each in that judge's own standard deviations
    of control; ``pass_rate_contrast = pass_rate_shift(judge) - pass_rate_shift(other)``. Named
    ``..._sham_contrast`` they are over the sham, which is used where every judge has enough shams.

    Parameters
    ----------
    ratings
        One row per rating; only whole ratings of targets count.

    Returns
    -------
    Estimates
        One row per perturbation and pair, of judges that both grade or both pass; the other judge
        is the ``subgroup``, with its prompt (``judge / prompt``) if that is another one. Intervals
        of grades by the delta method, of passes by cluster linearisation. p-values come from
        swapping the two judges' labels within clusters, as in ``mps_contrast``; grades swap their
        shifts in standard deviations, linearised so that they count the error of the deviation.

    Notes
    -----
    p-values are raw; the mart ``contrasts`` adjusts them over all pairs of a perturbation (Holm).
    With 9999 draws none is below .0001, so beyond 31 judges no pair can differ significantly after
    Holm. A pair with p above .1 after 1000 draws is not drawn further. Pairs with a judge that
    passes or fails every answer have no interval and no p-value: nothing could move it.

    References
    ----------
    methods.md, sections 3, 5 and 16.

    Examples
    --------
    Control grades 4, 6, 8 of one judge with experimental ones 5, 6, 10, and 4, 6, 8 with 4, 6, 8 of
    another: shifts 1 and 0 over the deviation 1.633, so .612. With a pass mark of 6 both pass the
    last two in both arms: 0.
    """
    shifts = rating_shifts(ratings)
    if shifts.is_empty():
        return []
    whole = shifts.filter(pl.col("subgroup") == "")
    groups = grouped(whole)
    over = pl.Series(over_shams(whole, groups)[groups.cell])
    whole = whole.with_columns(over=over).with_columns(pl.col("over").all().over(PERTURBED))
    found: list[pl.DataFrame] = []
    for over_sham in (False, True):
        some = whole.filter(pl.col("over") == over_sham)
        graded, passed = _pairs(_graded(some)), _pairs(_passed(some), marked=True)
        if graded.height:
            sums = (*SUMS, *(f"{name}{OTHER}" for name in SUMS))
            parts = summed(graded, sums, lambda sums: _apart(sums).estimate)
            compared = linearised(NAMES["rating"][over_sham], parts, _apart)
            one, other = (_linear(end) for end in ("", OTHER))
            found.append(_with_swaps(compared, graded.with_columns(apart=one - other)))
        if passed.height:
            rows = _of_passes(NAMES["pass"][over_sham], passed)
            some = passed.filter(~pl.col("alike"), "counted")
            found.append(
                _with_swaps(rows, some.with_columns(apart=pl.col("d") - pl.col(f"d{OTHER}")))
            )
    return found


def _shift(what: str) -> pl.Expr:
    base = pl.when("over").then(f"sham_{what}").otherwise(f"control_{what}")
    return pl.col(f"experimental_{what}") - base


def _graded(shifts: pl.DataFrame) -> pl.DataFrame:
    return shifts.filter("graded").with_columns(
        d=_shift("points"), y="control_points", q="control_square", alike=pl.lit(value=False)
    )


def _passed(shifts: pl.DataFrame) -> pl.DataFrame:
    either = ("experimental_passed", "control_passed")
    some = passes(shifts).with_columns(d=_shift("passed"), y="control_passed", q=pl.lit(0.0))
    return some.with_columns(
        alike=(
            pl.max_horizontal(either).max().over(PART) == pl.min_horizontal(either).min().over(PART)
        )
    )


def _pairs(shifts: pl.DataFrame, *, marked: bool = False) -> pl.DataFrame:
    """Lay each pair of judges, or of prompts of a judge, side by side on the answers of both.

    ``marked``: only with the same pass mark.
    """
    place = [*PERTURBED, "sample", "quantity", *(["passes_at"] if marked else [])]
    numbers = ["judge", "prompt", "simulated", *SUMS, "alike"]
    other = shifts.select(*place, pl.col(numbers).name.suffix(OTHER))
    judge, prompt = (
        (pl.col(name).cast(pl.String), pl.col(f"{name}{OTHER}").cast(pl.String))
        for name in ("judge", "prompt")
    )
    same, alone = judge[0] == judge[1], prompt[0] == prompt[1]
    both = shifts.join(
        other, on=place, how="inner", maintain_order="left", nulls_equal=True
    ).filter((alone & (judge[0] < judge[1])) | (same & (prompt[0] < prompt[1])))
    numbers = [f"{name}{end}" for name in SUMS for end in ("", OTHER)]
    known = pl.all_horizontal(pl.col(numbers).is_not_null())
    return both.with_columns(
        pl.col("simulated") | pl.col(f"simulated{OTHER}"),
        subgroup=pl.when(same).then(judge[0] + BETWEEN + prompt[1]).otherwise(judge[1]),
        alike=pl.col("alike") | pl.col(f"alike{OTHER}"),
        counted=known,
        dropped=~known,
    )


def _linear(end: str) -> pl.Expr:
    """Return the linearised shifts of one judge of each pair, on the answers of both."""
    d, y, q = (pl.when("counted").then(f"{name}{end}") for name in SUMS)
    return linearised_shift(d, y, q, PART)


def _with_swaps(rows: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Set p-values by a permutation test that swaps the two judges' labels within clusters.

    ``items`` have ``apart``, the difference of the two judges; null where it does not count. It is
    the test of :func:`tasks.statistics.contrast.compare_shifts`, which the ranking uses.
    """
    counted = items.filter(pl.col("apart").is_finite())
    if not by_chance() or counted.is_empty():
        return rows
    tests = pl.concat(_swaps(some) for some in counted.partition_by(PERTURBED))
    known = pl.col("_p_value").is_not_null() & (pl.col("clusters") > 1)
    method = pl.format("{}; {}", pl.col("method").replace("none", BARE), "_test")
    return join_cells(rows, tests).with_columns(
        p_value=pl.when(known).then("_p_value").otherwise("p_value"),
        method=pl.when(known).then(method).otherwise("method"),
        seed=pl.coalesce("seed", pl.when(known).then("_seed")),
    )


def _swaps(items: pl.DataFrame) -> pl.DataFrame:
    groups = grouped(items)
    pairs = groups.cells.height
    apart = groups.table(groups.by_cluster(items["apart"]), slice(0, pairs))
    none = np.zeros(pairs, np.intp)
    test = swapped(swap_sums(JudgePairs(none, none), DifferenceSums(np.empty((0, 1)), apart.T)))
    return groups.cells.select(
        *PART, _p_value=pl.Series(test.p_value), _test=test.name, _seed=test.seed
    )


def _apart(sums: dict[str, Sums]) -> Linear:
    one = in_deviations(sums)
    other = in_deviations({"n": sums["n"], **{name: sums[f"{name}{OTHER}"] for name in SUMS}})
    slopes = one.slopes | {f"{name}{OTHER}": -slope for name, slope in other.slopes.items()}
    reason = np.where(np.isnan(one.estimate), one.reason, other.reason)
    return Linear(one.estimate - other.estimate, slopes, reason)


def _of_passes(name: str, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return differences of shifts of pass rates, which lie between -2 and 2."""
    one, other = ((pl.col(f"d{end}") + 1) / 2 for end in ("", OTHER))
    rows = differences(name, pairs, one, other)
    alike = pairs.group_by(PART).agg(unmoved=pl.col("alike").any())
    return without_unmoved(rescaled(rows, 2), alike)
