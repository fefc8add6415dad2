"""Statistics, one family per file: ``@statistic(...)`` on a function with the file's name.

Its parameter names are the frames it reads: ``tallies, shifts, contests, annotations``.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.kit.catalogue import Catalogue, modules


@dataclass(frozen=True)
class Statistic:
    """A pure function from frames to estimates."""

    name: str
    gives: tuple[str, ...]
    """Names of the statistics that it returns."""
    reads: tuple[str, ...]
    source: str
    measure: Callable[..., DataFrame[Estimates]]
    summary: str

    def __call__(self, **frames: pl.DataFrame) -> DataFrame[Estimates]:
        """Compute the estimates from the frames that the function names."""
        return Estimates.of(self.draft(**frames))

    def draft(self, **frames: pl.DataFrame) -> DataFrame[Estimates]:
        """Compute the estimates without validation, for callers that validate them together."""
        from tasks.counting.reasons import explained

        rows = self.measure(**{frame: frames[frame] for frame in self.reads})
        return cast("DataFrame[Estimates]", explained(rows))


def statistic(
    *, source: str, gives: tuple[str, ...] = ()
) -> Callable[[Callable[..., DataFrame[Estimates]]], Statistic]:
    """Register a function as a statistic of the catalogue."""

    def declare(measure: Callable[..., DataFrame[Estimates]]) -> Statistic:
        name = getattr(measure, "__name__", "")
        reads = tuple(inspect.signature(measure).parameters)
        summary = (measure.__doc__ or "").strip().split("\n")[0]
        return Statistic(name, gives or (name,), reads, source, measure, summary)

    return declare


STATISTICS: Catalogue[Statistic] = modules("statistic", __name__, Path(__file__).parent, Statistic)
