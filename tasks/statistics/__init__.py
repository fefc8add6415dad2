"""Statistics, one family per file: ``@statistic(...)`` on a function with the file's name.

Its parameter names are the frames it reads: ``tallies, shifts, contests, annotations``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.kit.catalogue import Catalogue, modules

Family = Literal[
    "effect",
    "floor",
    "validity",
    "position",
    "accuracy",
    "agreement",
    "comparison",
    "jury",
    "sequence",
    "drift",
    "correction",
]
"""What an estimate is about."""


@dataclass(frozen=True)
class Statistic:
    """A pure function from frames to estimates."""

    name: str
    gives: tuple[str, ...]
    """Names of the statistics that it returns."""
    families: Mapping[str, Family]
    """The family of each of them."""
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

        rows = explained(self.measure(**{frame: frames[frame] for frame in self.reads}))
        family = pl.col("statistic").replace_strict(self.families, return_dtype=pl.String)
        return cast("DataFrame[Estimates]", rows.with_columns(family=family))


def statistic(
    *,
    source: str,
    family: Family,
    gives: tuple[str, ...] = (),
    other_families: Mapping[str, Family] | None = None,
) -> Callable[[Callable[..., DataFrame[Estimates]]], Statistic]:
    """Register a function as a statistic of the catalogue.

    ``other_families`` names the rows that are not of its ``family``, with theirs.
    """

    def declare(measure: Callable[..., DataFrame[Estimates]]) -> Statistic:
        name = getattr(measure, "__name__", "")
        reads = tuple(inspect.signature(measure).parameters)
        summary = (measure.__doc__ or "").strip().split("\n")[0]
        rows = gives or (name,)
        families = dict.fromkeys(rows, family) | dict(other_families or {})
        return Statistic(name, rows, families, reads, source, measure, summary)

    return declare


STATISTICS: Catalogue[Statistic] = modules("statistic", __name__, Path(__file__).parent, Statistic)
