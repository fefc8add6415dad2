"""Permutation tests (label swaps and sign flips within clusters) and exact tests of counts.

Swapping two judges' labels in a cluster flips the sign of their difference, so all pairs of judges
are one product of signs and cluster sums. Clusters in which every judge has every value need sums
by judge only; the others need sums by pair.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.keys import CELL
from schemas.results import Estimates
from tasks.inference.bootstrap import MOST_CLUSTERS
from tasks.inference.cluster_sums import Floats
from tasks.kit.defaults import PERMUTATIONS

EXHAUSTIVE = 4096
"""Most sign patterns that are enumerated; 12 clusters have this many."""

BLOCK = 1000
CLEAR = 0.1
"""A pair whose p-value is above this after the first block is not drawn further."""

SEED = 20240611
Singles = NDArray[np.float32]


class DifferenceSums(NamedTuple):
    """Differences between the judges of each pair, by cluster; complete clusters first."""

    by_judge: Floats
    """Sums of complete clusters, by judge."""
    by_pair: Floats
    """Differences in the other clusters, first judge of the pair minus second."""


class JudgePairs(NamedTuple):
    """Pairs of judges, as columns."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]


class Tested(NamedTuple):
    """Result of the permutation test of each pair."""

    p_value: Floats
    swaps: NDArray[np.int64]
    """Number of swaps tried."""
    exhaustive: NDArray[np.bool_]
    """Whether all possible swaps were tried."""


