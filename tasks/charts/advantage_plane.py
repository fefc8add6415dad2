"""Each judge against each annotator, and which of them it may replace."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages
from tasks.charts import chart
from tasks.charts.position_plane import spread
from tasks.drawing.canvas import BAND, BIG, BLUE, LINE, RED, SMALL, SOFT, WIDTH, Sheet, settings
from tasks.drawing.row_panels import tick_label
from tasks.reporting.wording import clean, clip, number, with_who

LEFT, PLOT, FOOT, HEAD = 60, 320, 52, 58
MOST = 12
"""Judges that are drawn: those with the highest advantage probability."""
NAMED = 8
"""Annotators up to whom all have a name."""
CROWD = 20
"""Annotators above whom intervals would hide the dots."""

Row = dict[str, Any]


@chart(
    order=13,
    title="Which annotators may a judge replace?",
    reading=(
        "A panel per judge, a dot per annotator left out: across, how often the annotator fits the"
        " others at least as well as the judge; up, the reverse, with its 95 % interval. On the"
        " diagonal both fit alike; the shaded side of the slanted line is what epsilon allows. A"
        " filled dot is an annotator whom the judge may replace (the test rejects that it is worse"
        " by epsilon), a hollow diamond one for whom that is not shown, even if it lies there."
    ),
)
def advantage_plane(advantages: DataFrame[Advantages]) -> list[str]:
    """Draw a panel per judge, the highest advantage first."""
    told = with_who(advantages.filter("asked", pl.col("rejected").is_not_null()))
    means = told.group_by("who").agg(mean=pl.col("advantage_probability").mean())
    best = means.sort(-pl.col("mean"), "who").head(MOST)["who"]
    return [
        _panel(f"plane-{at}", told.filter(pl.col("who") == who).sort("annotator").to_dicts())
        for at, who in enumerate(best)
    ]


def _panel(key: str, rows: Sequence[Row]) -> str:
    with settings(key):
        height = HEAD + PLOT + FOOT
        sheet = Sheet(key, height, (LEFT, FOOT, PLOT, PLOT))
        least = _frame(sheet, rows)
        for row in rows:
            _point(sheet, row, crowded=len(rows) > CROWD)
        first = rows[0]
        title = clip(clean(first["who"]), 40) + (" (simulated)" if first["simulated"] else "")
        sheet.write(2, height - 14, title, whole=first["who"], fontsize=BIG, fontweight="bold")
        replaced = sum(bool(row["rejected"]) for row in rows)
        under = f"filled: {replaced} of {len(rows)} may be replaced; "
        under += f"{first['epsilon_kind']} epsilon {number(first['epsilon'])}"
        style: dict[str, Any] = {"fontsize": SMALL, "color": SOFT}
        sheet.write(2, height - 34, under, **style)
        if len(rows) <= NAMED:
            _names(sheet, rows, least)
        return sheet.render(f"Advantage of {first['who']} and of each annotator against it")


def _frame(sheet: Sheet, rows: Sequence[Row]) -> float:
    """Draw the regions and return where the axes begin."""
    values = [
        row[name]
        for row in rows
        for name in ("advantage_probability", "human_advantage_probability", "low")
        if row[name] is not None
    ]
    least = max(0.0, np.floor((min(values) - 0.02) * 10) / 10)
    epsilon, additive = rows[0]["epsilon"], rows[0]["epsilon_kind"] == "additive"
    across = np.array([least, 1.0])
    edge = across - epsilon if additive else (1 - epsilon) * across
    axes = sheet.axes
    axes.set(xlim=(least, 1), ylim=(least, 1))
    axes.fill_between(across, edge, [1, 1], color=BAND, linewidth=0, zorder=-1)
    axes.plot(across, edge, color=SOFT, linewidth=1.2, zorder=1)
    axes.plot(across, across, color=LINE, linewidth=1, linestyle="--", zorder=1)
    axes.spines["left"].set_visible(True)
    step = 0.1 if least >= 0.5 else 0.2
    ticks = [1 - step * at for at in range(int((1 - least) / step + 1e-9) + 1)]
    axes.set_xticks(ticks, [tick_label(tick, 1) for tick in ticks])
    axes.set_yticks(ticks, [tick_label(tick, 1) for tick in ticks])
    axes.tick_params(length=3)
    style: dict[str, Any] = {"fontsize": SMALL, "color": SOFT}
    middle = LEFT + PLOT / 2
    sheet.write(middle, 14, "the annotator fits at least as well", ha="center", **style)
    sheet.write(
        14,
        FOOT + PLOT / 2,
        "the judge fits at least as well",
        rotation=90,
        ha="center",
        rotation_mode="anchor",
        **style,
    )
    sheet.write(LEFT + 8, FOOT + PLOT - 12, "replaceable", **style)
    sheet.write(LEFT + PLOT - 6, FOOT + 12, "not", ha="right", **style)
    return float(least)


def _point(sheet: Sheet, row: Row, *, crowded: bool) -> None:
    x, y = row["human_advantage_probability"], row["advantage_probability"]
    replaced = bool(row["rejected"])
    colour = BLUE if replaced else RED
    if not crowded and row["low"] is not None and row["high"] is not None:
        line: dict[str, Any] = {"color": colour, "linewidth": 1.1, "alpha": 0.5, "zorder": 2}
        sheet.axes.plot([x, x], [row["low"], row["high"]], **line)
    sheet.axes.plot(
        x,
        y,
        "o" if replaced else "D",
        markersize=7 if replaced else 6,
        color=colour,
        markerfacecolor=colour if replaced else "white",
        markeredgewidth=1.5,
        clip_on=False,
        zorder=3,
    )


def _names(sheet: Sheet, rows: Sequence[Row], least: float) -> None:
    """Write names right of the plot, from top to bottom as the dots stand, with lines to them."""
    from matplotlib.lines import Line2D

    total = HEAD + PLOT + FOOT
    ordered = sorted(rows, key=lambda r: (-r["advantage_probability"], r["annotator"]))
    wanted = [FOOT + PLOT * (row["advantage_probability"] - least) / (1 - least) for row in ordered]
    heights = spread(wanted, 18, FOOT + 9, FOOT + PLOT - 9)
    for row, dot, height in zip(ordered, wanted, heights, strict=True):
        x = LEFT + PLOT * (row["human_advantage_probability"] - least) / (1 - least)
        across = [x / WIDTH, (LEFT + PLOT + 8) / WIDTH]
        sheet.figure.add_artist(
            Line2D(across, [dot / total, height / total], color=LINE, linewidth=0.7, zorder=0.5)
        )
        name = clip(clean(row["annotator"]), 11)
        sheet.write(
            LEFT + PLOT + 11, height, name, whole=row["annotator"], fontsize=SMALL, color=SOFT
        )
