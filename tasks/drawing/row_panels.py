"""Panels with one row per judge: names on the left, a plot, values on the right."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from schemas.frame import Row
from tasks.drawing.names import Name, names
from tasks.drawing.spec import (
    INK,
    SMALL,
    SOFT,
    Spec,
    axis,
    by_tone,
    mark,
    note,
    panel,
    pixel,
    scaled,
)
from tasks.reporting.wording import clean, clip, count, in_report_order, interval, marked, number

PLOT, STEP = 200, 36
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
Y: Spec = {
    "field": "row",
    "type": "nominal",
    "sort": None,
    "axis": {
        **dict.fromkeys(("labels", "ticks", "domain"), False),
        "title": None,
        "grid": True,
        "tickBand": "extent",
        "gridOpacity": 0.6,
    },
}
"""Rows in the order of the data."""


class AxisScale(NamedTuple):
    """The horizontal scale of a row panel."""

    low: float
    high: float
    note: str
    ends: tuple[str, str]
    """What its ends mean."""
    ticks: tuple[float, ...] = ()
    """Round numbers if there are none."""
    digits: int | None = None


def panels(frame: pl.DataFrame) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield perturbation, kind and rows of each perturbation, promote before detract.

    Rows have a ``name``; the largest estimate comes first, those without one last.
    """
    ordered = in_report_order(frame)
    known = names(ordered.to_dicts())
    groups = ordered.partition_by("kind", "perturbation", maintain_order=True, as_dict=True)
    for (kind, perturbation), group in groups.items():
        rows = [{**row, "name": known[row["who"]]} for row in group.to_dicts()]
        yield str(perturbation), str(kind), rows


def values_of(row: Row, text: str, below: str, *lines: str, **more: Any) -> Row:
    """Return the values of a row: its name, what stands beside it, and what hovering shows."""
    name: Name = row["name"]
    said = {"text": text, "below": clean(below), "tip": tip(row, *lines)}
    return {**name.values(), **said, **more}


def tip(row: Row, *lines: str) -> str:
    """Return what hovering shows: who it is, and lines about it."""
    who = marked(clean(row["who"]), simulated=row["simulated"])
    return "\n".join([who, *(clean(line) for line in lines if line)])


def sizes(row: Row) -> str:
    """Say how many samples and questions a number rests on."""
    return f"n {count(row.get('n'), 'sample')}, {count(row.get('clusters'), 'question')}"


def measured(
    what: str, value: float | None, low: float | None = None, high: float | None = None
) -> str:
    """Write a number with its name and interval; empty without one."""
    if value is None:
        return ""
    ends = f" {interval(low, high)}" if low is not None and high is not None else ""
    return f"{what} {number(value)}{ends}"


def row_panel(
    title: tuple[str, str],
    values: Sequence[Row],
    scale: AxisScale,
    layers: Sequence[Spec],
    about: str,
    **usermeta: str,
) -> Spec:
    """Return the panel of these rows, with a heading and the judges' names.

    ``usermeta`` says what the whole panel is about, so that a page can hide it.
    """
    return panel(
        clip(clean(title[0]), 46),
        title[1],
        about=about,
        layers=[_frame(scale), *layers, *row_texts(values), *_ends(scale)],
        data={"values": list(values)},
        width=PLOT,
        height={"step": STEP},
        usermeta={name: clean(text) for name, text in usermeta.items()},
    )


def row_texts(values: Sequence[Row]) -> list[Spec]:
    """Return names, results and what hovering over a row shows.

    A row without a result has in the plot what is ``missing``, and below it ``why``.
    """
    beside: Spec = {"y": Y, "tooltip": "tip"}
    name: Spec = {**beside, "x": pixel(-12), "align": "right"}
    below = by_tone() if "tone" in values[0] else {"value": SOFT}
    result: Spec = {**beside, "x": pixel("width"), "dx": 10, "align": "left"}
    layers = [
        mark("rect", **beside, x=pixel(0), x2=pixel("width"), fillOpacity={"value": 0}),
        *name_texts(values, **name),
        mark("text", **result, text="text", dy=-7),
        mark("text", **result, text="below", dy=8, fontSize=SMALL, color=below),
    ]
    if any(value.get("missing") for value in values):
        reasons = any(value.get("why") for value in values)
        small: Spec = {"fontSize": SMALL, "fontStyle": "italic", "color": {"value": SOFT}}
        missing: Spec = {"x": {"value": {"expr": "width / 2"}}, "y": Y, **small}
        layers.append(
            mark("text", **missing, text="missing", where="missing", dy=-7 if reasons else 0)
        )
        if reasons:
            layers.append(mark("text", **missing, text="why", where="why", dy=8))
    return layers


UNDER: Spec = {"condition": {"test": "datum.marked", "value": SOFT}, "value": INK}
"""Colour of the lower line of a name: a mark is grey."""


def name_texts(values: Sequence[Row], **place: Any) -> list[Spec]:
    """Return names on one line, and those on two."""
    layers = []
    if any(not value["under"] for value in values):
        layers.append(mark("text", **place, text="name", where="!under"))
    if any(value["under"] for value in values):
        small: Spec = {**place, "fontSize": SMALL, "color": UNDER}
        layers += [
            mark("text", **place, text="name", where="under", dy=-7),
            mark("text", **small, text="under", where="under", dy=8),
        ]
    return layers


def _frame(scale: AxisScale) -> Spec:
    """Draw the scale, which an invisible point at its lower end stands on."""
    low, high = scale.low, scale.high
    step = next((s for s in STEPS if (high - low) / s <= 6), STEPS[-1])
    first = -int(-low / step + 1e-9) if low < 0 else int(low / step + 1 - 1e-9)
    ticks = scale.ticks or [round(t * step, 9) for t in range(first, int(high / step + 1e-9) + 1)]
    digits = scale.digits if scale.digits is not None else 2 if step < 0.1 else 1
    x = scaled("x", "low", low, high, axis(ticks, digits, scale.note, grid=True, titlePadding=6))
    return mark("point", [{"low": low}], x=x, opacity=0, size=1)


def _ends(scale: AxisScale) -> list[Spec]:
    sides = ((pixel(0), "left"), (pixel("width"), "right"))
    return [
        note(end, x=place, y=pixel("height"), dy=27, align=side)
        for (place, side), end in zip(sides, scale.ends, strict=True)
    ]


def interval_rule(low: str = "low", high: str = "high", **more: Any) -> Spec:
    """Return the intervals along the rows."""
    return mark("rule", x=low, x2=high, y=Y, **more)
