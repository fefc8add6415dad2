"""Matrices: a number in each cell, whose tint says how large it is."""

from collections.abc import Sequence
from typing import NamedTuple

from tasks.drawing.names import Name
from tasks.drawing.row_panels import name_texts, tip
from tasks.drawing.spec import INK, LINE, SMALL, SOFT, Spec, by_tone, mark, panel, pixel
from tasks.reporting.wording import clean

STEP = 38


class Column(NamedTuple):
    """The heading of a column."""

    key: str
    name: str
    under: str


class MatrixCell(NamedTuple):
    """A number, and a smaller one below it."""

    name: Name
    """Name of its row; a row whose whole name is empty is about all judges."""
    column: str
    text: str
    below: str
    tone: str
    tint: float
    lines: tuple[str, ...]
    """What hovering shows."""


def matrix(
    title: str,
    subtitle: str,
    cells: Sequence[MatrixCell],
    columns: Sequence[Column],
    *,
    width: int,
    about: str,
    line_above: Name | None,
) -> Spec:
    """Return a matrix; ``line_above`` is the row that a line parts from those before it."""
    values = [
        {
            "row": cell.name.row,
            "who": clean(cell.name.whole),
            "perturbation": clean(cell.column),
            "text": cell.text,
            "below": cell.below,
            "tone": cell.tone,
            "tint": round(cell.tint, 3),
            "tip": tip(
                {"who": cell.name.whole or cell.name.upper, "simulated": cell.name.marked},
                *cell.lines,
            ),
        }
        for cell in cells
    ]
    rows = [name.values() for name in dict.fromkeys(cell.name for cell in cells)]
    headings = [{"perturbation": clean(c.key), "head": c.name, "under": c.under} for c in columns]
    y: Spec = {"field": "row", "type": "nominal", "sort": None, "axis": None}
    x: Spec = {"field": "perturbation", "type": "nominal", "sort": None, "axis": None}
    tight: Spec = {"scale": {"paddingInner": 0.08, "paddingOuter": 0.04}}
    at: Spec = {"x": x | tight, "y": y | tight}
    head: Spec = {"x": x, "fontSize": SMALL}
    tint: Spec = {"field": "tint", "type": "quantitative", "scale": None}
    grey: Spec = {"value": SOFT}
    top = any(row["under"] for row in headings)
    layers = [
        mark("rect", **at, color=by_tone(), fillOpacity=tint, tooltip="tip"),
        mark("text", headings, **head, y=pixel(-24 if top else -10), text="head"),
        *(
            layer | {"data": {"values": rows}}
            for layer in name_texts(rows, y=y, x=pixel(-12), align="right")
        ),
        mark("text", **at, text="text", where="!below", tooltip="tip"),
        mark("text", **at, text="text", where="below", dy=-6, tooltip="tip"),
        mark("text", **at, text="below", where="below", dy=9, fontSize=SMALL, color=grey),
        mark("rule", [{}], y=pixel(0), color={"value": LINE}, strokeWidth=1),
    ]
    if top:
        layers.append(mark("text", headings, **head, y=pixel(-10), text="under", color=grey))
    if line_above is not None:
        edge = y | {"bandPosition": 0}
        above = [{"row": line_above.row}]
        layers.append(mark("rule", above, y=edge, color={"value": INK}, strokeWidth=1.2))
    size: Spec = {"width": {"step": width}, "height": {"step": STEP}}
    return panel(title, subtitle, about=about, layers=layers, data={"values": values}, **size)
