"""Integer codes of cells and clusters, so that sums by group are bincounts."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.keys import CELL

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Sums = Floats
"""Sums by cluster or by cell."""
PART = (*CELL, "subgroup")
LARGEST = 4_000_000
"""Codes up to this size use a lookup table instead of a sort."""

SUMS_AT_ONCE = 2_000_000
"""Most cluster sums held in memory at once; of more, those of absent clusters are left out."""


class Groups(NamedTuple):
    """Items by cell, and by cluster within the cell.

    A cell has all clusters of its dataset, in the same order. If these would be too many sums, most
    of them 0, a cell has only the clusters of its own items (``own`` says which).
    """

    cells: pl.DataFrame
    """One row per cell, ordered by the keys: the keys, ``kind, simulated, votes_per_pair``."""
    cell: Numbers
    """The cell of each item, shape (items,)."""
    place: Numbers
    """Index of the item's cluster among the clusters of all cells, shape (items,)."""
    starts: Numbers
    """Index of each cell's first cluster, then the end of the last cell; shape (cells + 1,)."""
    dataset: Numbers
    """Index of each cell's dataset, shape (cells,)."""
    clusters: Numbers
    """Number of clusters of each cell's dataset, shape (cells,)."""
    own: Numbers | None = None
    """Index of the cluster of each sum in its dataset, shape (starts[-1],), if not all have one."""

    def by_cell(self, values: pl.Series) -> Sums:
        """Sum the values of items by cell, nulls as 0; shape (cells,)."""
        # Summing by cluster first is faster, as a cell's clusters are adjacent.
        return self.of_cells(self.by_cluster(values))

    def by_cluster(self, values: pl.Series) -> Sums:
        """Sum the values of items by cell and cluster, nulls as 0; shape (starts[-1],)."""
        return _sums(self.place, values, int(self.starts[-1]))

    def condensed(self, counts: pl.DataFrame) -> tuple[pl.DataFrame, "Groups"]:
        """Return items aggregated by cell and cluster, and the groups of these aggregates."""
        sums = pl.DataFrame({column.name: self.by_cluster(column) for column in counts})
        place = np.arange(int(self.starts[-1]))
        groups = self._replace(cell=self.cell_of_sums(), place=place)
        return sums, groups

    def cell_of_sums(self) -> Numbers:
        """Return the cell of each cluster sum, shape (starts[-1],)."""
        return np.repeat(np.arange(self.cells.height), np.diff(self.starts))

    def of_cells(self, sums: Sums) -> Sums:
        """Sum cluster values by cell, shape (cells,)."""
        return totals(sums, self.starts)

    def chunks(self) -> Iterator[tuple["Groups", Numbers | slice]]:
        """Yield batches of cells, each with the indices of its items."""
        count, starts = self.cells.height, self.starts
        if starts[-1] <= SUMS_AT_ONCE:
            yield self, slice(None)
            return
        # NumPy sorts integers of 16 bits several times as fast.
        narrow = np.uint16 if count <= 2**16 else np.int64
        order = np.argsort(self.cell.astype(narrow), kind="stable")
        bounds = np.searchsorted(self.cell[order], np.arange(count + 1))
        first = 0
        while first < count:
            fit = int(np.searchsorted(starts, starts[first] + SUMS_AT_ONCE, side="right")) - 1
            last = max(first + 1, fit)
            at = order[bounds[first] : bounds[last]]
            yield (
                Groups(
                    self.cells[first:last],
                    self.cell[at] - first,
                    self.place[at] - starts[first],
                    starts[first : last + 1] - starts[first],
                    self.dataset[first:last],
                    self.clusters[first:last],
                    None if self.own is None else self.own[starts[first] : starts[last]],
                ),
                at,
            )
            first = last

    def blocks(self) -> Iterator[slice]:
        """Yield for each dataset its cells, which share their clusters."""
        changes = np.flatnonzero(np.diff(self.dataset)) + 1
        ends = [0, *changes.tolist(), len(self.dataset)]
        for first, last in pairwise(ends):
            yield slice(first, last)

    def table(self, sums: NDArray[Any], cells: slice) -> NDArray[Any]:
        """Return the cluster sums of some cells of one dataset, shape (cells, clusters)."""
        first, last = int(self.starts[cells.start]), int(self.starts[cells.stop])
        shape = cells.stop - cells.start, int(self.clusters[cells.start]) if last else 0
        if self.own is None:
            return sums[first:last].reshape(shape)
        found = np.zeros(shape, sums.dtype)
        row = np.repeat(np.arange(shape[0]), np.diff(self.starts[cells.start : cells.stop + 1]))
        found[row, self.own[first:last]] = sums[first:last]
        return found


