"""All pairs of the judges of a panel at once, on the items that both judged."""

from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.statistics._bootstrap import (
    COLUMNS_AT_ONCE,
    MOST_CLUSTERS,
    by_chance,
    percentiles,
    resampled,
    weights,
)
from tasks.statistics._cluster_variance import effective_clusters
from tasks.statistics._intervals import LEVEL
from tasks.statistics._panels import Panel
from tasks.statistics._quantiles import widened
from tasks.statistics._swaps import Pairs, Sums

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]
"""Sums of the first and of the second judge of each pair."""

Value = Callable[..., Floats]
"""From the sides of some columns, shape (..., pairs) each, to what is estimated."""


class Duel(NamedTuple):
    """A panel by pairs of judges: columns are pairs, and clusters whose values are whole first."""

    panel: Panel
    pairs: Pairs
    order: NDArray[np.intp]
    whole: int
    """How many clusters have every value of every judge."""

    @classmethod
    def of(cls, panel: Panel) -> "Duel":
        """Pair all judges, by name."""
        first, second = np.triu_indices(len(panel.judges), 1)
        lacking = sum(np.isnan(table) for table in panel.values.values())
        gaps = panel.sums(np.asarray(lacking)).sum(axis=1) > 0
        order = np.argsort(gaps, kind="stable")
        return cls(panel, Pairs(first, second), order, int((~gaps).sum()))

    def shared(self, name: str) -> NDArray[np.bool_]:
        """Tell of which items both judges of each pair have a value."""
        told = ~np.isnan(self.panel.values[name])
        both: NDArray[np.bool_] = told[:, self.pairs.first] & told[:, self.pairs.second]
        return both

    def of_pairs(self, name: str, both: NDArray[np.bool_]) -> Sides:
        """Return cluster sums of the first and of the second judge over items in ``both``."""
        values = np.nan_to_num(self.panel.values[name])
        if both.all():
            sums = self.panel.sums(values)
            return sums[:, self.pairs.first], sums[:, self.pairs.second]
        first, second = (
            self.panel.sums(np.where(both, values[:, side], 0.0)) for side in self.pairs
        )
        return first, second

    def sums(self, name: str, first: Floats, second: Floats) -> Sums:
        """Return the differences of cluster sums as permutation takes them."""
        whole, rest = self.order[: self.whole], self.order[self.whole :]
        return Sums(self._by_judge(name)[whole], (first - second)[rest])

    def bounds(self, columns: dict[str, Sides], used: NDArray[np.bool_], value: Value) -> Floats:
        """Return the percentile interval of each pair by cluster bootstrap, shape (2, pairs).

        Widened for few clusters; not a number where no draws are wanted.

        Parameters
        ----------
        columns
            By the name of a value of the panel, its cluster sums of both judges.
        used
            Which items count for each pair.
        value
            Takes the sides of all columns, in their order.
        """
        count, many = len(self.pairs.first), self.panel.clusters
        if not (by_chance() and 2 <= many <= MOST_CLUSTERS):
            return np.full((2, count), np.nan)
        judged, clusters = self._drawn([*columns]), effective_clusters(self.panel.sums(used))
        found = [np.empty((2, 0))]
        for at in range(0, count, COLUMNS_AT_ONCE):
            some = slice(at, at + COLUMNS_AT_ONCE)
            own = [(one[:, some], other[:, some]) for one, other in columns.values()]
            point = value(*((one.sum(axis=0), other.sum(axis=0)) for one, other in own))
            level = widened(LEVEL, np.maximum(clusters[some], 2))
            drawn = value(*self._sides(judged, own, some))
            found.append(np.array(percentiles(point, drawn, level)))
        return np.concatenate(found, axis=1)

    def _by_judge(self, name: str) -> Floats:
        return self.panel.sums(np.nan_to_num(self.panel.values[name]))

    def _drawn(self, names: list[str]) -> list[Floats]:
        """Return the sums of the whole clusters of each draw, by judge, of each column."""
        own = np.hstack([self._by_judge(name) for name in names])
        own[self.order[self.whole :]] = 0.0
        return np.hsplit(resampled(own), len(names))

    def _sides(self, judged: list[Floats], own: list[Sides], some: slice) -> list[Sides]:
        """Return the sums of each draw by pair: those of whole clusters, and of the others."""
        rest = self.order[self.whole :]
        first, second = (judge[some] for judge in self.pairs)
        sides = [(draws[:, first], draws[:, second]) for draws in judged]
        if not rest.size:
            return sides
        table = np.hstack([side[rest] for pair in own for side in pair])
        start = 0
        for drawn in weights(self.panel.clusters):
            more = np.hsplit(drawn[:, rest] @ table, 2 * len(own))
            rows = slice(start, start + len(drawn))
            for side, sums in zip(chain.from_iterable(sides), more, strict=True):
                side[rows] += sums
            start = rows.stop
        return sides
