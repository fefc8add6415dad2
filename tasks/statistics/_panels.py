"""Judges side by side: one perturbation as all of them saw it, items by judges."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

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
    names = ("judge", "sample", "cluster")
    found = shifts.select(
        *(pl.col(name).cast(pl.String) for name in (*GROUP, *names)),
        pl.col("kind").cast(pl.String), "has_sham", "simulated", "votes",
        **{name: value.cast(pl.Float64) for name, value in values.items()},
    )  # fmt: skip
    groups = found.partition_by(GROUP, as_dict=True, maintain_order=False)
    for key in sorted(groups):
        yield _panel(dict(zip(GROUP, key, strict=True)), groups[key], list(values))


def _panel(cell: dict[str, Any], rows: pl.DataFrame, values: list[str]) -> Panel:
    judges = rows.group_by("judge").agg(
        pl.col("simulated").first(), pl.col("votes").mode().max().alias("votes")
    ).sort("judge")  # fmt: skip
    items = rows.group_by("sample").agg(pl.col("cluster").min()).sort("cluster", "sample")
    row = _codes(rows["sample"], items["sample"])
    column = _codes(rows["judge"], judges["judge"])
    table: dict[str, Floats] = {}
    for name in values:
        table[name] = np.full((items.height, judges.height), np.nan)
        table[name][row, column] = rows[name].to_numpy()
    changes = items["cluster"] != items["cluster"].shift(1)
    return Panel(
        {**cell, "kind": rows["kind"][0], "has_sham": bool(rows["has_sham"].any())},
        judges["judge"].to_list(),
        judges["simulated"].to_list(),
        judges["votes"].to_numpy(),
        table,
        np.flatnonzero(changes.fill_null(value=True).to_numpy()),
    )


def _codes(values: pl.Series, names: pl.Series) -> NDArray[Any]:
    return values.cast(pl.Enum(names)).to_physical().to_numpy()