def totals(sums: Sums, starts: Numbers) -> Sums:
    """Sum the values between consecutive starts, shape (len(starts) - 1,).

    No segment is empty: every cell has at least the clusters of its items.
    """
    if len(starts) == 1:
        return np.zeros(0)
    return np.add.reduceat(sums, starts[:-1]).astype(np.float64, copy=False)


def join_cells(rows: pl.DataFrame, cells: pl.DataFrame, on: Sequence[str] = PART) -> pl.DataFrame:
    """Add columns of cells to rows, whose order stays; keys that are null are equal."""
    return rows.join(cells, on=on, how="left", nulls_equal=True, maintain_order="left")


def grouped(items: pl.DataFrame, keys: tuple[str, ...] = PART) -> Groups:
    """Assign the items to cells and clusters.

    The items have the ``keys``, which define a cell (without ``subgroup`` for whole cells),
    ``dataset, cluster, kind, simulated, votes``.

    A ValueError names the columns that are missing.
    """
    if "subgroup" not in items.columns:
        items = items.with_columns(subgroup=pl.lit(""))
    needed = dict.fromkeys((*keys, "dataset", "cluster", "kind", "simulated", "votes"))
    if missing := [name for name in needed if name not in items.columns]:
        raise ValueError(
            f"the items lack the columns {', '.join(missing)}. Each item needs {', '.join(needed)}."
        )
    if items.is_empty():
        none = np.empty(0, np.int64)
        cells = items.select(*keys, "kind", "simulated", votes_per_pair="votes")
        return Groups(cells, none, none, np.zeros(1, np.int64), none, none)
    numbers = all_numbered(items, (*keys, "cluster"))
    cell, _ = combined([numbers[name] for name in keys])
    first = first_of(cell)
    dataset = numbers["dataset"][0][first]
    within, names = combined([numbers["dataset"], numbers["cluster"]])
    of_dataset = np.searchsorted(names, np.arange(dataset.max() + 2) * numbers["cluster"][1])
    size = np.diff(of_dataset)[dataset]
    within = within - of_dataset[dataset[cell]]
    own = None
    if size.sum() > SUMS_AT_ONCE:
        largest = int(size.max())
        place, present = combined([(cell, len(first)), (within, largest)])
        own = present % largest if largest > 1 else np.zeros(len(present), np.int64)
        of_sums = present // largest
        starts = np.searchsorted(of_sums, np.arange(len(first) + 1))
    else:
        starts = np.concatenate([[0], np.cumsum(size)])
        place = starts[cell] + within
    described = items.select(*keys, "kind", "simulated")[first]
    votes = pl.Series("votes_per_pair", most_common(cell, items["votes"], len(first)))
    texts = pl.col(*keys, "kind").cast(pl.String)
    return Groups(described.with_columns(texts, votes), cell, place, starts, dataset, size, own)


def all_numbered(items: pl.DataFrame, names: Iterable[str]) -> dict[str, tuple[Numbers, int]]:
    """Return :func:`numbered` of several columns, whose codes one query reads."""
    codes = items.select(pl.col(*dict.fromkeys(names)).to_physical())
    return {column.name: numbered(items[column.name], column) for column in codes}


