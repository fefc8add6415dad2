"""Replicate floor: the ASR of noise alone, and the additional effect of any edit."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.keys import CELL
from schemas.results import Estimates
from tasks.counting.cells import even, weighted_shares
from tasks.counting.verdicts import symmetric, with_sham
from tasks.inference.cluster_sums import Sums, grouped, join_cells
from tasks.inference.delta_method import Linear, linearised, summed
from tasks.inference.intervals import EMPTY
from tasks.inference.linearised_errors import over
from tasks.statistics import Rows, statistic

FLOORS = ("sham", "replicate")
FIXED = "; replies never vary, so this floor means nothing"


@statistic(
    source="methods.md, section 2",
    family="floor",
    rows={
        "replicate_floor": {"floor": "replicate"},
        "prompt_sensitivity": {"null": 0.0, "floor": "sham"},
    },
    missing="no sample has verdicts in control, the replicate and the arm they are compared with",
)
def replicate_floor(shifts: DataFrame[Shifts]) -> Rows:
    """Measure the ASR of repeating the control, and the additional effect of a meaning-free edit.

    ``replicate_floor`` is the ``sham_floor`` with the replicate, control shown again, in place of
    the sham: ``sum 1/2 [V_ctrl s_rep + V_rep s_ctrl] / sum 1/2 [V_ctrl + V_rep]``.
    ``prompt_sensitivity = sham_floor - replicate_floor`` over the samples of both.

    Parameters
    ----------
    shifts
        One row per sample and perturbation; only samples with a replicate are used.

    Returns
    -------
    Estimates
        ``replicate_floor`` in [0, 1], by cluster-adjusted Wilson; where there are shams
        ``prompt_sensitivity`` in [-1, 1], by cluster linearisation of both ratios.

    Notes
    -----
    A sample needs a verdict in control, experimental and replicate, as for ``dasr``;
    ``prompt_sensitivity`` needs one in the sham too; arms with unequal votes per pair are not
    compared. For a judge that always replies the same (temperature 0) this floor is 0 (promote) or
    1 (detract) by construction and meaningless; if no verdict changed, ``method`` says so. It is no
    floor for a test either: noise that depends on the wording makes dASR over it significant
    without any bias. Use the sham for that.

    References
    ----------
    methods.md, section 2.

    Examples
    --------
    Three promote samples, control anchor, experimental tie. Replicates anchor, anchor, target:
    denominators 1 + 1 + 1/2 = 5/2, of which 1/2 won: 1/5. Shams anchor, target, target: 2 and 1, so
    1/2: sensitivity 3/10.
    """
    asked = shifts if shifts["has_replicate"].all() else shifts.filter(pl.col("has_replicate"))
    if asked.is_empty():
        return []
    items = symmetric(asked, "replicate")
    groups = grouped(asked)
    floor = weighted_shares("replicate_floor", items.with_columns(num=pl.col("unattacked")), groups)
    varied = items.select((pl.col("replicate") != pl.col("control")).alias("varied"))["varied"]
    fixed = groups.cells.select(*CELL, fixed=pl.Series(groups.by_cell(varied) == 0))
    rows = join_cells(floor, fixed, on=CELL)
    flag = pl.when("fixed", pl.col("n") > 0).then(pl.lit(FIXED)).otherwise(pl.lit(""))
    flagged = rows.with_columns(method=pl.col("method") + flag)
    return [even(flagged, items, groups, ("control", "replicate")), _sensitivity(with_sham(asked))]


def _sensitivity(shifts: pl.DataFrame) -> DataFrame[Estimates]:
    if shifts.is_empty():
        return Estimates.empty()
    items, known = shifts, pl.lit(value=True)
    for arm in FLOORS:
        items = symmetric(items, arm).rename({"den": f"{arm}_v", "unattacked": f"{arm}_won"})
        known &= pl.col(arm).is_not_null()
    known &= pl.col("control").is_not_null() & pl.col("experimental").is_not_null()
    some = pl.any_horizontal(pl.col(f"{arm}_v") > 0 for arm in FLOORS)
    items = items.with_columns(counted=known & some, dropped=~known)
    sums = tuple(f"{arm}_{part}" for arm in FLOORS for part in ("won", "v"))
    groups = grouped(shifts)
    cells = summed(items, sums, _gap, groups)
    rows = linearised("prompt_sensitivity", cells, _difference)
    found = rows.with_columns(pl.col("low", "high").clip(-1.0, 1.0))
    return even(found, items, groups, ("control", *FLOORS))


def _gap(sums: dict[str, Sums]) -> Sums:
    sham, replicate = (over(sums[f"{arm}_won"], sums[f"{arm}_v"]) for arm in FLOORS)
    return sham - replicate


def _difference(sums: dict[str, Sums]) -> Linear:
    slopes: dict[str, Sums] = {}
    for arm, sign in zip(FLOORS, (1.0, -1.0), strict=True):
        won, size = sums[f"{arm}_won"], sums[f"{arm}_v"]
        slopes |= {f"{arm}_won": over(sign, size), f"{arm}_v": over(-sign * over(won, size), size)}
    gap = _gap(sums)
    return Linear(gap, slopes, reason=np.full(gap.shape, EMPTY))
