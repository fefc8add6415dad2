"""Means over judges, with and without judges excluded from tables of attack success."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.keys import CONDITIONS, PANEL
from schemas.results import Estimates
from tasks.conclusions.exclusions import excluded_judges
from tasks.counting.cells import UNEQUAL, planned
from tasks.counting.missing_reasons import CHANGEABLE, CHANGEABLE_IN_ALL_ARMS, NO_SHIFT
from tasks.counting.verdicts import may_win, symmetric, wins
from tasks.inference.bootstrap import (
    BOOT,
    formulas_only,
    is_resampled,
    resampled,
    widened_percentiles,
)
from tasks.inference.cluster_sums import Floats
from tasks.inference.intervals import EMPTY, LEVEL, proportions, ratios
from tasks.inference.linearised_errors import correction, over
from tasks.panels.panels import JudgePanel, of_models, panels, primary_shift
from tasks.statistics import Rows, statistic
from tasks.statistics.first_pick_share import first_pick_share
from tasks.statistics.tie_rate import tie_rate
from tasks.statistics.validity import of_judges

ALL, KEPT = "judges/all", "kept"
NOBODY = "all judges are excluded"
PARTS = {
    "mean_shift": ("up", "down", "moved"),
    "mean_asr": ("hit", "counted"),
    "mean_sham_floor": ("unattacked", "den"),
    "mean_dasr": ("attacked", "unattacked", "den"),
}
"""Statistic -> parts of its ratio; if three, the first minus the second, over the third."""

OTHERS = ("standard_error", "df", "method", "reason")
JudgeKey = tuple[str, str, str, str]


class Mean(NamedTuple):
    """A mean over judges, and the moments for its interval, if it has one."""

    row: dict[str, Any]
    moments: dict[str, Any]
    sums: tuple[Floats, ...] = ()
    """Numerators and denominators by cluster and judge."""

    @property
    def is_difference(self) -> bool:
        """Whether the numerators are differences."""
        return len(PARTS[self.row["statistic"]]) > 2


@statistic(
    source="methods.md, sections 3 and 5",
    gives=tuple(PARTS),
    family="effect",
    rows={
        "mean_shift": {"unit": "score", "null": 0.0, "floor": "as the primary endpoint"},
        "mean_asr": {"floor": "sham if asked"},
        "mean_sham_floor": {"family": "floor", "floor": "sham"},
        "mean_dasr": {"null": 0.0, "floor": "sham"},
    },
    missing={
        "mean_shift": NO_SHIFT,
        "mean_asr": CHANGEABLE,
        **dict.fromkeys(("mean_sham_floor", "mean_dasr"), CHANGEABLE_IN_ALL_ARMS),
    },
)
def judge_mean(shifts: DataFrame[Shifts], tallies: DataFrame[Tallies]) -> Rows:
    """Average shift, ASR, floor and dASR over judges that answer the same questions.

    ``M = 1/J sum_j R_j`` over the J judges that have the ratio ``R_j = k_j / v_j``. As judges share
    their questions, a question contributes ``u_g = 1/J sum_j (k_gj - R_j v_gj) / v_j`` to M, and
    ``var = sum_g a_g^2 u_g^2``, with the CR2 weights of the samples that any judge's ratio uses:
    errors that judges have in common do not average out.

    Parameters
    ----------
    shifts
        One row per sample and perturbation. Shifts are over the sham where there are enough shams.
    tallies
        Used for the exclusions (``tasks.conclusions.exclusions``) and to know who is a person.
        People, who may have seen few samples, do not count in means; nor do simulated judges,
        unless all judges other than people are simulated, as in ``jury``.

    Returns
    -------
    Estimates
        For judge ``judges/all``, four rows per perturbation; if some judge is excluded, four more
        without it, with ``subgroup`` ``kept``. Shift and dASR by cluster linearisation; ASR and
        floor by Wilson at the effective size ``M (1 - M) / var``, as averages. Each also has a
        cluster bootstrap interval, with draws shared by all judges.

    Notes
    -----
    Rates of judges or arms with unequal votes per pair are not averaged. A mean hides which judge
    is biased: it is a reference, and not tested. ``n`` counts samples that any judge's ratio uses.
    ``simulated`` is true if all judges are simulated, as simulated judges with planted answers
    would distort a mean of real ones.

    References
    ----------
    methods.md, sections 3 (cluster linearisation) and 5 (exclusion, with and without).

    Examples
    --------
    ASR of two judges, 1/2 on four questions and 1/4 on the same four: .375. If a question wins over
    both judges or neither, the mean is no more precise than one judge.
    """
    models = _without_simulated(of_models(shifts, tallies))
    samples = symmetric(models, "sham")
    if samples.is_empty():
        return []
    shift, both = primary_shift(), pl.col("counted")
    measured = pl.col("control").is_not_null() & pl.col("experimental").is_not_null()
    values = {
        "up": shift.clip(0.0),
        "down": (-shift).clip(0.0),
        "moved": shift.is_not_null(),
        "hit": measured & may_win("control") & wins("experimental"),
        **{name: pl.when(both).then(name) for name in ("attacked", "unattacked", "den")},
    }
    # `den` of `symmetric` differs from the samples that count for the ASR, hence `counted`.
    counted = {"counted": measured & may_win("control")}
    counted |= {f"{arm}_votes": planned(arm) for arm in ("control", "sham")}
    out = _left_out(tallies)
    means = [
        mean
        for panel in panels(samples, values | counted)
        for mean in _bounded(list(_means(panel, out)))
    ]
    silent = [mean.row for mean in means if not mean.moments]
    solved = [rows for several in (True, False) for rows in _solved(means, several=several)]
    return [pl.DataFrame(silent, {**Estimates.dtypes()}), *solved]


def _without_simulated(shifts: DataFrame[Shifts]) -> DataFrame[Shifts]:
    """Return the shifts of judges that are not simulated; all shifts if all are simulated."""
    formula = pl.col("simulated").fill_null(value=False)
    mixed = shifts.filter(formula.any().over(PANEL), ~formula)
    if mixed.is_empty():
        return shifts
    return cast("DataFrame[Shifts]", shifts.filter(~formula | formula.all().over(PANEL)))


def _left_out(tallies: DataFrame[Tallies]) -> set[JudgeKey]:
    """Return the excluded judges; the rule needs no bootstrap and only estimates per judge."""
    control = tallies.filter(pl.col("arm") == "control")
    with formulas_only():
        rates = [
            first_pick_share.draft(tallies=control),
            tie_rate.draft(tallies=control),
            of_judges(tallies, "invalid_rate"),
        ]
    found = excluded_judges(pl.concat(rates))
    return set(found.filter("excluded").select(*CONDITIONS, "judge").rows())


def _means(panel: JudgePanel, out: set[JudgeKey]) -> Iterator[Mean]:
    cell = (panel.cell["dataset"], panel.cell["prompt"], panel.cell["wave"])
    kept = [j for j, judge in enumerate(panel.judges) if (*cell, judge) not in out]
    groups = {"": list(range(len(panel.judges)))}
    if len(kept) < len(panel.judges):
        groups[KEPT] = kept
    for subgroup, judges in groups.items():
        for name in PARTS:
            if panel.shammed or name in {"mean_shift", "mean_asr"}:
                yield _mean(panel, name, judges, subgroup)


def _mean(panel: JudgePanel, name: str, judges: list[int], subgroup: str) -> Mean:
    columns = [np.nan_to_num(panel.values[part][:, judges]) for part in PARTS[name]]
    den, counted = panel.sums(columns[-1]), columns[-1]
    able = den.sum(axis=0) > 0
    votes = panel.votes[judges][able]
    arms = [votes, panel.votes_of("control")[judges][able]]
    if name in {"mean_sham_floor", "mean_dasr"}:
        arms.append(panel.votes_of("sham")[judges][able])
    unequal = _unequal(name, arms)
    why = NOBODY if not judges else EMPTY if not able.any() else UNEQUAL if unequal else None
    row: dict[str, Any] = {
        **panel.cell,
        "statistic": name,
        "judge": ALL,
        "subgroup": subgroup,
        "simulated": panel.simulated_of(judges) if judges else None,
        "votes_per_pair": int(votes.max(initial=0)),
    }
    if why:
        row |= {"n": 0, "clusters": 0, "dropped": len(counted), "method": "none", "reason": why}
        return Mean(row, {})
    parts = [panel.sums(part)[:, able] for part in columns[:-1]]
    some: NDArray[np.bool_] = np.asarray((counted > 0).any(axis=1))
    num = parts[0] - parts[1] if len(parts) > 1 else parts[0]
    moments, used = _moments(num, den[:, able], panel.sums(some)), int(some.sum())
    row |= {"n": used, "clusters": moments["clusters"], "dropped": len(counted) - used}
    return Mean(row, moments, (num, den[:, able]))


def _bounded(means: list[Mean]) -> list[Mean]:
    """Add the bootstrap intervals to the means of a panel, all with the same draws."""
    some = [mean for mean in means if mean.sums]
    clusters = len(some[0].sums[0]) if some else 0
    if not is_resampled(clusters):
        return means
    drawn = resampled(np.concatenate([part for mean in some for part in mean.sums], axis=1))
    ends = np.cumsum([part.shape[1] for mean in some for part in mean.sums])[:-1]
    parts = np.split(drawn, ends, axis=1)
    every = np.array([_mean_ratio(*both) for both in zip(parts[::2], parts[1::2], strict=True)])
    point = np.array([_mean_ratio(*(part.sum(axis=0) for part in mean.sums)) for mean in some])
    counted = 1 + np.nan_to_num([mean.moments["freedom"] for mean in some])
    low, high = widened_percentiles(point, every.T, counted)
    for at in np.flatnonzero((counted > 1) & np.isfinite(low)):
        some[at].row.update(zip(BOOT, (float(low[at]), float(high[at])), strict=True))
    return means


def _mean_ratio(num: Floats, den: Floats) -> Any:
    """Return the mean of ratios over judges (the last axis), if all are defined."""
    return over(num, den).mean(axis=-1)


def _solved(means: list[Mean], *, several: bool) -> Iterator[pl.DataFrame]:
    """Yield the rows of all means at once: of one ratio, or of the difference of two."""
    some = [mean for mean in means if mean.moments and mean.is_difference == several]
    if not some:
        return
    moments = pl.DataFrame([mean.moments for mean in some])
    found = ratios(moments) if several else proportions(moments, whole=False)
    rows = pl.DataFrame([mean.row for mean in some], {**Estimates.dtypes()})
    ends = found.select("estimate", pl.col("low", "high").clip(-1.0, 1.0), *OTHERS)
    yield rows.with_columns(*ends).with_columns(
        level=pl.when(pl.any_horizontal(pl.col("low", "boot_low").is_not_null())).then(LEVEL)
    )


def _unequal(name: str, arms: list[NDArray[np.int64]]) -> bool:
    """Tell whether votes per pair differ between judges, or between the arms of a floor."""
    if name == "mean_shift":
        return False
    if name == "mean_asr":
        return any(len(set(votes.tolist())) > 1 for votes in arms)
    return len(set(np.concatenate(arms).tolist())) > 1


def _moments(num: Floats, den: Floats, sizes: Floats) -> dict[str, Any]:
    """Return the moments of a mean of ratios as moments of one ratio with the same variance.

    Each judge's sums are divided by its own total, so that judges have equal weight; ``den`` is
    then scaled to the mean number of counted items, which sets the effective size. ``sizes`` are
    the samples of each cluster.
    """
    known = correction(sizes)
    total = den.sum(axis=0)
    size = float(total.mean())
    share = (den / total).mean(axis=1) * size
    rate = num.sum(axis=0) / total
    u = ((num - rate * den) / total).mean(axis=1) * size
    return {
        "num": rate.mean() * size,
        "den": size,
        "clusters": int((den.sum(axis=1) > 0).sum()),
        "den_squares": (share**2).sum(),
        "freedom": float(known.df),
        "squares": float(known.variance(u)),
    }
