"""Metrics of agreement, one per file: ``@metric(...)`` on a function named like the file.

A metric says how well one label fits the others' labels of its item. Its function gets a panel of
human labels once, and returns what tells, for the labels of any judge, by how much the judge fits
better than the human left out: above 0, below 0, or 0 for a tie.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tasks.calibration.label_values import Codes, Floats, LabelKind, Panel
from tasks.kit.catalogue import Catalogue, modules
from tasks.kit.user_folder import own_folder

Gaps = Callable[[Codes], Floats]
"""Function from a judge's label per item (none missing) to a gap per row of the panel's table."""


@dataclass(frozen=True)
class Metric:
    """How well a label fits the labels of others."""

    name: str
    labels: LabelKind
    """What labels must be; those that are not cannot be read."""
    source: str
    prepare: Callable[[Panel], Gaps]
    summary: str


def metric(*, labels: LabelKind, source: str) -> Callable[[Callable[[Panel], Gaps]], Metric]:
    """Declare a metric."""

    def declare(prepare: Callable[[Panel], Gaps]) -> Metric:
        summary = (prepare.__doc__ or "").strip().split("\n")[0]
        return Metric(getattr(prepare, "__name__", ""), labels, source, prepare, summary)

    return declare


METRICS: Catalogue[Metric] = modules(
    "metric", __name__, Path(__file__).parent, Metric, own=partial(own_folder, "metrics")
)
