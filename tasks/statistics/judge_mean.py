"""Means over judges, and without those that are left out of tables of attack success."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.results import Estimates
from tasks.exclude import exclude
from tasks.statistics import statistic
from tasks.statistics._bootstrap import formulas_only
from tasks.statistics._even import UNEQUAL, planned
from tasks.statistics._intervals import EMPTY, LEVEL, proportions, ratios
from tasks.statistics._models import of_models
from tasks.statistics._panels import Panel, panels, primary_shift
from tasks.statistics._success import may_win, symmetric, wins
from tasks.statistics.first_pick_share import first_pick_share
from tasks.statistics.tie_rate import tie_rate
from tasks.statistics.validity import COUNTS, validity

ALL, KEPT = "judges/all", "kept"
NOBODY = "every judge is left out"
JUDGE = ("dataset", "judge", "prompt", "wave")
PARTS = {
    "mean_shift": ("up", "down", "moved"),
    "mean_asr": ("hit", "counted"),
    "mean_sham_floor": ("unattacked", "den"),
    "mean_dasr": ("attacked", "unattacked", "den"),
}
"""Statistic -> what its ratio is made of: of three the first less the second, over the last."""

Judge = tuple[str, str, str, str]
Floats = NDArray[np.float64]


@statistic(source="methods.md, sections 3 and 5", gives=tuple(PARTS))
def judge_mean(shifts: DataFrame[Shifts], tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Average shift, ASR, floor and dASR over judges, who all answer the same questions.

    ``M = 1/J sum_j R_j`` over the J judges that have the ratio ``R_j = k_j / v_j``. All judges
    share their questions, so a question's part in M is ``u_g = 1/J sum_j (k_gj - R_j v_gj) / v_j``
    and ``var = G / (G - 1) sum_g u_g^2``: what judges have in common does not average out.

    Parameters
    ----------
    shifts
        One row per sample and perturbation. The shift is over the sham where there are shams.
    tallies
        Which judges are left out follows from them (``exclusions.sql``), and who is a person:
        people, who may have seen few samples, have no part in means.

    Returns
    -------
    Estimates
        Of judge ``judges/all``, four rows per perturbation; and, where some judge is left out,
        four with ``subgroup`` ``kept``, without it. Shift and dASR by cluster linearisation; ASR
        and floor by Wilson at the effective size ``M (1 - M) / var``, as of averages.

    Notes
    -----
    Rates of judges or arms with unequal votes per pair are not averaged. A mean hides who
    is biased: it is a line of reference, not tested. ``n`` counts samples that some judge's
    ratio rests on.

    References
    ----------
    methods.md, sections 3 (cluster linearisation) and 5 (exclusion, with and without).

    Examples
    --------
    ASR of two judges, 1/2 on four questions and 1/4 on the same four: .375. Where a question wins
    over both judges or neither, the mean is no surer than one judge.
    """
    samples = symmetric(of_models(shifts, tallies)).with_columns(shift=primary_shift())
    shift, both = pl.col("shift"), pl.col("counted")
    told = pl.col("control").is_not_null() & pl.col("experimental").is_not_null()
    values = {
        "up": shift.clip(0.0), "down": (-shift).clip(0.0), "moved": shift.is_not_null(),
        "hit": told & may_win("control") & wins("experimental"),
        **{name: pl.when(both).then(name) for name in ("attacked", "unattacked", "den")},
    }  # fmt: skip
    # The count of samples that may be won stands under its own name beside that of `symmetric`.
    counted = {"counted": told & may_win("control")}
    counted |= {f"{arm}_votes": planned(arm) for arm in ("control", "sham")}
    out = _left_out(tallies)
    rows = [row for panel in panels(samples, values | counted) for row in _rows(panel, out)]
    return Estimates.draft(pl.concat(rows, how="diagonal_relaxed")) if rows else Estimates.empty()


def _left_out(tallies: DataFrame[Tallies]) -> set[Judge]:
    """Apply the rule of exclusion, which needs no bootstrap and no cells but those of judges."""
    control = tallies.filter(pl.col("arm") == "control")
    ballots = tallies.group_by(*JUDGE, "cluster", maintain_order=True).agg(
        pl.col(COUNTS).cast(pl.Int64).sum(),
        pl.col("simulated").first(),
        pl.col("perturbation", "kind").filter(pl.lit(value=False)).first(),
    )
    with formulas_only():
        rates = [
            first_pick_share.draft(tallies=control),
            tie_rate.draft(tallies=control),
            validity.draft(tallies=ballots),
        ]
    found = exclude(Estimates.draft(pl.concat(rates)))
    return set(found.filter("excluded").select("dataset", "prompt", "wave", "judge").rows())


