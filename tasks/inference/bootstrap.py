"""Cluster bootstrap: percentile and BCa intervals, with refitted rectifiers (methods, section 3).

All cells of a dataset share their draws, so judges and perturbations can be compared draw by draw.
A draw is a row of weights; the sums of all cells in all draws are one matrix product.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.inference.cluster_sums import PART, SUMS_AT_ONCE, Groups, Sums, grouped
from tasks.inference.intervals import LEVEL
from tasks.inference.linearised_errors import effective_clusters, over
from tasks.inference.quantiles import (
    bootstrap_factor,
    normal_below,
    normal_quantile,
    t_quantile,
    widened,
)
from tasks.kit.defaults import BOOTSTRAPS, in_force

DRAWS, SEED = BOOTSTRAPS, 20240612
MOST_CLUSTERS = 20_000
"""With more clusters, formula intervals need no bootstrap cross-check, and drawing takes long."""

AT_ONCE = 1_000_000
"""Bootstrap weights held as 8-byte floats at a time; cached counts take one byte each."""

COLUMNS_AT_ONCE = 2000
FEWEST = 0.5
"""Share of draws in which a statistic must be defined for its interval to be reported."""

Value = Callable[[dict[str, Sums]], Sums]
BOOT = ("boot_low", "boot_high")
FORMULAS = "formulas only: no bootstrap was asked for"
_chance = ContextVar("_chance", default=True)


def formulas_only() -> AbstractContextManager[None]:
    """Skip bootstrap and permutation; estimates without a formula get no interval."""
    return in_force(_chance, value=False)


def by_chance() -> bool:
    """Tell whether resampling is enabled, see :func:`formulas_only`."""
    return _chance.get()


def is_resampled(clusters: int) -> bool:
    """Tell whether cells with this many clusters get bootstrap intervals."""
    return by_chance() and 2 <= clusters <= MOST_CLUSTERS


@lru_cache(maxsize=48)
def _counts(clusters: int, draws: int, seed: tuple[int, int]) -> NDArray[np.uint8]:
    """Return how often each cluster is drawn, shape (draws, clusters).

    A byte suffices: with more than 255 clusters, 256 draws of the same one practically never occur.
    """
    random = np.random.default_rng(seed)
    # Counting uniform draws is several times as fast as drawing multinomials.
    picked = random.integers(0, clusters, (draws, clusters), np.int32)
    picked += np.arange(draws, dtype=np.int32)[:, None] * np.int32(clusters)
    counts = np.bincount(picked.ravel(), minlength=draws * clusters)
    return counts.astype(np.uint8).reshape(draws, clusters)


def weights(clusters: int, draws: int = DRAWS, seed: int = SEED) -> Iterator[Sums]:
    """Yield how often each cluster is drawn, in blocks of draws that fit in memory.

    A draw has as many clusters as there are, with replacement; a block has the shape (some draws,
    clusters).

    Examples
    --------
    >>> [some.sum(axis=1).tolist() for some in weights(3, draws=2)]
    [[3.0, 3.0]]
    """
    step = max(1, AT_ONCE // clusters)
    for start in range(0, draws, step):
        yield _counts(clusters, min(step, draws - start), (seed, start)).astype(np.float64)


def resampled(sums: Sums) -> Sums:
    """Return the totals of each bootstrap draw of clusters, shape (draws, columns).

    ``sums`` has the shape (clusters, columns), 0 where a cluster has no items.
    """
    return np.concatenate([some @ sums for some in weights(len(sums))])


def percentiles(point: Sums, drawn: Sums, level: Any = LEVEL) -> tuple[Sums, Sums]:
    """Return the percentile interval of each column; NaN where too few draws are defined.

    The interval is extended to contain ``point``, shape (columns,), which undefined draws could
    otherwise prevent. ``drawn`` has the shape (draws, columns), NaN where the statistic is
    undefined; ``level`` is a number in (0, 1), or one for each column.
    """
    ordered = Ordered.of(drawn)
    enough = np.isfinite(point) & ordered.enough
    low, high = (
        np.where(enough, ordered.quantile(q), np.nan) for q in ((1 - level) / 2, (1 + level) / 2)
    )
    return np.minimum(low, point), np.maximum(high, point)


def widened_percentiles(point: Sums, drawn: Sums, clusters: Any) -> tuple[Sums, Sums]:
    """Return :func:`percentiles`, widened for ``clusters``: the effective number of each column.

    Draws of few clusters vary too little (:func:`tasks.inference.quantiles.widened`).
    """
    return percentiles(point, drawn, widened(LEVEL, np.maximum(clusters, 2)))


class Ordered(NamedTuple):
    """Draws of each column in ascending order, with the number of defined draws."""

    values: Sums
    """Shape (columns, draws), NaN last."""
    known: NDArray[np.intp]
    """Number of defined draws, shape (columns,)."""

    @classmethod
    def of(cls, drawn: Sums) -> "Ordered":
        """Sort draws of shape (draws, columns): far faster than numpy's quantile functions."""
        values = np.sort(drawn.T, axis=1)
        return cls(values, np.isfinite(values).sum(axis=1))

    @property
    def enough(self) -> NDArray[np.bool_]:
        """Tell which columns have enough defined draws."""
        return np.asarray(self.known > FEWEST * self.values.shape[1])

    def quantile(self, q: Any) -> Sums:
        """Return the quantile ``q``, a number or one for each column, of the defined draws."""
        last = np.maximum(self.known - 1, 0)
        place = q * last
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, last)
        low, high = (np.take_along_axis(self.values, at[:, None], 1)[:, 0] for at in (below, above))
        found: Sums = low + (high - low) * (place - below)
        return found


