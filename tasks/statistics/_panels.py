"""Judges side by side: one perturbation as all of them saw it, items by judges."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.statistics._groups import Numbers, combined, first_of, most_common, numbered
from tasks.statistics._once import once

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

    def among(self, samples: NDArray[np.bool_], judges: NDArray[np.intp]) -> "Panel":
        """Return the panel of some samples and judges only."""
        cluster = np.repeat(np.arange(self.clusters), np.diff(self.starts, append=len(samples)))
        return Panel(
            self.cell,
            [self.judges[j] for j in judges],
            [self.simulated[j] for j in judges],
            self.votes[judges],
            {name: table[np.ix_(samples, judges)] for name, table in self.values.items()},
            np.flatnonzero(np.diff(cluster[samples], prepend=-1)),
        )


def primary_shift() -> pl.Expr:
    """Return the shift of the primary endpoint: over the sham where the group has shams."""
    base = pl.when(pl.col("has_sham").any().over(GROUP)).then("sham_score")
    return pl.col("experimental_score") - base.otherwise("control_score")


class _Plan(NamedTuple):
    """A panel but for its values."""

    cell: dict[str, Any]
    judges: list[str]
    simulated: list[bool | None]
    votes: NDArray[np.int64]
    starts: NDArray[np.intp]
    samples: int
    at: Numbers
    """Which rows of the frame are the panel's."""
    place: Numbers
    """Where each of them stands in a table of samples by judges, in the order of C."""

    def filled(self, values: pl.Series) -> Floats:
        """Lay the values of the frame's rows out, shape (samples, judges)."""
        table = np.full(self.samples * len(self.judges), np.nan)
        table[self.place] = values.gather(self.at).to_numpy()
        return table.reshape(self.samples, len(self.judges))


def panels(
    shifts: pl.DataFrame, values: Mapping[str, pl.Expr], of: pl.DataFrame | None = None
) -> Iterator[Panel]:
    """Yield a panel per dataset, prompt, wave, mode and perturbation, in their order.

    ``values`` are numbers of each row, null where the judge has none. If ``shifts`` only adds
    columns to another frame, ``of``, then panels that others make of that one are laid out once.
    """
    if shifts.is_empty():
        return
    told = shifts.select(**{name: value.cast(pl.Float64) for name, value in values.items()})
    for plan in _plans(shifts if of is None else of):
        table = {column.name: plan.filled(column) for column in told}
        yield Panel(plan.cell, plan.judges, plan.simulated, plan.votes, table, plan.starts)


@once
def _plans(shifts: pl.DataFrame) -> list[_Plan]:
    numbers = {name: numbered(shifts[name]) for name in (*GROUP, "judge", "sample", "cluster")}
    group, present = combined([numbers[name] for name in GROUP])
    rows = shifts.select(*GROUP, "judge", "kind", "has_sham", "simulated", "votes")
    # The smaller a number, the faster it is sorted.
    order = np.argsort(group.astype(np.min_scalar_type(len(present))), kind="stable")
    ends = np.searchsorted(group[order], np.arange(len(present) + 1))
    codes = [numbers[name][0] for name in ("judge", "sample", "cluster")]
    parts = (order[first:last] for first, last in pairwise(ends.tolist()))
    return [_plan(rows[at], at, *(code[at] for code in codes)) for at in parts]


def _plan(
    rows: pl.DataFrame, at: Numbers, judge: Numbers, sample: Numbers, cluster: Numbers
) -> _Plan:
    _, column = np.unique(judge, return_inverse=True)
    seen = first_of(column)
    row, starts = _places(sample, cluster)
    cell = rows[0].select(pl.col(*GROUP, "kind").cast(pl.String)).to_dicts()[0]
    return _Plan(
        {**cell, "has_sham": bool(rows["has_sham"].any())},
        rows["judge"][seen].cast(pl.String).to_list(),
        rows["simulated"][seen].to_list(),
        most_common(column, rows["votes"], len(seen)),
        starts,
        int(row.max()) + 1,
        at,
        row * len(seen) + column,
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
