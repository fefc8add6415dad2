"""Chart of each judge against each annotator, and which annotators it may replace."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages
from tasks.charts import chart
from tasks.charts.position_plane import spread
from tasks.drawing.canvas import BAND, BIG, BLUE, LINE, RED, SMALL, SOFT, Sheet, settings
from tasks.drawing.marks import axis_title, dot, leader, upright_line
from tasks.drawing.row_panels import tick_label
from tasks.reporting.wording import clean, clip, number, with_who

LEFT, PLOT, FOOT, HEAD = 60, 320, 52, 58
MOST = 12
"""Maximum number of judges; those with the highest advantage probability are drawn."""
NAMED = 8
"""Maximum number of annotators who are labelled by name."""
CROWD = 20
"""Maximum number of annotators with intervals, which would hide the dots of more."""

Row = dict[str, Any]


@chart(
    order=13,
    title="Which annotators may a judge replace?",
    reading=(
        "A panel per judge, a dot per annotator left out. Horizontal: how often the "
        "annotator aligns with the others at least as well as the judge. Vertical: how "
        "often the judge aligns at least as well as the annotator, with a 95 % interval. "
        "On the diagonal both align equally well; on the shaded side the judge is worse "
        "by less than epsilon. Filled dot: the judge may replace the annotator (the test "
        "rejects that it is worse by epsilon). Hollow diamond: the test does not reject, "
        "even if the mark lies on the shaded side."
    ),
)
def advantage_plane(advantages: DataFrame[Advantages]) -> list[str]:
    """Draw a panel per judge, the highest advantage first."""
    tested = with_who(advantages.filter("asked", pl.col("rejected").is_not_null()))
    means = tested.group_by("who").agg(mean=pl.col("advantage_probability").mean())
    best = means.sort(-pl.col("mean"), "who").head(MOST)["who"]
    return [
        _panel(f"plane-{at}", tested.filter(pl.col("who") == who).sort("annotator").to_dicts())
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
        return sheet.render(f"Advantage probabilities of {first['who']} and of each annotator")


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
    sheet.write(middle, 14, "the annotator aligns at least as well", ha="center", **style)
    axis_title(sheet, 14, "the judge aligns at least as well")
    sheet.write(LEFT + 8, FOOT + PLOT - 12, "replaceable", **style)
    sheet.write(LEFT + PLOT - 6, FOOT + 12, "not replaceable", ha="right", **style)
    return float(least)


def _point(sheet: Sheet, row: Row, *, crowded: bool) -> None:
    x, y = row["human_advantage_probability"], row["advantage_probability"]
    replaced = bool(row["rejected"])
    colour = BLUE if replaced else RED
    if not crowded:
        ends = row["low"], row["high"]
        upright_line(sheet, x, ends, color=colour, linewidth=1.1, alpha=0.5, zorder=2)
    shape: dict[str, Any] = {} if replaced else {"marker": "D", "hollow": True}
    dot(sheet, x, y, 7 if replaced else 6, color=colour, markeredgewidth=1.5, **shape)


def _names(sheet: Sheet, rows: Sequence[Row], least: float) -> None:
    """Write names right of the plot, from top to bottom as the dots stand, with lines to them."""
    ordered = sorted(rows, key=lambda r: (-r["advantage_probability"], r["annotator"]))
    wanted = [FOOT + PLOT * (row["advantage_probability"] - least) / (1 - least) for row in ordered]
    heights = spread(wanted, 18, FOOT + 9, FOOT + PLOT - 9)
    for row, at, height in zip(ordered, wanted, heights, strict=True):
        x = LEFT + PLOT * (row["human_advantage_probability"] - least) / (1 - least)
        ends = (x, at), (LEFT + PLOT + 8, height)
        leader(sheet, *ends, color=LINE, linewidth=0.7, zorder=0.5)
        name = clip(clean(row["annotator"]), 11)
        sheet.write(
            LEFT + PLOT + 11, height, name, whole=row["annotator"], fontsize=SMALL, color=SOFT
        )