def bounds(groups: Groups, num: Sums, den: Sums, counted: Sums) -> Sums:
    """Return the percentile interval of each cell's ``sum num / sum den``, shape (2, cells).

    ``num``, ``den`` and ``counted`` (the samples) are cluster sums of shape (groups.starts[-1],).
    """
    counted = np.where(den > 0, counted, 0.0)
    return bounds_of(groups, {"num": num, "den": den}, counted, _ratio)


def bounds_of(groups: Groups, sums: Mapping[str, Sums], counted: Sums, value: Value) -> Sums:
    """Return the percentile interval of a function of each cell's sums, shape (2, cells).

    The interval is widened for few clusters, whose draws vary too little.

    ``sums`` and ``counted``, the samples that count for the cell, are by cluster, shape
    (groups.starts[-1],) each. ``value`` makes the estimates, NaN where undefined, of the sums of
    cells, shape (..., cells).
    """
    found = [np.empty((2, 0))]
    for cells in groups.blocks():
        count = cells.stop - cells.start
        clusters = int(groups.clusters[cells.start]) if count else 0
        if not is_resampled(clusters):
            found.append(np.full((2, count), np.nan))
            continue
        step = max(1, min(COLUMNS_AT_ONCE, SUMS_AT_ONCE // clusters))
        for first in range(cells.start, cells.stop, step):
            part = slice(first, min(first + step, cells.stop))
            columns = {name: groups.table(values, part).T for name, values in sums.items()}
            some = effective_clusters(groups.table(counted, part).T)
            found.append(_bounds(columns, some, value))
    return np.concatenate(found, axis=1)


def boot_ends(ends: Sums) -> list[pl.Series]:
    """Return intervals, shape (2, cells), as the bootstrap columns of estimates."""
    return [
        pl.Series(name, values, pl.Float64, nan_to_null=True)
        for name, values in zip(BOOT, ends, strict=True)
    ]


def seed_of_bounds() -> pl.Expr:
    """Return the seed of a row's bootstrap bounds; null without such bounds."""
    return pl.when(pl.col(BOOT[0]).is_not_null()).then(pl.lit(SEED, pl.Int64))


def _bounds(sums: Mapping[str, Sums], clusters: Sums, value: Value) -> Sums:
    point = value({name: values.sum(axis=0) for name, values in sums.items()})
    drawn = value({name: resampled(values) for name, values in sums.items()})
    return np.array(widened_percentiles(point, drawn, clusters))


def _ratio(sums: dict[str, Sums]) -> Sums:
    return over(sums["num"], sums["den"])


def bca(point: Sums, drawn: Sums, without: Sums, clusters: Sums) -> tuple[Sums, Sums]:
    """Return the BCa interval of each cell, widened for few clusters; NaN where undefined.

    The percentiles are ``Phi(z0 + z / (1 - a z))``, ``z = z0 -+ t sqrt(G / (G - 1))``: z0 is the
    normal quantile of the share of draws below the estimate, a the acceleration (skewness of the
    leave-one-cluster-out estimates), and t has G - 1 degrees of freedom.

    ``point`` and ``clusters``, the effective number (degrees of freedom plus one), have the shape
    (cells,); ``drawn`` has (draws, cells), NaN where undefined, and ``without``, the estimates
    without each cluster, (clusters, cells).

    References
    ----------
    Efron (1987), Better Bootstrap Confidence Intervals, JASA 82, 171-185; for t Hesterberg (2015),
    Am. Stat. 69, 371-386. With 20 clusters, plain percentiles of Fleiss' kappa covered .91.
    """
    ordered = Ordered.of(drawn)
    enough = np.isfinite(point) & ordered.enough & (clusters > 1)
    below = (drawn < point).sum(axis=0) + (drawn == point).sum(axis=0) / 2
    share = np.clip(below / np.maximum(ordered.known, 1), 1 / len(drawn), 1 - 1 / len(drawn))
    bias, skew = normal_quantile(share), _acceleration(without)
    groups = np.maximum(clusters, 2)
    far = t_quantile(groups - 1, (1 + LEVEL) / 2) * bootstrap_factor(groups)
    ends = []
    for side in (-1, 1):
        z = bias + side * far
        room = 1 - skew * z
        at = bias + z / np.where(room > 0, room, 1.0)
        q = np.where(room > 0, normal_below(at), 0.5 + side / 2)
        ends.append(np.where(enough, ordered.quantile(q), np.nan))
    return np.minimum(ends[0], point), np.maximum(ends[1], point)


def _acceleration(without: Sums) -> Sums:
    finite = np.isfinite(without)
    mean = np.where(finite, without, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    off = np.where(finite, mean - without, 0.0)
    scale = 6 * (off**2).sum(axis=0) ** 1.5
    skew: Sums = np.divide((off**3).sum(axis=0), scale, out=np.zeros_like(scale), where=scale > 0)
    return skew


def redrawn(rows: pl.DataFrame, *, use_judge: bool) -> pl.DataFrame:
    """Return the percentile interval of each cell's theta, with the cell's keys.

    ``rows`` are pairs with ``score`` and, where labelled, ``human`` and the weight ``w``; ``alike``
    where all weights are equal; and the cell's columns, ``cluster, kind, votes, simulated``.
    Without ``use_judge`` lambda is 0.
    """
    y, f, w = pl.col("human"), pl.col("score"), pl.col("w")
    columns = rows.select(
        weight=w,
        wy=w * y,
        wf=w * f,
        wyf=w * y * f,
        n=y.is_not_null(),
        every=pl.lit(1.0),
        f=f,
        ff=f**2,
        labelled=pl.when(y.is_not_null()).then(f),
        chosen=~pl.col("alike"),
    )
    groups = grouped(rows)
    sums = {column.name: groups.by_cluster(column) for column in columns}

    def value(drawn: dict[str, Sums]) -> Sums:
        lam = _lambda(drawn) if use_judge else np.zeros_like(drawn["n"])
        others = drawn["every"] - drawn["n"]
        chosen = drawn["chosen"] > 0
        judged = np.where(
            chosen, over(drawn["f"], drawn["every"]), over(drawn["f"] - drawn["labelled"], others)
        )
        rest = over(drawn["wy"] - lam * drawn["wf"], drawn["weight"])
        theta: Sums = rest + np.where(lam > 0, lam * judged, 0.0)
        return theta

    ends = bounds_of(groups, sums, sums["n"], value)
    texts = groups.cells.select(pl.col(PART).cast(pl.String))
    return texts.with_columns(boot_ends(ends))


def _lambda(sums: dict[str, Sums]) -> Sums:
    """Return the slope of the labels on the verdicts, clipped to [0, 1]; 0 where undefined."""
    weight, n, every = sums["weight"], sums["n"], sums["every"]
    others = every - n
    cov = over(sums["wyf"] - sums["wy"] * over(sums["wf"], weight), weight)
    variance = over(sums["ff"] - sums["f"] * over(sums["f"], every), every - 1)
    unbiased = over(n, n - 1) / (1 + over(n, others))
    slope = over(cov * np.where(sums["chosen"] > 0, 1.0, unbiased), variance)
    usable = (others > 0) & (n > 1) & (variance > 1e-12)
    return np.clip(np.where(usable, np.nan_to_num(slope), 0.0), 0.0, 1.0)
