"""Cluster bootstrap: questions are drawn anew, with all that is about them (methods, section 3).

All cells of a dataset share their draws, so that judges and perturbations can be compared draw by
draw. A draw is a row of weights; the sums of all cells of all draws are one matrix product.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.statistics._intervals import LEVEL, Sums

DRAWS, SEED = 2000, 20240612
MOST_CLUSTERS = 20_000
"""Above them an interval by formula needs no cross-check, and drawing takes long."""

AT_ONCE = 1_000_000
"""Weights that are numbers of eight bytes at once; those that are kept take one byte each."""

COLUMNS_AT_ONCE = 2000
FEWEST = 0.5
"""Share of the draws in which a statistic must exist for its interval to be told."""


@lru_cache(maxsize=48)
def _counts(clusters: int, draws: int, seed: tuple[int, int]) -> NDArray[np.uint8]:
    """Return how often each cluster is drawn, shape (draws, clusters).

    A byte is enough: of more than 255 clusters none is ever drawn 256 times.
    """
    random = np.random.default_rng(seed)
    # Counted, not drawn as multinomials: several times as fast.
    picked = random.integers(0, clusters, (draws, clusters), np.int32)
    picked += np.arange(draws, dtype=np.int32)[:, None] * np.int32(clusters)
    counts = np.bincount(picked.ravel(), minlength=draws * clusters)
    return counts.astype(np.uint8).reshape(draws, clusters)


def weights(clusters: int, draws: int = DRAWS, seed: int = SEED) -> Iterator[Sums]:
    """Yield how often each cluster is drawn, as many draws at a time as fit.

    Parameters
    ----------
    clusters
        How many there are, and how many each draw takes, with replacement.
    draws
        Number of draws.
    seed
        Of the random numbers.

    Yields
    ------
    ndarray
        Shape (some draws, clusters).

    Examples
    --------
    >>> [some.sum(axis=1).tolist() for some in weights(3, draws=2)]
    [[3.0, 3.0]]
    """
    step = max(1, AT_ONCE // clusters)
    for start in range(0, draws, step):
        yield _counts(clusters, min(step, draws - start), (seed, start)).astype(np.float64)


def resampled(sums: Sums, draws: int = DRAWS, seed: int = SEED) -> Sums:
    """Return the totals of each draw of clusters, shape (draws, columns).

    Parameters
    ----------
    sums
        Of each cluster, shape (clusters, columns), 0 where there is nothing of it.
    draws, seed
        See :func:`weights`.
    """
    return np.concatenate([some @ sums for some in weights(len(sums), draws, seed)])


def resampled_ratios(num: Sums, den: Sums) -> Sums:
    """Return the ratio of sums in each draw, not a number where its denominator is 0.

    Parameters
    ----------
    num, den
        Shape (clusters, cells): sums of each cluster, 0 where a cell lacks it.

    Returns
    -------
    ndarray
        Shape (DRAWS, cells).
    """
    top, bottom = resampled(num), resampled(den)
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


def percentiles(point: Sums, drawn: Sums, level: float = LEVEL) -> tuple[Sums, Sums]:
    """Return the percentile interval of each column; not a number where too few draws have it.

    Parameters
    ----------
    point
        The estimates, shape (columns,): the interval is widened to hold them, which draws that
        lack the statistic could prevent.
    drawn
        Shape (draws, columns), not a number where a draw lacks the statistic.
    level
        Confidence level in (0, 1).
    """
    # Sorted, what is not a number comes last: far faster than numpy's quantiles without it.
    ordered = np.sort(drawn.T, axis=1)
    known = np.isfinite(ordered).sum(axis=1)
    enough = np.isfinite(point) & (known > FEWEST * len(drawn))
    ends = []
    for q in ((1 - level) / 2, (1 + level) / 2):
        place = q * np.maximum(known - 1, 0)
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, np.maximum(known - 1, 0))
        low, high = (np.take_along_axis(ordered, at[:, None], 1)[:, 0] for at in (below, above))
        ends.append(np.where(enough, low + (high - low) * (place - below), np.nan))
    return np.minimum(ends[0], point), np.maximum(ends[1], point)


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
    found = np.full((2, cells.height), np.nan)
    for part in placed.partition_by("dataset"):
        cluster = part["cluster"].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1
        count = int(cluster.max()) + 1
        if 2 <= count <= MOST_CLUSTERS:
            there, cell = np.unique(part["cell"].to_numpy(), return_inverse=True)
            found[:, there] = _bounds(part, (cluster, cell), (count, len(there)))
    return cells.with_columns(
        pl.Series("boot_low", found[0]).fill_nan(None),
        pl.Series("boot_high", found[1]).fill_nan(None),
    )


def _bounds(
    part: pl.DataFrame,
    place: tuple[NDArray[np.int64], NDArray[np.int64]],
    shape: tuple[int, int],
) -> Sums:
    """Bound a dataset's cells, as many at a time as fit."""
    num, den = np.zeros(shape), np.zeros(shape)
    num[place], den[place] = part["num"].to_numpy(), part["den"].to_numpy()
    total = den.sum(axis=0)
    point = np.divide(num.sum(axis=0), total, out=np.full(total.shape, np.nan), where=total > 0)
    found = []
    for start in range(0, shape[1], COLUMNS_AT_ONCE):
        some = slice(start, start + COLUMNS_AT_ONCE)
        found.append(percentiles(point[some], resampled_ratios(num[:, some], den[:, some])))
    return np.concatenate(found, axis=1)
