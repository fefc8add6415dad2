"""A canvas for charts: fixed sizes in pixels, text measured as browsers do, stable bytes."""

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

from tasks.reporting.wording import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from collections.abc import Iterable

from tasks.reporting.wording import clip, columns, short_names

WIDTH = 480
INK, SOFT, FAINT = "#1f2933", "#5b6670", "#c5ccd3"
BAND, LINE = "#e9eef2", "#9aa5b1"
BLUE, RED = "#0072b2", "#b64a00"  # Okabe and Ito's, the red darkened for text on white
BIG, MIDDLE, SMALL = 13.0, 12.0, 10.5
BOX = "\N{WHITE SQUARE}"
PNG_DPI = 216
SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": LINE,
    "axes.linewidth": 0.8,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "text.color": INK,
    "figure.dpi": 72.0,  # so that one point is one pixel
}
# matplotlib's settings are shared by all threads.
_SETTINGS = threading.Lock()


class Label(NamedTuple):
    """A text to put into the drawing, and the whole text if it was clipped."""

    text: str
    whole: str = ""


class Picture(NamedTuple):
    """A panel as files."""

    svg: str
    png: bytes


_kept: ContextVar[list[Picture] | None] = ContextVar("_kept", default=None)


@contextmanager
def pictures() -> Iterator[list[Picture]]:
    """Also keep everything that is drawn as separate pictures."""
    kept: list[Picture] = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


class Sheet:
    """One panel: a plot at a fixed place, and texts that never pass through a font here."""

    def __init__(self, key: str, height: float, plot: tuple[float, float, float, float]) -> None:
        """Place ``plot`` (left, bottom, width, height) on a sheet ``WIDTH`` wide, in pixels."""
        from matplotlib.figure import Figure

        left, bottom, across, up = plot
        self.key = key
        self.plot = plot
        self.figure = Figure(figsize=(WIDTH / 72, height / 72))
        box = (left / WIDTH, bottom / height, across / WIDTH, up / height)
        self.axes: Axes = self.figure.add_axes(box)
        self._labels: dict[str, Label] = {}

    def write(
        self, x: float, y: float, text: str, *, whole: str = "", rows: bool = False, **style: Any
    ) -> None:
        """Write ``text`` at pixels of the sheet; with ``rows``, y counts the plot's rows."""
        from matplotlib.transforms import Affine2D, blended_transform_factory

        gid = f"label-{len(self._labels)}"
        self._labels[gid] = Label(clean(text), clean(whole))
        # Measured and drawn in letters that every font has; render() puts the text back.
        stand_in = "".join(c if c.isascii() else "M" for c in self._labels[gid].text)
        # Pixels of the sheet, however many of a picture's these are.
        across = Affine2D().scale(1 / 72) + self.figure.dpi_scale_trans
        down = self.axes.transData if rows else across
        self.figure.text(
            x,
            y,
            stand_in,
            gid=gid,
            transform=blended_transform_factory(across, down),
            **{"fontsize": MIDDLE, "va": "center_baseline", **style},
        )

    def render(self, description: str) -> str:
        """Return the sheet as inline SVG."""
        target = io.BytesIO()
        self.figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
        root = ET.fromstring(target.getvalue())  # noqa: S314 (our own drawing)
        _strip(root)
        _rename(root, self.key)
        for element in list(root.iter(f"{{{SVG}}}g")):
            label = self._labels.get(element.get("id", "").removeprefix(f"{self.key}-"))
            if label:
                _put(element, label)
        root.set("role", "img")
        root.set("aria-label", clean(description))
        ET.register_namespace("", SVG)
        drawn = ET.tostring(root, encoding="unicode")
        kept = _kept.get()
        if kept is not None:
            width, height = (round(inches * 72) for inches in self.figure.get_size_inches())
            size = f'<svg width="{width}" height="{height}"'
            kept.append(Picture(drawn.replace("<svg", size, 1), self._png()))
        return drawn

    def _png(self) -> bytes:
        """Return the sheet in pixels, where a letter that no font here has is a box."""
        from matplotlib.font_manager import findfont
        from matplotlib.ft2font import FT2Font

        known = FT2Font(findfont("DejaVu Sans")).get_charmap()
        for text in self.figure.texts:
            label = self._labels.get(str(text.get_gid()))
            if label:
                text.set_text("".join(c if ord(c) in known else BOX for c in label.text))
        target = io.BytesIO()
        self.figure.savefig(target, format="png", dpi=PNG_DPI, metadata={"Software": None})
        return target.getvalue()


@contextmanager
def settings(salt: str) -> Iterator[None]:
    """Draw with this project's settings alone, whatever the user's are."""
    import matplotlib as mpl

    with _SETTINGS, mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**STYLE, "svg.hashsalt": salt})
        yield


def _strip(root: ET.Element) -> None:
    """Leave size to the page and drop what only other programs read."""
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)


def _rename(root: ET.Element, key: str) -> None:
    """Make ids unique on a page with several drawings."""
    for element in root.iter():
        for attribute, value in list(element.attrib.items()):
            if attribute == "id":
                element.set("id", f"{key}-{value}")
            elif attribute in {"href", f"{{{LINK}}}href"}:
                del element.attrib[attribute]
                element.set("href", re.sub(r"^#", f"#{key}-", value))
            elif "url(#" in value:
                element.set(attribute, value.replace("url(#", f"url(#{key}-"))


def _put(group: ET.Element, label: Label) -> None:
    for text in group.iter(f"{{{SVG}}}text"):
        text.text = label.text
    if label.whole and label.whole != label.text:
        title = ET.Element(f"{{{SVG}}}title")
        title.text = label.whole
        group.insert(0, title)


CHARACTERS = 23
MARK = "(simulated)"


class Name(NamedTuple):
    """The name of a judge on two lines; the lower one may be its mark, or empty."""

    upper: str
    lower: str
    whole: str

    @property
    def marked(self) -> bool:
        """Tell whether the lower line is the mark of a simulated judge."""
        return self.lower == MARK


def names(rows: Iterable[dict[str, Any]], width: int = CHARACTERS) -> dict[str, Name]:
    """Map ``who`` of each row to its name; names are unique.

    A simulated judge has one line and its mark, any other up to two lines.
    """
    marked = {row["who"]: bool(row["simulated"]) for row in rows}
    one = short_names([who for who, mark in marked.items() if mark], width)
    # A line may end early to break well, so two of them hold a little less than twice its width.
    two = short_names([who for who, mark in marked.items() if not mark], 2 * width - 8)
    return {
        **{who: Name(text, MARK, who) for who, text in one.items()},
        **{who: Name(*_break(text, width), who) for who, text in two.items()},
    }


def _break(text: str, width: int) -> tuple[str, str]:
    """Break a text that is too wide at the last good place, else where it must."""
    if columns(text) <= width:
        return text, ""
    places = [m.end() for m in re.finditer(r"[-/_.: …]", text)]
    fits = [p for p in places if columns(text[:p]) <= width and columns(text[p:]) <= width]
    after_provider = [p for p in fits if text[p - 1] == "/"]
    place = [*fits, *after_provider][-1] if fits else len(clip(text, width, tail=0)) - 1
    return text[:place].rstrip(), clip(text[place:].lstrip(), width)
