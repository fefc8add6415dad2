"""Panels with one row per judge: names on the left, a plot, values on the right."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from tasks.drawing.canvas import BIG, FAINT, INK, SMALL, SOFT, Name, Sheet, names
from tasks.reporting.wording import clean, clip, in_report_order, number

NAMES, RIGHT = 186, 386
HEAD, ROW, FOOT = 56, 36, 46
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Row = dict[str, Any]


def panels(frame: pl.DataFrame) -> Iterator[tuple[int, str, str, list[Row]]]:
    """Yield number, perturbation, kind and rows of each perturbation, promote before detract.

    Rows have a ``name``; the largest estimate comes first, those without one last.
    """
    ordered = in_report_order(frame)
    known = names(ordered.to_dicts())
    groups = ordered.partition_by("kind", "perturbation", maintain_order=True, as_dict=True)
    for index, ((kind, perturbation), group) in enumerate(groups.items(), 1):
        rows = [{**row, "name": known[row["who"]]} for row in group.to_dicts()]
        yield index, str(perturbation), str(kind), rows


def row_sheet(key: str, title: str, subtitle: str, rows: Sequence[Row]) -> Sheet:
    """Return a sheet with a heading and the judges' names; row ``i`` of the plot is at y = i."""
    up = ROW * len(rows)
    height = HEAD + up + FOOT
    sheet = Sheet(key, height, (NAMES, FOOT, RIGHT - NAMES, up))
    sheet.write(
        2, height - 14, clip(clean(title), 46), whole=title, fontsize=BIG, fontweight="bold"
    )
    sheet.write(2, height - 34, subtitle, fontsize=SMALL, color=SOFT)
    sheet.axes.set_ylim(len(rows) - 0.5, -0.5)
    sheet.axes.set_yticks([])
    for y, row in enumerate(rows):
        write_name(sheet, NAMES - 12, y, row["name"])
    for y in range(1, len(rows)):
        sheet.axes.axhline(y - 0.5, color=FAINT, linewidth=0.5, alpha=0.6, zorder=0)
    return sheet


def write_name(sheet: Sheet, x: float, y: float, name: Name) -> None:
    """Write a name on one or two lines that end at ``x``."""
    lift = 0.2 if name.lower else 0.0
    sheet.write(x, y - lift, name.upper, whole=name.whole, rows=True, ha="right")
    small: dict[str, Any] = {"fontsize": SMALL, "color": SOFT} if name.marked else {}
    if name.lower:
        sheet.write(x, y + 0.22, name.lower, whole=name.whole, rows=True, ha="right", **small)


def write_result(sheet: Sheet, y: float, text: str, below: str, color: str = SOFT) -> None:
    """Write a number and a few words at the right of row ``y``."""
    x = RIGHT + 10
    sheet.write(x, y - 0.18, text, rows=True, color=INK)
    sheet.write(x, y + 0.24, below, rows=True, fontsize=SMALL, color=color)


def not_estimable(sheet: Sheet, y: float) -> None:
    """Say in the plot that a row has no estimate."""
    middle = (NAMES + RIGHT) / 2
    style: dict[str, Any] = {"fontsize": SMALL, "fontstyle": "italic", "color": SOFT}
    sheet.write(middle, y, "not estimable", rows=True, ha="center", **style)


def scale(sheet: Sheet, low: float, high: float, note: str, ends: tuple[str, str]) -> None:
    """Set the limits of x, with round ticks, and write what x is and what its ends mean."""
    step = next((s for s in STEPS if (high - low) / s <= 6), STEPS[-1])
    first = -int(-low / step + 1e-9) if low < 0 else int(low / step + 1 - 1e-9)
    ticks = [t * step for t in range(first, int(high / step + 1e-9) + 1)]
    digits = 2 if step < 0.1 else 1
    sheet.axes.set_xlim(low, high)
    sheet.axes.set_xticks(ticks, [tick_label(t, digits) for t in ticks])
    sheet.axes.grid(visible=True, axis="x", color=FAINT, linewidth=0.5, zorder=0)
    sheet.axes.set_axisbelow(True)
    sheet.axes.tick_params(axis="x", length=3)
    places = ((NAMES, "left"), ((NAMES + RIGHT) / 2, "center"), (RIGHT, "right"))
    for (x, side), text in zip(places, (ends[0], note, ends[1]), strict=True):
        sheet.write(x, 12, text, fontsize=SMALL, color=SOFT, ha=side)


def tick_label(value: float, digits: int) -> str:
    """Write a tick; nought is plain ``0``."""
    return number(value, digits) if round(value, digits) else "0"
