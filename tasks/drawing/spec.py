"""Parts of Vega-Lite specs: colours, the look of all charts, marks and texts.

A spec is plain data. Names and texts from outside are only ever values of its data, or titles:
never field names, and never a part of an expression.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schemas.frame import Row
from tasks.reporting.wording import clean

Spec = dict[str, Any]


class Colour(str):
    """A colour of pictures, and the variable of the page's style that replaces it there."""

    variable: str

    def __new__(cls, value: str, variable: str) -> "Colour":
        """Join the colour to its variable."""
        colour = super().__new__(cls, value)
        colour.variable = f"var(--{variable})"
        return colour


PAPER, BAND = Colour("#ffffff", "paper"), Colour("#e9eef2", "band")
INK, SOFT = Colour("#1f2933", "ink"), Colour("#5b6670", "soft")
LINE, FAINT = Colour("#9aa5b1", "line"), Colour("#c5ccd3", "faint")
# Okabe and Ito's, darkened for text on white
BLUE, RED = Colour("#0072b2", "blue"), Colour("#b64a00", "red")
GREEN, PURPLE = Colour("#007a5a", "green"), Colour("#a0528a", "purple")
OLIVE = Colour("#8a6d00", "olive")

BIG, MIDDLE, SMALL = 13, 12, 10.5
TONES = {"good": BLUE, "bad": RED, "open": SOFT}
"""What a mark says -> its colour; its shape says the same."""
LOOK: Spec = {
    "background": "transparent",
    "font": "sans-serif",
    # The page describes each picture once, and its tables have the numbers.
    "mark": {"aria": False},
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "frame": "bounds",
        "offset": 12,
        "color": INK,
        "fontSize": BIG,
        "subtitleColor": SOFT,
        "subtitleFontSize": SMALL,
        "subtitlePadding": 5,
    },
    "axis": {
        "aria": False,
        "domainColor": LINE,
        "tickColor": LINE,
        "tickSize": 3,
        "gridColor": FAINT,
        "gridWidth": 0.5,
        "labelColor": SOFT,
        "labelFontSize": SMALL,
        "titleColor": SOFT,
        "titleFontSize": SMALL,
        "titleFontWeight": "normal",
    },
    "text": {"color": INK, "fontSize": MIDDLE, "baseline": "middle"},
    "point": {"filled": True, "opacity": 1, "size": 60, "color": BLUE},
    "rule": {"color": BLUE, "strokeWidth": 2},
    "rect": {"color": BAND},
}
"""The config of every spec."""


def with_variables(value: Any) -> Any:
    """Return a spec whose colours are variables of the page, which may be light or dark."""
    return _mapped(value, lambda each: each.variable if isinstance(each, Colour) else each)


def rounded(value: Any) -> Any:
    """Return a spec whose numbers have five significant digits, which no screen can tell apart."""
    return _mapped(value, lambda each: float(f"{each:.5g}") if isinstance(each, float) else each)


def _mapped(value: Any, changed: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(each, changed) for key, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, changed) for each in value]
    return changed(value)


def panel(title: str, *subtitles: str, about: str, layers: Sequence[Spec], **more: Any) -> Spec:
    """Return a spec of layers, with its title and a description for readers who cannot see it."""
    heading: Spec = {"text": clean(title)}
    if lines := [clean(text) for text in subtitles if text]:
        heading["subtitle"] = lines
    return {"title": heading, "description": clean(about), **more, "layer": list(layers)}


def mark(kind: str, values: Sequence[Row] | None = None, **properties: Any) -> Spec:
    """Return a layer. A dict is a channel, and so is the name of a field as place or text.

    ``where`` keeps the rows for which a field is true, or with ``!`` before it false.
    """
    where = properties.pop("where", "")
    encoding = {
        name: channel(name, value)
        for name, value in properties.items()
        if isinstance(value, dict) or name in FIELDS
    }
    style = {name: value for name, value in properties.items() if name not in encoding}
    layer: Spec = {} if values is None else {"data": {"values": list(values)}}
    if where:
        kept = f"!datum.{where[1:]}" if where.startswith("!") else f"datum.{where}"
        layer["transform"] = [{"filter": kept}]
    return layer | {"mark": {"type": kind} | style, "encoding": encoding}


def note(text: str, **properties: Any) -> Spec:
    """Return a layer with a small grey text at one place of the plot."""
    small: Spec = {"fontSize": SMALL, "color": {"value": SOFT}}
    return mark("text", [{"note": text}], text="note", **small | properties)


FIELDS = {"x", "y", "x2", "y2", "text", "tooltip"}
"""Channels that a field's name stands for."""


def channel(name: str, field: str | Spec) -> Spec:
    """Return the channel of a field: places are quantitative, texts are as they are."""
    if isinstance(field, dict):
        return field
    if name in {"x2", "y2"}:
        return {"field": field}
    return {"field": field, "type": "quantitative" if name in {"x", "y"} else "nominal"}


def pixel(value: float | str) -> Spec:
    """Return a place in pixels of the plot, or its ``width`` or ``height``."""
    return {"value": value}


def by_tone(**colours: str) -> Spec:
    """Return a colour channel by the field ``tone``; some tones may have other colours."""
    return by_name("tone", TONES | colours)


def by_name(field: str, known: Mapping[str, Any]) -> Spec:
    """Return a channel from the values of a field, such as shapes or colours."""
    scale = {"domain": list(known), "range": list(known.values())}
    return {"field": field, "type": "nominal", "legend": None, "scale": scale}


def as_it_is(field: str) -> Spec:
    """Return a channel that takes its values, such as colours, from a field."""
    kind = "quantitative" if field == "size" else "nominal"
    return {"field": field, "type": kind, "legend": None, "scale": None}


def axis(ticks: Sequence[float], digits: int, title: str | None = None, **more: Any) -> Spec:
    """Return an axis with these ticks: ``.2``, ``-.05``, ``1.0``; nought is plain ``0``."""
    text = f"replace(format(datum.value, '.{digits}f'), regexp('^(\N{MINUS SIGN}?)0[.]'), '$1.')"
    # With fewer to count Vega leaves ticks out.
    values: Spec = {"values": list(ticks), "tickCount": len(ticks)}
    labels: Spec = {"labelExpr": f"abs(datum.value) < 1e-9 ? '0' : {text}"}
    return {**values, **labels, "labelOverlap": False, "labelFlush": False, "title": title, **more}


def scaled(name: str, field: str, low: float, high: float, its_axis: Spec) -> Spec:
    """Return the channel of a place on a linear scale with exactly these ends, and its axis."""
    scale: Spec = {"domain": [low, high], "nice": False, "zero": False}
    return channel(name, field) | {"scale": scale, "axis": its_axis}
