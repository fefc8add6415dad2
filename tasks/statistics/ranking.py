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
from tasks.statistics._tiers import letter, letters
from tasks.statistics.contrast import compare_shifts

ALONE = "a single judge: nothing to rank"
UNRANKED = {EMPTY, ALONE, TOO_FEW}
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
        told apart by ``mps_contrast`` at .05 after Holm over all pairs.

    Notes
    -----
    The interval is widened to hold the rank itself. Each judge is ranked on the samples with its
    scores, and in draws without any of them not at all. A judge with scores in fewer than ten
    clusters has no rank, and those of others are as if it were not there. Letters follow the ranks;
    pairs with fewer than ten clusters in common are not told apart, and do not count for Holm.
    Ranks of judges that do not differ are noise: the mart ``ranking`` never shows them without
    interval and tier.

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
    """Return MPS by draw and judge; not a number in draws without a score of the judge."""
    told = ~np.isnan(panel.values["shift"])
    return resampled_ratios(panel.sums(np.nan_to_num(panel.values["shift"])), panel.sums(told))


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


def _drawn_ranks(panel: Panel, *, enough: NDArray[np.bool_]) -> Floats | None:
    if not by_chance():
        return None
    drawn = np.where(enough, bootstrapped_shifts(panel), np.nan)
    return ranks(badness(drawn, panel.cell["kind"]))


def _rows(panel: Panel) -> list[dict[str, Any]]:
    shift = panel.values["shift"]
    told = ~np.isnan(shift)
    n, clusters = told.sum(axis=0), (panel.sums(told) > 0).sum(axis=0)
    mean = np.divide(np.nan_to_num(shift).sum(axis=0), n, out=np.full(n.size, np.nan), where=n > 0)
    # One question says little of its judge, and would push the ranks of all others.
    enough = clusters >= FEWEST_CLUSTERS
    rank = ranks(badness(np.where(enough, mean, np.nan), panel.cell["kind"])[None])[0]
    drawn = _drawn_ranks(panel, enough=enough)
    cell = {key: value for key, value in panel.cell.items() if key != "has_sham"}
    rows = []
    for j, judge in enumerate(panel.judges):
        why = (
            EMPTY if not n[j] else TOO_FEW if not enough[j] else ALONE if enough.sum() < 2
            else FORMULAS if drawn is None else None
        )  # fmt: skip
        low, high = (None, None)
        if not why and drawn is not None:
            some = drawn[:, j][~np.isnan(drawn[:, j])]
            low, high = np.quantile(some, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        rows.append(
            {
                **cell, "statistic": "rank", "judge": judge, "subgroup": "",
                "simulated": panel.simulated[j],
                "estimate": None if why in UNRANKED else rank[j],
                "low": None if low is None else min(low, rank[j]),
                "high": None if high is None else max(high, rank[j]),
                "level": None if why else LEVEL, "n": 0 if why in UNRANKED else n[j],
                "clusters": 0 if why in UNRANKED else clusters[j],
                "dropped": told.shape[0] - n[j], "votes_per_pair": panel.votes[j], "reason": why,
                "method": "none" if why else f"cluster bootstrap, {DRAWS} draws",
            }
        )  # fmt: skip
    return rows + _tiers(panel, rows)


def _tiers(panel: Panel, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per judge and letter, of the judges that have a rank."""
    order = sorted(
        (j for j, row in enumerate(rows) if row["estimate"] is not None),
        key=lambda j: (rows[j]["estimate"], rows[j]["judge"]),
    )
    if not order:
        return []
    pairs, p_value = compare_shifts(panel)
    adjusted = holm(pl.Series(p_value).fill_nan(None))
    place = {j: position for position, j in enumerate(order)}
    apart = [
        (place[i], place[j])
        for i, j, p in zip(pairs.first.tolist(), pairs.second.tolist(), adjusted, strict=True)
        if p is not None and p < ALPHA and i in place and j in place
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