def numbered(column: pl.Series, physical: pl.Series | None = None) -> tuple[Numbers, int]:
    """Return the rank of each value, null first, and the number of ranks.

    ``physical`` are the codes of an ``Enum`` or ``Categorical``, if they are known. For an
    ``Enum``, whose categories are in order, the rank is the code, and all categories count:
    ranking a column costs three times as much, 0.2 CPU seconds per million votes.
    """
    kind = column.dtype
    if isinstance(kind, pl.Enum):
        values, nulls = len(kind.categories), column.null_count() > 0
        if values == 1 and not nulls:
            return _all_zero(len(column)), 1
        order = (column.to_physical() if physical is None else physical).cast(pl.Int64)
        return ((order.fill_null(-1) + 1) if nulls else order).to_numpy(), values + nulls
    if kind.is_integer():  # codes already
        return column.to_numpy(), int(column.max() or 0) + 1  # type: ignore[arg-type]
    if kind != pl.Categorical:
        column = column.cast(pl.String)
        if column.null_count() == 0 and column.min() == column.max():
            return _all_zero(len(column)), 1
        column, physical = column.cast(pl.Categorical), None
    physical = column.to_physical() if physical is None else physical
    if physical.null_count():
        physical = physical.cast(pl.Int64).fill_null(-1) + 1
    elif physical.min() == physical.max():
        return _all_zero(len(column)), 1
    codes = physical.to_numpy()
    if codes.max() > max(LARGEST, 4 * len(codes)):
        codes = np.unique(codes, return_inverse=True)[1]
    size = int(codes.max()) + 1
    somewhere, rank = np.empty((2, size), np.int64)
    somewhere[codes] = np.arange(len(codes))
    present = np.flatnonzero(np.bincount(codes))
    names = column[somewhere[present]].cast(pl.String)
    if not names.is_sorted():
        present = present[names.arg_sort(nulls_last=False).to_numpy()]
    rank[present] = np.arange(len(present))
    return rank[codes], len(present)


def _all_zero(items: int) -> Numbers:
    """Return 0 for each item, as a broadcast view of one number."""
    return np.broadcast_to(np.int64(0), items)


def combined(columns: list[tuple[Numbers, int]]) -> tuple[Numbers, Numbers]:
    """Return a code for each combination of columns, and the combinations that occur."""
    several = [column for column in columns if column[1] > 1] or columns[:1]
    code, size = several[0]
    code = code.astype(np.int64, copy=False)  # small integers, such as codes of texts, overflow
    for more, number in several[1:]:
        if size * number > 2**62:
            present, code = _dense(code, size)
            size = len(present)
        code, size = code * number + more, size * number
    present, code = _dense(code, size)
    return code, present


def _dense(codes: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """Return the codes that occur, in order, and the index of each code among them."""
    if size > max(LARGEST, 4 * len(codes)):
        present, places = np.unique(codes, return_inverse=True)
        return present, places
    present = np.flatnonzero(np.bincount(codes, minlength=size))
    lookup = np.empty(size, np.int64)
    lookup[present] = np.arange(len(present))
    return present, lookup[codes]


def first_of(numbers: Numbers) -> Numbers:
    """Return the index at which each number first occurs."""
    first = np.empty(int(numbers.max()) + 1, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return first


def most_common(cell: Numbers, votes: pl.Series, cells: int) -> Numbers:
    """Return the mode of the number of votes in each cell; the largest of tied modes."""
    number = votes.cast(pl.Int64).to_numpy()
    if number.min() == number.max():
        return np.full(cells, number[0])
    present, code = _dense(number - number.min(), int(number.max() - number.min()) + 1)
    counts = np.bincount(cell * len(present) + code, minlength=cells * len(present))
    table = counts.reshape(cells, len(present))[:, ::-1]
    found: Numbers = present[len(present) - 1 - table.argmax(axis=1)] + number.min()
    return found


def _sums(numbers: Numbers, values: pl.Series, size: int) -> Sums:
    if not (values.max() or values.min()):  # only nulls and zeros
        return np.zeros(size)
    weights = values.cast(pl.Float64)
    if weights.null_count():  # a query of its own, as are most methods of a column
        weights = weights.fill_null(0)
    return np.bincount(numbers, weights.to_numpy(), size).astype(np.float64, copy=False)