def signs(clusters: int, swaps: range, random: np.random.Generator | None) -> Singles:
    """Return swaps, one per column: 1 keeps a cluster's labels, -1 swaps them.

    They are drawn at random or, without a generator, enumerated by the numbers in ``swaps``.
    """
    if random is None:
        bits: NDArray[Any] = (np.asarray(swaps) >> np.arange(clusters)[:, None]) & 1
    else:
        packed = random.integers(0, 256, (clusters, -(-len(swaps) // 8)), np.uint8)
        bits = np.unpackbits(packed, axis=1, count=len(swaps))
    found: Singles = bits.astype(np.float32)
    found *= -2
    found += 1
    return found


def sign_blocks(clusters: int, seed: int) -> Iterator[Singles]:
    """Yield all sign patterns of so many clusters, if they are few, else seeded random ones."""
    exhaustive = are_enumerated(clusters)
    tries = 2**clusters if exhaustive else PERMUTATIONS
    random = None if exhaustive else np.random.default_rng(seed)
    for start in range(0, tries, BLOCK):
        yield signs(clusters, range(start, min(start + BLOCK, tries)), random)


def are_enumerated(clusters: int) -> bool:
    """Tell whether all sign patterns are tried."""
    return clusters < EXHAUSTIVE and 2**clusters <= EXHAUSTIVE


def drawn_p_value(reached: Any, draws: Any) -> Any:
    """Return the p-value of random permutations, of which the observed one is one more."""
    return (1 + reached) / (1 + draws)


class _Flipped:
    """Sums of the pairs' differences, with each cluster's sign set by a swap."""

    def __init__(self, pairs: JudgePairs, sums: DifferenceSums) -> None:
        self.pairs = pairs
        self.by_judge = np.ascontiguousarray(sums.by_judge.T, np.float32)
        self.by_pair = np.ascontiguousarray(sums.by_pair.T, np.float32)

    def of(self, block: Singles, chosen: NDArray[np.intp]) -> Singles:
        """Return one row per chosen pair and one column per swap."""
        whole = self.by_judge.shape[1]
        mine = self.by_judge @ block[:whole]
        found: Singles = mine[self.pairs.first[chosen]]
        found -= mine[self.pairs.second[chosen]]
        if self.by_pair.shape[1]:
            found += self.by_pair[chosen] @ block[whole:]
        return found

    def differences(self, pair: int) -> Floats:
        """Return a pair's difference in each cluster."""
        first, second = self.pairs.first[pair], self.pairs.second[pair]
        whole = self.by_judge[first] - self.by_judge[second]
        return np.concatenate([whole, self.by_pair[pair]]).astype(np.float64)

    @property
    def clusters(self) -> int:
        return int(self.by_judge.shape[1] + self.by_pair.shape[1])

    @property
    def observed(self) -> Floats:
        """Return the sums without any swap."""
        every = np.arange(len(self.pairs.first))
        return self.of(np.ones((self.clusters, 1), np.float32), every)[:, 0].astype(np.float64)


def swap_sums(pairs: JudgePairs, difference: DifferenceSums, seed: int = SEED) -> Tested:
    """Test on both sides whether each pair's sum of differences is 0."""
    flipped = _Flipped(pairs, difference)
    # In single precision, near ties count as equal, which makes the test conservative.
    bound = (np.abs(flipped.observed) - 1e-4).astype(np.float32)

    def beyond(block: Singles, chosen: NDArray[np.intp]) -> NDArray[np.int64]:
        total = flipped.of(block, chosen)
        np.abs(total, out=total)
        return np.asarray(np.count_nonzero(total >= bound[chosen, None], axis=1))

    def alone(pair: int, some: NDArray[np.bool_]) -> Tested:
        return swap_sums(ONE, _of_one(flipped.differences(pair)[some]), seed)

    tested = _test(beyond, flipped.clusters, len(pairs.first), seed)
    return _enumerate_small(tested, [flipped], alone)


def swap_rates(
    pairs: JudgePairs,
    hits: DifferenceSums,
    counted: DifferenceSums,
    totals: tuple[Floats, Floats],
    seed: int = SEED,
) -> Tested:
    """Test on both sides whether each pair's difference of rates is 0.

    ``totals`` are the hits K and counted items V of both judges together. With k and v the
    differences after a swap, the rates are (K + k) / (V + v) and (K - k) / (V - v), so they differ
    by T or more where ``2 |k V - K v| >= T (V^2 - v^2)``. If a swap leaves a judge with nothing
    counted, V^2 = v^2, and the swap counts as at least as extreme.
    """
    flipped_k, flipped_v = _Flipped(pairs, hits), _Flipped(pairs, counted)
    both = np.maximum(totals[1], 1.0)
    rate = totals[0] / both
    k, v = flipped_k.observed, flipped_v.observed
    gap = 2 * np.abs(k - rate * v) * both / np.maximum(both**2 - v**2, 1.0)
    # Divided by 2 V: |k - rate v| + slope v^2 >= T V / 2, minus the error of single precision.
    slope = (gap / (2 * both)).astype(np.float32)[:, None]
    bound = (gap * both / 2 * (1 - 1e-5) - 1e-4).astype(np.float32)[:, None]
    share = rate.astype(np.float32)[:, None]

    def beyond(block: Singles, chosen: NDArray[np.intp]) -> NDArray[np.int64]:
        k, v = flipped_k.of(block, chosen), flipped_v.of(block, chosen)
        k -= v * share[chosen]
        np.abs(k, out=k)
        v *= v
        v *= slope[chosen]
        k += v
        return np.asarray(np.count_nonzero(k >= bound[chosen], axis=1))

    def alone(pair: int, some: NDArray[np.bool_]) -> Tested:
        k, v = (_of_one(flipped.differences(pair)[some]) for flipped in (flipped_k, flipped_v))
        return swap_rates(ONE, k, v, (totals[0][[pair]], totals[1][[pair]]), seed)

    tested = _test(beyond, flipped_k.clusters, len(pairs.first), seed)
    return _enumerate_small(tested, [flipped_k, flipped_v], alone)


ONE = JudgePairs(np.array([0]), np.array([0]))


def _of_one(differences: Floats) -> DifferenceSums:
    return DifferenceSums(np.empty((0, 1)), differences[:, None])


def _enumerate_small(
    tested: Tested, flipped: Sequence[_Flipped], alone: Callable[[int, NDArray[np.bool_]], Tested]
) -> Tested:
    """Enumerate all swaps of pairs that differ in few clusters: other clusters change nothing."""
    for pair in np.flatnonzero(~tested.exhaustive).tolist():
        some = np.any([each.differences(pair) != 0 for each in flipped], axis=0)
        if not 1 < 2 ** int(some.sum()) <= EXHAUSTIVE:
            continue
        own = alone(pair, some)
        for row, one in zip(tested, own, strict=True):
            row[pair] = one[0]
    return tested


def _test(
    beyond: Callable[[Singles, NDArray[np.intp]], NDArray[np.int64]],
    clusters: int,
    pairs: int,
    seed: int,
) -> Tested:
    """Count the swaps at least as extreme as the observed sums, over all swaps or a sample."""
    exhaustive = are_enumerated(clusters)
    counts, tried = np.zeros((2, pairs), np.int64)
    chosen = np.arange(pairs)
    for number, block in enumerate(sign_blocks(clusters, seed)):
        counts[chosen] += beyond(block, chosen)
        tried[chosen] += block.shape[1]
        if number == 0 and not exhaustive:
            chosen = np.flatnonzero(drawn_p_value(counts, tried) <= CLEAR)
        if not chosen.size:
            break
    p_value = counts / tried if exhaustive else drawn_p_value(counts, tried)
    return Tested(p_value, tried, np.full(pairs, exhaustive))


FLIP_SEED = 20240614
ROUNDING = 1e-5
Value = Callable[[Floats], Floats]


def sign_flip_test(sums: NDArray[np.float64], value: Value) -> NDArray[np.float64]:
    """Return each cell's p-value: the share of sign flips that reach the observed value.

    If there are few sign patterns (``EXHAUSTIVE``), all are tried; else ``PERMUTATIONS`` seeded
    draws, with ``p = (1 + #) / (1 + draws)``. For very many clusters the flipped sums are drawn
    from their normal approximation.

    ``sums`` of clusters, 0 where a cluster does not count, have the shape (cells, rows, clusters).
    ``value`` makes of totals, shape (cells, rows, draws), the statistic, shape (cells, draws);
    large values are evidence against the null hypothesis.

    Examples
    --------
    Two clusters with sum 1 each: one of the four sign patterns reaches 2.

    >>> sign_flip_test(np.array([[[1.0, 1.0]]]), lambda totals: totals[:, 0]).tolist()
    [0.25]
    """
    cells, rows, clusters = sums.shape
    observed = value(sums.sum(axis=2, keepdims=True))[:, 0]
    scale = np.abs(value(np.abs(sums).sum(axis=2, keepdims=True)))[:, 0]
    # In single precision, near ties count as equal, which makes the test conservative.
    bound = (observed - ROUNDING * (scale + np.abs(observed)))[:, None]
    flat = sums.reshape(cells * rows, clusters).astype(np.float32)
    if clusters > MOST_CLUSTERS:
        blocks = _normal_totals(sums)
    else:
        blocks = (
            (flat @ block).astype(np.float64).reshape(cells, rows, -1)
            for block in sign_blocks(clusters, FLIP_SEED)
        )
    reached, tried = np.zeros(cells), 0
    for totals in blocks:
        reached += np.count_nonzero(value(totals) >= bound, axis=1)
        tried += totals.shape[2]
    found: Floats = reached / tried if are_enumerated(clusters) else drawn_p_value(reached, tried)
    return found


def _normal_totals(sums: Floats) -> Iterator[Floats]:
    """Yield totals from the normal approximation of randomly flipped sums."""
    random = np.random.default_rng(FLIP_SEED)
    spread = np.sqrt(np.square(sums).sum(axis=2, keepdims=True))
    for start in range(0, PERMUTATIONS, BLOCK):
        shape = 1, sums.shape[1], min(BLOCK, PERMUTATIONS - start)
        yield spread * random.standard_normal(shape)


def sign_test(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the two-sided p-value of the exact sign test of counts ``one`` against ``other``.

    The exact binomial test at 1/2, and so McNemar's exact test; 1 if both counts are 0.

    Examples
    --------
    Four to none: 2 / 2^4. Two to one: every outcome of three is at least as uneven.

    >>> sign_test(np.array([4.0, 2.0]), np.array([0.0, 1.0])).tolist()
    [0.125, 1.0]
    """
    from scipy.special import bdtr

    tails: NDArray[np.float64] = 2 * bdtr(np.minimum(one, other), (one + other).astype(int), 0.5)
    return np.minimum(1.0, tails)


def with_sign_test(
    rows: DataFrame[Estimates], items: pl.DataFrame, one: pl.Expr, other: pl.Expr
) -> DataFrame[Estimates]:
    """Set the p-values of estimates to the sign test of the counts ``one`` and ``other``."""
    if rows.is_empty():
        return rows
    counts = items.group_by(CELL, maintain_order=True).agg(
        one.sum().alias("one"), other=other.sum()
    )
    sides = (counts[side].cast(pl.Float64).to_numpy() for side in ("one", "other"))
    keys = counts.select(pl.col(CELL).cast(pl.String), tested=pl.Series(sign_test(*sides)))
    joined = rows.join(keys, on=CELL, how="left", nulls_equal=True)
    testable = pl.col("estimate").is_not_null() & (pl.col("clusters") > 1)
    return Estimates.draft(joined.with_columns(p_value=pl.when(testable).then(pl.col("tested"))))
