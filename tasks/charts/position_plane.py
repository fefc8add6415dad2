"""Chart of position consistency against the slot that conflicting verdicts favour."""

import math
from collections.abc import Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.charts import chart
from tasks.drawing.names import names
from tasks.drawing.row_panels import measured, name_texts, sizes, values_of
from tasks.drawing.spec import BAND, BLUE, LINE, Spec, axis, mark, note, panel, pixel, scaled
from tasks.reporting.wording import clean, clip, count, listing, with_who

PLOT, WIDE, GAP = 262, 20, 32


@chart(order=3, title="Does the position of an answer matter?")
def position_plane(estimates: DataFrame[Estimates]) -> list[Spec]:
    """Draw each judge as a point of the plane, from its control arm.

    Horizontal: share of pairs with the same verdict in both orders. Vertical: which slot wins if
    the verdicts differ, above 0 the first as in the position gap (the statistic preference_fairness
    has the opposite sign, as published). Lines are 95 % intervals. A judge without position bias
    lies at the right end near 0. The grey corners are impossible; an interval may reach into them,
    as it is about one axis, whatever the value on the other. Verdicts can differ because of noise,
    not only because of position bias.
    """
    points = _points(estimates)
    shown = [p for p in points if p["estimate"] is not None and p["fairness"] is not None]
    if not shown:
        return []
    shown.sort(key=lambda p: (-p["fairness"], p["estimate"], p["who"]))
    up = max(PLOT, GAP * len(shown))
    values = [abs(p[c]) for p in shown for c in ("fairness", "fair_low", "fair_high") if p[c]]
    reach: float = min(1.0, math.ceil(max([0.25, *values]) * 21) / 20)
    rows = _values(shown, reach, up)
    thin: Spec = {"strokeWidth": 1.2, "opacity": 0.55}
    names_at: Spec = {"x": pixel("width"), "dx": 22, "align": "left", "tooltip": "tip"}
    leader: Spec = {"strokeWidth": 0.9, "color": {"value": LINE}, "x2Offset": 19}
    return [
        panel(
            "Position by judge",
            _left_out([p["who"] for p in points if p not in shown]),
            about="Position consistency against the favoured slot by judge",
            layers=[
                *_frame(reach),
                mark("rule", x="x", y="y", x2=pixel("width"), y2="label", **leader),
                mark("rule", x="low", x2="high", y="y", **thin),
                mark("rule", x="x", y="fair_low", y2="fair_high", **thin),
                mark("point", x="x", y="y", size=56, tooltip="tip", color={"value": BLUE}),
                *name_texts(rows, y="label", **names_at),
            ],
            data={"values": rows},
            width=PLOT,
            height=up,
        )
    ]


def _points(estimates: DataFrame[Estimates]) -> list[Row]:
    overall = estimates.filter(pl.col("perturbation").is_null())
    rows = overall.filter(pl.col("statistic") == "position_consistency")
    # As published, it is above 0 for the second slot; the position gap is for the first.
    fairness = overall.filter(pl.col("statistic") == "preference_fairness").select(
        *JUDGE, fairness=0 - pl.col("estimate"), fair_low=-pl.col("high"), fair_high=-pl.col("low")
    )
    return with_who(rows.join(fairness, on=JUDGE, how="left")).to_dicts()


def _values(points: Sequence[Row], reach: float, up: float) -> list[Row]:
    """Return a row per judge; names stand beside the plane, apart from each other."""
    known = names(points, WIDE)
    wanted = [up * (p["fairness"] + reach) / (2 * reach) for p in points]
    heights = spread(wanted, GAP, GAP / 2, up - GAP / 2)
    return [
        values_of(
            {**p, "name": known[p["who"]]},
            "",
            "",
            measured("position consistency", p["estimate"], p["low"], p["high"]),
            measured("first minus second slot", p["fairness"], p["fair_low"], p["fair_high"]),
            sizes(p),
            x=p["estimate"],
            y=p["fairness"],
            label=height * 2 * reach / up - reach,
            **{name: p[name] for name in ("low", "high", "fair_low", "fair_high")},
        )
        for p, height in zip(points, heights, strict=True)
    ]


def _frame(reach: float) -> list[Spec]:
    """Draw the plane, and in grey where no judge can be."""
    step = 0.1 if reach <= 0.4 else 0.2 if reach <= 0.8 else 0.5
    most = int(reach / step + 1e-9)
    down = [round(t * step, 9) for t in range(-most, most + 1)]
    across = (0, 0.2, 0.4, 0.6, 0.8, 1)
    below = axis(across, 1, "position consistency", titleAnchor="end", grid=False)
    x = scaled("x", "x", 0, 1, below)
    beside = axis(down, 1, "first minus second slot", grid=False, titlePadding=8)
    y = scaled("y", "y", -reach, reach, beside)
    left: Spec = {"x": pixel(0), "align": "left"}
    corners = [
        mark(
            "area",
            # Verdicts that agree favour no slot.
            [{"x": 1 - reach, "y": side, "y0": side}, {"x": 1, "y": side, "y0": 0}],
            x=x,
            y=y,
            y2="y0",
            color={"value": BAND},
        )
        for side in (reach, -reach)
    ]
    return [
        *corners,
        mark("rule", [{"at": 0}], y="at", color={"value": LINE}, strokeWidth=1),
        note("\N{UPWARDS ARROW} first slot wins", y=pixel(-10), **left),
        note("\N{DOWNWARDS ARROW} second slot wins", y=pixel("height"), dy=41, **left),
    ]


def _left_out(missing: list[str]) -> str:
    if not missing:
        return ""
    rest = [count(len(missing) - 2, "other")] if len(missing) > 2 else []
    named = listing([*(clip(clean(who), 20) for who in missing[:2]), *rest])
    return f"Not estimable, so not shown: {named}"


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
