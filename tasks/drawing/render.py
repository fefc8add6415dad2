"""Specs drawn: as SVG for a page, and as pictures that stand alone."""

import html
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

from tasks.drawing.spec import LOOK, Spec, with_variables

VEGA_LITE = "6.4"
"""Version that draws the pictures; the runtime of the page has the same."""
PNG_SCALE = 3
MARGIN = 16
"""Pixels around panels, as letters of a browser may be a tenth wider than measured."""
TAG = re.compile(r"<[^<>]+>")
UNSEEN = re.compile(
    r'<path[^<>]*(?: d="(?:M0,0h0v0h0Z)?"| (?:fill-)?opacity="0")[^<>]*/>|<g[^<>]*></g>'
)
"""Shapes that show nothing."""
NEEDLESS = re.compile(
    r' (?:role|aria-[a-z]+)="[^"]*"| pointer-events="none"| (?:stroke-)?opacity="1"'
    r'| text-anchor="start"| font-family="sans-serif"|(?<=\.\d\d)\d+'
)
"""What a page does without in a tag: what Vega says to screen readers about single marks, as the
picture is described as a whole; defaults; the font, which the page has; and further decimals."""


def inline_svg(spec: Spec) -> str:
    """Draw a panel for a page, whose style gives it colours.

    Its letters have the size of those that the script of the page draws in its place.
    """
    drawn = _svg(_on_page(spec))
    width, height = _size(drawn)
    about = html.escape(spec["description"])
    whole = width + 2 * MARGIN
    box = f'width="{whole:g}" viewBox="{-MARGIN} 0 {whole:g} {height:g}"'
    head = f'<svg role="img" aria-label="{about}" {box}>'
    seen = UNSEEN.sub("", drawn.partition(">")[2])
    return head + TAG.sub(lambda tag: NEEDLESS.sub("", tag[0]), seen)


@contextmanager
def drawing_aside() -> Iterator[Callable[[Sequence[Spec]], None]]:
    """Start a process that draws; the block gives it, once, panels for a page that it draws later.

    To draw takes a second in which this process can do nothing else. What the other process does
    not draw, :func:`inline_svg` draws itself.
    """
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "tasks.drawing.svg_process", VEGA_LITE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process, ThreadPoolExecutor(1) as thread:

        def draw(panels: Sequence[Spec]) -> None:
            specs = [json.dumps(_on_page(panel)) for panel in panels]
            drawn = thread.submit(
                lambda: json.loads(process.communicate(f"[{','.join(specs)}]")[0])
            )
            _ahead.update((spec, (drawn, place)) for place, spec in enumerate(specs))

        try:
            yield draw
        finally:
            _ahead.clear()
            process.kill()


_ahead: dict[str, tuple[Future[list[str]], int]] = {}
"""Spec that another process draws -> its drawings, and the place of this one among them."""


def picture(spec: Spec) -> dict[str, bytes]:
    """Draw a panel on a white ground: the files ``svg`` and ``png``."""
    import vl_convert

    whole = spec | {"config": LOOK | {"background": "white"}}
    png = vl_convert.vegalite_to_png(whole, vl_version=VEGA_LITE, scale=PNG_SCALE)
    return {"svg": _svg(whole).encode(), "png": png}


def stacked_svg(specs: Sequence[Spec]) -> str:
    """Draw panels one below another as one picture on a white ground."""
    placed, below, widest = [], MARGIN, 0
    for number, spec in enumerate(specs):
        drawn = _svg(spec | {"config": LOOK | {"background": "white"}})
        size = _size(drawn)
        # Panels have the same ids.
        drawn = re.sub(r'\b(id="|url\(#)', rf"\g<1>p{number}-", drawn)
        place = f'<svg x="{MARGIN}" y="{below}" overflow="visible"'
        placed.append(drawn.replace("<svg", place, 1))
        below += math.ceil(size[1])
        widest = max(widest, math.ceil(size[0]))
    width, below = widest + 2 * MARGIN, below + MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{below}">'
    ground = f'<rect width="{width}" height="{below}" fill="white"/>'
    return f"{head}{ground}{''.join(placed)}</svg>"


def _size(drawn: str) -> tuple[float, float]:
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)
    if size is None:
        raise ValueError(f"{drawn[:80]!r} is not a drawing with a viewBox.")
    return float(size[1]), float(size[2])


def _on_page(spec: Spec) -> Spec:
    found: Spec = with_variables(spec | {"config": LOOK})
    return found


def _svg(spec: Spec) -> str:
    if _ahead and (ahead := _ahead.get(json.dumps(spec))):
        drawings, place = ahead
        # The other process may have been killed, for memory say.
        with suppress(ValueError):
            return drawings.result()[place]
    import vl_convert

    return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
