"""Chart of position consistency against preference fairness."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.charts import chart
from tasks.drawing.canvas import BAND, BLUE, LINE, SMALL, SOFT, Sheet, names, settings
from tasks.drawing.marks import axis_title, dot, interval_line, leader, upright_line
from tasks.drawing.row_panels import tick_label
from tasks.reporting.wording import CELL, clean, clip, count, listing, with_who

LEFT, PLOT, FOOT, HEAD = 44, 262, 62, 26
NAMES, WIDE = 322, 20
GAP = 32

Point = dict[str, Any]


@chart(
    order=3,
    title="Does the position of an answer matter?",
    reading=(
        "Horizontal: share of pairs with the same verdict in both orders. Vertical: which "
        "slot wins if the verdicts differ (above 0 the second, below 0 the first). Lines "
        "are 95 % intervals. A judge without position bias lies at the right end near 0. "
        "The grey corners are impossible. Verdicts can differ because of noise, not only "
        "because of position bias."
    ),
)
def position_plane(estimates: DataFrame[Estimates]) -> list[str]:
    """Draw each judge as a point of the plane, from its control arm."""
    points = _points(estimates)
    shown = [p for p in points if p["estimate"] is not None and p["fairness"] is not None]
    if not shown:
        return []
    shown.sort(key=lambda p: (-p["fairness"], p["estimate"], p["who"]))
    up = max(PLOT, GAP * len(shown))
    with settings("position"):
        sheet = Sheet("position", HEAD + up + FOOT, (LEFT, FOOT, PLOT, up))
        reach = _frame(sheet, shown)
        for point in shown:
            _point(sheet, point)
        _names(sheet, shown, reach)
        _left_out(sheet, [p["who"] for p in points if p not in shown])
        return [sheet.render("Position consistency against preference fairness by judge")]


def _points(estimates: DataFrame[Estimates]) -> list[Point]:
    overall = estimates.filter(pl.col("perturbation").is_null())
    rows = overall.filter(pl.col("statistic") == "position_consistency")
    fairness = overall.filter(pl.col("statistic") == "preference_fairness").select(
        *CELL, fairness="estimate", fair_low="low", fair_high="high"
    )
    return with_who(rows.join(fairness, on=CELL, how="left")).to_dicts()


def _frame(sheet: Sheet, points: Sequence[Point]) -> float:
    """Draw the plane and return how far it reaches up and down."""
    values = [abs(p[c]) for p in points for c in ("fairness", "fair_low", "fair_high") if p[c]]
    reach: float = min(1.0, math.ceil(max([0.25, *values]) * 21) / 20)
    axes = sheet.axes
    axes.set(xlim=(0, 1), ylim=(-reach, reach))
    edge = [0, 1, 1, 0]
    for side in (1, -1):
        axes.fill(edge, [side, 0, side, side], color=BAND, linewidth=0, zorder=-1)
    axes.axhline(0, color=LINE, linewidth=1, zorder=0)
    axes.spines["left"].set_visible(True)
    across = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    axes.set_xticks(across, [tick_label(t, 1) for t in across])
    step = 0.1 if reach <= 0.4 else 0.2 if reach <= 0.8 else 0.5
    ticks = [t * step for t in range(-int(reach / step + 1e-9), int(reach / step + 1e-9) + 1)]
    axes.set_yticks(ticks, [tick_label(t, 1) for t in ticks])
    axes.tick_params(length=3)
    style: dict[str, Any] = {"fontsize": SMALL, "color": SOFT}
    sheet.write(LEFT + PLOT, FOOT - 32, "position consistency", ha="right", **style)
    sheet.write(LEFT, FOOT + sheet.plot[3] + 12, "\N{UPWARDS ARROW} second slot wins", **style)
    sheet.write(LEFT, FOOT - 32, "\N{DOWNWARDS ARROW} first slot wins", **style)
    axis_title(sheet, 10, "preference fairness")
    return reach


def _point(sheet: Sheet, point: Point) -> None:
    x, y = point["estimate"], point["fairness"]
    style: dict[str, Any] = {"color": BLUE, "linewidth": 1.2, "alpha": 0.55, "zorder": 2}
    butt = {**style, "solid_capstyle": "projecting"}
    interval_line(sheet, (point["low"], point["high"]), y, **butt)
    upright_line(sheet, x, (point["fair_low"], point["fair_high"]), **style)
    dot(sheet, x, y, 7.5)


def _names(sheet: Sheet, points: Sequence[Point], reach: float) -> None:
    """Write the names in a column beside the plane, each joined to its point by a line."""
    known = names(points, WIDE)
    up = sheet.plot[3]
    wanted = [FOOT + up * (p["fairness"] + reach) / (2 * reach) for p in points]
    heights = spread(wanted, GAP, FOOT + GAP / 2, FOOT + up - GAP / 2)
    for point, at, height in zip(points, wanted, heights, strict=True):
        start = LEFT + PLOT * point["estimate"]
        ends = (start, at), (NAMES - 4, height)
        leader(sheet, *ends, color=LINE, linewidth=0.9, zorder=0.5)
        name = known[point["who"]]
        lift = 7 if name.lower else 0
        sheet.write(NAMES, height + lift, name.upper, whole=name.whole)
        small: dict[str, Any] = {"fontsize": SMALL, "color": SOFT} if name.marked else {}
        if name.lower:
            sheet.write(NAMES, height - 8, name.lower, whole=name.whole, **small)


def _left_out(sheet: Sheet, missing: list[str]) -> None:
    if not missing:
        return
    rest = [count(len(missing) - 2, "other")] if len(missing) > 2 else []
    named = listing([*(clip(clean(who), 20) for who in missing[:2]), *rest])
    text = f"Not estimable, so not shown: {named}"
    sheet.write(2, 8, text, whole=", ".join(missing), fontsize=SMALL, color=SOFT)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move descending heights apart by at least ``gap``, within ``low`` and ``high``."""
    down = _pushed(wanted, gap, low, high)
    up = [-h for h in reversed(_pushed([-h for h in reversed(wanted)], gap, -high, -low))]
    # Both keep the gap, so their mean does, and it favours neither end.
    return [(a + b) / 2 for a, b in zip(down, up, strict=True)]


def _pushed(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    heights: list[float] = []
    for height in wanted:
        heights.append(min(height, heights[-1] - gap if heights else high))
    floor = low
    for index in reversed(range(len(heights))):
        heights[index] = max(heights[index], floor)
        floor = heights[index] + gap
    return heights
