"""Judges side by side: one perturbation as all of them saw it, items by judges."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.statistics._groups import Numbers, combined, first_of, most_common, numbered

GROUP = ("dataset", "prompt", "wave", "mode", "perturbation")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Panel:
    """Values of items (rows, those of a cluster together) by judges (columns, sorted by name)."""

    cell: dict[str, Any]
    """What the judges have in common, ``kind`` and ``has_sham`` among it."""
    judges: list[str]
    simulated: list[bool | None]
    votes: NDArray[np.int64]
    """Ballots per pair of each judge, the most common number."""
    values: dict[str, Floats]
    """Not a number where a judge has none."""
    starts: NDArray[np.intp]
    """First row of each cluster."""

    def votes_of(self, arm: str) -> NDArray[np.int64]:
        """Return the votes per pair of each judge in ``arm``, a value of the panel."""
        told = self.values[f"{arm}_votes"]
        found = self.votes.copy()
        some = ~np.isnan(told)
        many = some.any(axis=0)
        most = np.where(some, told, -1).max(axis=0, initial=-1)
        found[many] = most[many]
        # As a rule all pairs of a judge have the same number.
        for judge in np.flatnonzero((some & (told != most)).any(axis=0)):
            values, counts = np.unique(told[some[:, judge], judge], return_counts=True)
            found[judge] = int(values[counts == counts.max()].max())
        return found

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return self.starts.size

    def sums(self, values: NDArray[Any]) -> Floats:
        """Sum rows by cluster."""
        own: Floats = values.astype(np.float64)
        if self.clusters == len(own):
            return own
        total: Floats = np.add.reduceat(own, self.starts, axis=0)
        return total


def primary_shift() -> pl.Expr:
    """Return the shift of the primary endpoint: over the sham where the group has shams."""
    base = pl.when(pl.col("has_sham").any().over(GROUP)).then("sham_score")
    return pl.col("experimental_score") - base.otherwise("control_score")


def panels(shifts: pl.DataFrame, values: Mapping[str, pl.Expr]) -> Iterator[Panel]:
    """Yield a panel per dataset, prompt, wave, mode and perturbation, in their order.

    ``values`` are numbers of each row, null where the judge has none.
    """
    if shifts.is_empty():
        return
    numbers = {name: numbered(shifts[name]) for name in (*GROUP, "judge", "sample", "cluster")}
    group, present = combined([numbers[name] for name in GROUP])
    rows = shifts.select(
        *(pl.col(name) for name in (*GROUP, "judge", "kind", "has_sham", "simulated", "votes")),
        **{name: value.cast(pl.Float64) for name, value in values.items()},
    )
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(len(present) + 1))
    codes = [numbers[name][0] for name in ("judge", "sample", "cluster")]
    for first, last in pairwise(ends.tolist()):
        at = order[first:last]
        yield _panel(rows[at], *(code[at] for code in codes), values=list(values))


def _panel(
    rows: pl.DataFrame, judge: Numbers, sample: Numbers, cluster: Numbers, *, values: list[str]
) -> Panel:
    _, column = np.unique(judge, return_inverse=True)
    seen = first_of(column)
    row, starts = _places(sample, cluster)
    table: dict[str, Floats] = {}
    for name in values:
        table[name] = np.full((int(row.max()) + 1, len(seen)), np.nan)
        table[name][row, column] = rows[name].to_numpy()
    cell = rows[0].select(pl.col(*GROUP, "kind").cast(pl.String)).to_dicts()[0]
    return Panel(
        {**cell, "has_sham": bool(rows["has_sham"].any())},
        rows["judge"][seen].cast(pl.String).to_list(),
        rows["simulated"][seen].to_list(),
        most_common(column, rows["votes"], len(seen)),
        table,
        starts,
    )


def _places(sample: Numbers, cluster: Numbers) -> tuple[Numbers, Numbers]:
    """Return the row of each sample, those of a cluster together, and where clusters start."""
    own = np.full(int(sample.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(own, sample, cluster)
    present = np.flatnonzero(np.bincount(sample))
    present = present[np.argsort(own[present], kind="stable")]
    place = np.empty(len(own), np.int64)
    place[present] = np.arange(len(present))
    changes = np.diff(own[present], prepend=-1)
    return place[sample], np.flatnonzero(changes)
