"""Charts, one per file: ``@chart(...)`` on a function named like the file.

The docstring after its first line tells readers how to read the chart. Its parameters name the
frames that it reads: for a study the frames of ``tasks.results.Conclusions``; for a calibration
``alt_tests``, ``metric_tests``, ``advantages`` or ``agreement``. A page has the charts of its
frames.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tasks.drawing.spec import Spec
from tasks.kit.catalogue import Catalogue, modules


@dataclass(frozen=True)
class Chart:
    """A pure function from frames to panels, each one a Vega-Lite spec: plain data."""

    name: str
    order: int
    """Place on the page, from 1."""
    title: str
    reading: str
    """A few sentences: how to read it."""
    reads: tuple[str, ...]
    draw: Callable[..., list[Spec]]

    def __call__(self, **frames: pl.DataFrame) -> list[Spec]:
        """Draw the panels, reading only the frames that the function names."""
        return self.draw(**{frame: frames[frame] for frame in self.reads})


def chart(*, order: int, title: str) -> Callable[[Callable[..., list[Spec]]], Chart]:
    """Declare a chart."""

    def declare(draw: Callable[..., list[Spec]]) -> Chart:
        reads = tuple(inspect.signature(draw).parameters)
        reading = " ".join((inspect.getdoc(draw) or "").split("\n")[2:])
        return Chart(getattr(draw, "__name__", ""), order, title, reading, reads, draw)

    return declare


def charts_of(*frames: str) -> list[Chart]:
    """Return the charts that read nothing but these frames, in their order on the page."""
    chosen = (each for each in CHARTS.values() if {*each.reads} <= {*frames})
    return sorted(chosen, key=lambda each: each.order)


CHARTS: Catalogue[Chart] = modules("chart", __name__, Path(__file__).parent, Chart)
