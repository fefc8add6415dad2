"""Marks that charts share: dots, intervals, lines to names, and cells of a matrix."""

from typing import Any

from tasks.drawing.canvas import BLUE, SMALL, SOFT, WIDTH, Sheet

Ends = tuple[float | None, float | None]
BAR: dict[str, Any] = {"color": BLUE, "linewidth": 2, "solid_capstyle": "butt"}
CENTRED: dict[str, Any] = {"rows": True, "ha": "center"}


def dot(sheet: Sheet, x: float, y: float, size: float = 8, **style: Any) -> None:
    """Draw a filled dot, or a hollow mark with ``hollow=True``."""
    style = {"marker": "o", "color": BLUE, "clip_on": False, "zorder": 3, **style}
    if style.pop("hollow", False):
        style["markerfacecolor"] = "white"
    sheet.axes.plot(x, y, linestyle="none", markersize=size, **style)


def interval_line(sheet: Sheet, ends: Ends, y: float, **style: Any) -> None:
    """Draw an interval along row ``y``; nothing if an end is missing."""
    low, high = ends
    if low is not None and high is not None:
        sheet.axes.plot([low, high], [y, y], **{**BAR, **style})


def upright_line(sheet: Sheet, x: float, ends: Ends, **style: Any) -> None:
    """Draw an interval upwards at ``x``; nothing if an end is missing."""
    low, high = ends
    if low is not None and high is not None:
        sheet.axes.plot([x, x], [low, high], **style)


def leader(sheet: Sheet, *places: tuple[float, float], **style: Any) -> None:
    """Draw a line between places of the sheet, in pixels; or mark a single place."""
    from matplotlib.lines import Line2D

    # matplotlib keeps lines of the figure in shares of it.
    total = sheet.figure.get_size_inches()[1] * 72
    shares = [x / WIDTH for x, _ in places], [y / total for _, y in places]
    sheet.figure.add_artist(Line2D(*shares, **style))


def axis_title(sheet: Sheet, x: float, text: str) -> None:
    """Write the title of the vertical axis, turned, at the middle of the plot."""
    middle = sheet.plot[1] + sheet.plot[3] / 2
    style: dict[str, Any] = {"fontsize": SMALL, "color": SOFT, "ha": "center"}
    sheet.write(x, middle, text, rotation=90, rotation_mode="anchor", **style)


def shaded_cell(sheet: Sheet, place: tuple[int, int], color: str, tint: float, gap: float) -> None:
    """Fill a cell of a matrix with a tint; ``gap`` is left free above and below it."""
    x, y = place
    sheet.axes.fill(
        [x + 0.03, x + 0.97, x + 0.97, x + 0.03],
        [y + gap, y + gap, y + 1 - gap, y + 1 - gap],
        color=color,
        alpha=tint,
        linewidth=0,
        zorder=1,
    )


def cell_text(
    sheet: Sheet, middle: float, y: float, text: str, below: str, *, lift: float = 0.36
) -> None:
    """Write a number into a cell of a matrix, and a smaller one below it."""
    sheet.write(middle, y + (lift if below else 0.5), text, **CENTRED)
    if below:
        sheet.write(middle, y + 0.72, below, fontsize=SMALL, color=SOFT, **CENTRED)
