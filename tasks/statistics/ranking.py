"""Ranks of judges with intervals, and tiers of judges that are not told apart."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.results import Estimates
from tasks._families import holm
from tasks.defaults import ALPHA, FEWEST_CLUSTERS, TOO_FEW
from tasks.statistics import statistic
from tasks.statistics._bootstrap import DRAWS, FORMULAS, by_chance, resampled_ratios
from tasks.statistics._intervals import EMPTY, LEVEL
from tasks.statistics._panels import Panel, panels, primary_shift
from tasks.statistics._shared import ALONE, UNSHARED, seen, sharing
from tasks.statistics._tiers import letter, letters
from tasks.statistics.contrast import compare_shifts

Floats = NDArray[np.float64]


@statistic(source="methods.md, section 11", gives=("rank", "tier"))
def ranking(shifts: DataFrame[Shifts]) -> DataFrame[Estimates]:
    """Rank judges by how little a perturbation moves them, and say how far ranks are known.

    Rank 1 is the best: the smallest ``|MPS|`` of a promote perturbation, the lowest MPS of a
    detract one, over the sham where there are shams. Equals share the mean of their ranks.

    Parameters
    ----------
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        Per perturbation a row ``rank`` per judge, its interval the 2.5 and 97.5 percentiles of its
        rank in 2000 cluster bootstraps of all judges jointly (the same resampled questions); and a
        row ``tier`` per judge and letter (``subgroup``; a is 1): judges that share a letter are not
        told apart at .05 by the test of ``mps_contrast``, after Holm over pairs of ranked judges.

    Notes
    -----
    The interval is widened to hold the rank itself. Ranks, intervals and letters rest on the
    samples with scores of all ranked judges (``n``; ``dropped`` are the others), and draws on the
    clusters of these. A judge with scores in fewer than ten clusters has no rank, and those of
    others are as if it were not there. If those left share fewer than ten clusters, the one is left
    out without which most are shared, and so on (of equals who shares the fewest samples with each
    of the others, then the first by name). Letters follow the ranks. Ranks of judges that do not
    differ are noise: the mart ``ranking`` never shows them without interval and tier.

    References
    ----------
    methods.md, section 11. Goldstein & Spiegelhalter (1996), J. R. Stat. Soc. A 159, 385-443.

    Examples
    --------
    MPS -.02, .10 and -.30: promote ranks 1, 2, 3; detract ranks 2, 3, 1.
    """
    rows = [row for panel in panels(shifts, {"shift": primary_shift()}) for row in _rows(panel)]
    return (
        Estimates.draft(pl.DataFrame(rows, schema=Estimates.dtypes()))
        if rows
        else Estimates.empty()
    )


def bootstrapped_shifts(panel: Panel) -> Floats:
    """Return MPS by draw and judge, of judges with a score on every sample."""
    shift = panel.values["shift"]
    return resampled_ratios(panel.sums(shift), panel.sums(np.ones_like(shift)))


def badness(shifts: Floats, kind: str) -> Floats:
    """Return what judges are ranked by; sums of equal votes may differ in the last digits."""
    return np.round(np.abs(shifts) if kind == "promote" else shifts, 10)


def ranks(values: Floats) -> Floats:
    """Return ranks within rows, equals sharing the mean of theirs; not a number if there is none.

    Examples
    --------
    >>> ranks(np.array([[0.3, 0.1, 0.1, np.nan]]))
    array([[3. , 1.5, 1.5, nan]])
    """
    below = (values[:, :, None] > values[:, None, :]).sum(axis=2)
    equal = (values[:, :, None] == values[:, None, :]).sum(axis=2)
    return np.where(np.isnan(values), np.nan, below + (equal + 1) / 2)


def _rows(panel: Panel) -> list[dict[str, Any]]:
    told = ~np.isnan(panel.values["shift"])
    counts = seen(told, panel.starts)[0]
    # One question says little of its judge, and would push the ranks of all others.
    few, ranked = counts < FEWEST_CLUSTERS, sharing(told, panel.starts)
    place = np.cumsum(ranked) - 1
    own = panel.among(np.all(told[:, ranked], axis=1), np.flatnonzero(ranked))
    n = len(own.values["shift"]) if ranked.any() else 0
    kind = panel.cell["kind"]
    rank = ranks(badness(own.values["shift"].sum(axis=0)[None] / max(n, 1), kind))[0]
    ends = None
    if ranked.any() and by_chance():
        drawn = ranks(badness(bootstrapped_shifts(own), kind))
        ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    cell = {key: value for key, value in panel.cell.items() if key != "has_sham"}
    rows = []
    for j, judge in enumerate(panel.judges):
        why = (
            EMPTY if not counts[j] else TOO_FEW if few[j] else ALONE if (~few).sum() < 2
            else UNSHARED if not ranked[j] else FORMULAS if ends is None else None
        )  # fmt: skip
        mine = rank[place[j]] if ranked[j] else None
        low, high = (None, None) if why or ends is None else ends[:, place[j]]
        rows.append(
            {
                **cell, "statistic": "rank", "judge": judge, "subgroup": "",
                "simulated": panel.simulated[j], "estimate": mine,
                "low": None if low is None else min(low, mine),
                "high": None if high is None else max(high, mine),
                "level": None if why else LEVEL, "n": n if ranked[j] else 0,
                "clusters": own.clusters if ranked[j] else 0,
                "dropped": len(told) - (n if ranked[j] else 0),
                "votes_per_pair": panel.votes[j], "reason": why,
                "method": "none" if why else f"cluster bootstrap, {DRAWS} draws",
            }
        )  # fmt: skip
    return rows + _tiers(own, [row for row in rows if row["estimate"] is not None])


def _tiers(panel: Panel, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per judge and letter; ``rows`` are the ranks of the panel's judges."""
    if not rows:
        return []
    order = sorted(range(len(rows)), key=lambda j: (rows[j]["estimate"], rows[j]["judge"]))
    pairs, p_value = compare_shifts(panel)
    adjusted = holm(pl.Series(p_value).fill_nan(None))
    place = {j: position for position, j in enumerate(order)}
    apart = [
        (place[i], place[j])
        for i, j, p in zip(pairs.first.tolist(), pairs.second.tolist(), adjusted, strict=True)
        if p is not None and p < ALPHA
    ]
    nothing = dict.fromkeys(("low", "high", "level", "reason"))
    return [
        {
            **rows[order[position]], **nothing, "statistic": "tier", "subgroup": letter(number),
            "estimate": number + 1.0, "method": "pairs not separated after Holm",
        }
        for number, group in enumerate(letters(len(order), apart))
        for position in sorted(group)
    ]  # fmt: skip
