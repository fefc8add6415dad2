"""Cluster bootstrap: questions are drawn anew, with all that is about them (methods, section 3).

All cells of a dataset share their draws, so that judges and perturbations can be compared draw by
draw. A draw is a row of weights; the sums of all cells of all draws are one matrix product.
"""

from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.statistics._intervals import LEVEL

DRAWS, SEED = 2000, 20240612
MOST_CLUSTERS = 20_000
"""Above them an interval by formula needs no cross-check, and the weights would not fit."""

CHUNK = 20_000_000
"""Weights at a time."""

Array = NDArray[np.float64]


@lru_cache(maxsize=4)
def weights(clusters: int, draws: int = DRAWS, seed: int = SEED) -> Array:
    """Return how often each cluster is drawn, shape (draws, clusters); read-only, as it is shared.

    Examples
    --------
    >>> weights(3, draws=2).sum(axis=1).tolist()
    [3.0, 3.0]
    """
    random = np.random.default_rng(seed)
    found = random.multinomial(clusters, np.full(clusters, 1 / clusters), draws).astype(np.float64)
    found.flags.writeable = False
    return found


def drawn_ratios(num: Array, den: Array, draws: int = DRAWS, seed: int = SEED) -> Array:
    """Return the ratio of sums in each draw, not a number where its denominator is 0.

    Parameters
    ----------
    num, den
        Shape (clusters, cells): sums of each cluster, 0 where a cell lacks it.

    Returns
    -------
    ndarray
        Shape (draws, cells).
    """
    drawn = weights(num.shape[0], draws, seed)
    top, bottom = drawn @ num, drawn @ den
    ratios = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=ratios, where=bottom > 0)
    return ratios


def bounds(drawn: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """Return the percentile interval of each column; not a number if half its draws are not."""
    ends = [(1 - level) / 2, (1 + level) / 2]
    told = np.isfinite(drawn)
    whole, some = told.all(axis=0), told.mean(axis=0) > 0.5
    found = np.full((2, drawn.shape[1]), np.nan)
    if whole.any():
        found[:, whole] = np.quantile(drawn[:, whole], ends, axis=0)
    for column in np.flatnonzero(some & ~whole):
        found[:, column] = np.quantile(drawn[told[:, column], column], ends)
    return found[0], found[1]


def with_bounds(cells: pl.DataFrame, sums: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """Add ``boot_low`` and ``boot_high`` to each cell's row.

    Parameters
    ----------
    cells
        One row a cell, with ``keys``.
    sums
        One row a cell and cluster: ``keys``, ``dataset``, ``cluster``, ``num``, ``den``.
    """
    numbered = cells.select(keys).with_columns(cell=pl.int_range(pl.len()))
    placed = sums.select(*keys, "cluster", "num", "den").join(
        numbered, on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    low, high = np.full(cells.height, np.nan), np.full(cells.height, np.nan)
    for part in placed.partition_by("dataset"):
        cluster = part["cluster"].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1
        count = int(cluster.max()) + 1
        if 2 <= count <= MOST_CLUSTERS:
            cell = part["cell"].to_numpy()
            there = np.unique(cell)
            at = np.searchsorted(there, cell)
            low[there], high[there] = _chunked(part, cluster, at, (count, len(there)))
    return cells.with_columns(
        pl.Series("boot_low", low).fill_nan(None), pl.Series("boot_high", high).fill_nan(None)
    )


def _chunked(
    part: pl.DataFrame, cluster: NDArray[np.int64], cell: NDArray[np.int64], shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Bound a dataset's cells, as many at a time as fit."""
    num, den = np.zeros(shape), np.zeros(shape)
    num[cluster, cell], den[cluster, cell] = part["num"].to_numpy(), part["den"].to_numpy()
    step = max(1, CHUNK // DRAWS)
    found = [
        bounds(drawn_ratios(num[:, i : i + step], den[:, i : i + step]))
        for i in range(0, shape[1], step)
    ]
    return np.concatenate([low for low, _ in found]), np.concatenate([high for _, high in found])