def _rows(panel: Panel, out: set[Judge]) -> Iterator[pl.DataFrame]:
    cell = (panel.cell["dataset"], panel.cell["prompt"], panel.cell["wave"])
    kept = [j for j, judge in enumerate(panel.judges) if (*cell, judge) not in out]
    groups = {"": list(range(len(panel.judges)))}
    if len(kept) < len(panel.judges):
        groups[KEPT] = kept
    for subgroup, judges in groups.items():
        for name in PARTS:
            if panel.cell["has_sham"] or name in {"mean_shift", "mean_asr"}:
                yield _row(panel, name, judges).with_columns(subgroup=pl.lit(subgroup))


def _row(panel: Panel, name: str, judges: list[int]) -> pl.DataFrame:
    columns = [np.nan_to_num(panel.values[part][:, judges]) for part in PARTS[name]]
    den, counted = panel.sums(columns[-1]), columns[-1]
    able = den.sum(axis=0) > 0
    votes = panel.votes[judges][able]
    arms = [votes, panel.votes_of("control")[judges][able]]
    if name in {"mean_sham_floor", "mean_dasr"}:
        arms.append(panel.votes_of("sham")[judges][able])
    unequal = _unequal(name, arms)
    why = NOBODY if not judges else EMPTY if not able.any() else UNEQUAL if unequal else None
    cell = {key: value for key, value in panel.cell.items() if key != "has_sham"}
    row: dict[str, Any] = {
        **cell, "statistic": name, "judge": ALL, "simulated": _simulated(panel, judges),
        "votes_per_pair": int(votes.max(initial=0)),
    }  # fmt: skip
    if why:
        row |= {"n": 0, "clusters": 0, "dropped": len(counted), "method": "none", "reason": why}
        return pl.DataFrame([row], schema={**Estimates.dtypes()})
    parts = [panel.sums(part)[:, able] for part in columns[:-1]]
    moments = _moments(parts, den[:, able])
    whole = len(parts) == 1
    found = proportions(moments, whole=False) if whole else ratios(moments)
    used = int((counted > 0).any(axis=1).sum())
    return found.with_columns(
        **{key: pl.lit(value) for key, value in row.items()},
        p_value=pl.lit(None, dtype=pl.Float64),
        low=pl.col("low").clip(-1.0, 1.0),
        high=pl.col("high").clip(-1.0, 1.0),
        level=pl.when(pl.col("low").is_not_null()).then(LEVEL),
        n=pl.lit(used),
        clusters=moments["clusters"],
        dropped=pl.lit(len(counted) - used),
    )


def _unequal(name: str, arms: list[NDArray[np.int64]]) -> bool:
    """Tell whether judges differ in votes per pair, or the arms that a floor is about do."""
    if name == "mean_shift":
        return False
    if name == "mean_asr":
        return any(len(set(votes.tolist())) > 1 for votes in arms)
    return len(set(np.concatenate(arms).tolist())) > 1


def _simulated(panel: Panel, judges: list[int]) -> bool | None:
    marks = {panel.simulated[j] for j in judges}
    return True if True in marks else None if None in marks or not marks else False


def _moments(parts: list[Floats], den: Floats) -> pl.DataFrame:
    """Return the moments of a mean of ratios: those of one ratio with the same variance.

    Each judge's sums are divided by its own total, so that all judges weigh alike; ``den`` is then
    given the mean number of what is counted, on which an effective size rests.
    """
    total = den.sum(axis=0)
    size = float(total.mean())
    share = (den / total).mean(axis=1) * size
    columns: dict[str, Any] = {
        "den": size, "clusters": int((den.sum(axis=1) > 0).sum()), "den_squares": (share**2).sum(),
    }  # fmt: skip
    sums_of = {"num": parts[0]}
    if len(parts) > 1:
        sums_of = {"num": parts[0] - parts[1], "minuend": parts[0], "subtrahend": parts[1]}
    for name, sums in sums_of.items():
        rate = sums.sum(axis=0) / total
        u = ((sums - rate * den) / total).mean(axis=1) * size
        columns[name] = rate.mean() * size
        columns["squares" if name == "num" else f"{name}_squares"] = (u**2).sum()
    return pl.DataFrame([columns])
