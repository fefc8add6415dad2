"""Cluster-robust variance of advantage probabilities, and what clusters change in their tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.keys import EpsilonKind
from tasks.calibration.label_values import Codes, Floats
from tasks.calibration.non_inferiority import Clustering, Counts, ItemDifference, is_constant
from tasks.inference.intervals import LEVEL, share_bounds
from tasks.inference.linearised_errors import Correction, correction
from tasks.inference.quantiles import t_to_normal

Flags = NDArray[np.int8]


class ClusterSums(NamedTuple):
    """Counts of one judge by annotator left out and cluster, annotator by annotator."""

    present: Codes
    """Annotators that have labels, sorted."""
    starts: Codes
    """Index of each one's first cluster."""
    n: Floats
    better: Floats
    worse: Floats
    known: Correction

    def mean_variance(
        self, gain: float, loss: float, tie: float, people: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return what the mean difference per item rests on, by annotator; NaN where unknown.

        A difference is ``gain`` where the annotator fits better, ``loss`` where the judge does,
        else ``tie``.

        Returns
        -------
        tuple
            CR2 variance of the mean, its Satterthwaite degrees of freedom, and the number of items
            of an item's cluster, ``sum n_g^2 / n``; shape (annotators,).
        """
        sums = gain * self.better + loss * self.worse + tie * (self.n - self.better - self.worse)
        of = np.repeat(np.arange(self.present.size), np.diff(np.append(self.starts, sums.size)))
        number, total, squares = (
            np.add.reduceat(each, self.starts) for each in (self.n, sums, self.n**2)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            off = sums - (total / number)[of] * self.n
            found = (self.known.variance(off) / number**2, self.known.df, squares / number)
        variance, freedom, together = (np.full(people, np.nan) for _ in found)
        for array, values in zip((variance, freedom, together), found, strict=True):
            array[self.present] = values
        return variance, freedom, together


class AdvantageMoments(NamedTuple):
    """Moments of an advantage over clusters, by annotator left out; interval of their mean."""

    clusters: Floats
    freedom: Floats
    """Degrees of freedom from the cluster sizes."""
    squares: Floats
    """Sum over clusters of (hits - share x items) squared, with CR2 weights."""
    den_squares: Floats
    """Sum over clusters of squared item counts."""
    low: float
    high: float
    """Interval of the mean over annotators; NaN if there is none."""
    sums: ClusterSums | None = None
    """None if each item is its own cluster."""


@dataclass(frozen=True)
class LabelPlaces:
    """Indices of each human label: its annotator, its cluster, and the combination of both."""

    size: Codes
    """Number of labels of each annotator; labels are sorted by annotator."""
    cluster: Codes
    item: Codes
    of_items: Codes | None
    """The cluster of each item; None if each item is its own cluster."""
    clusters: int
    pair: Codes | None
    """Index of the annotator-cluster pair; None if each item is its own cluster."""
    owner: Codes
    """The annotator of each pair."""

    @classmethod
    def of(cls, who: Codes, item: Codes, clusters: Codes | None, people: int) -> "LabelPlaces":
        """Compute the indices of labels that are sorted by annotator."""
        size = np.bincount(who, minlength=people)
        if clusters is None:
            many = int(item.max()) + 1 if item.size else 0
            return cls(size, item, item, None, many, None, np.zeros(0, np.int64))
        cluster, many = clusters[item], int(clusters.max()) + 1 if clusters.size else 0
        found, pair = np.unique(who * many + cluster, return_inverse=True)
        return cls(size, cluster, item, clusters, many, pair, found // max(many, 1))


def no_spread(people: int) -> AdvantageMoments:
    """Return the empty result for a judge without instances."""
    nothing = np.zeros(people)
    return AdvantageMoments(nothing, nothing, nothing, nothing, np.nan, np.nan)


def spread_of(
    places: LabelPlaces,
    rows: tuple[Flags, Flags, Flags],
    counts: tuple[Counts, Counts, Counts],
    least: int,
) -> AdvantageMoments:
    """Return the moments of an advantage from three flags per label.

    They tell whether the judge labelled the item, the annotator fits better, and the judge does.
    ``counts`` are their sums by annotator.
    """
    people = places.size.size
    there, lost, _ = rows
    n, better, _ = (each.astype(np.float64) for each in counts)
    won = n - better
    share = np.divide(won, n, out=np.zeros_like(n), where=n > 0)
    weight = np.where(n >= max(least, 1), n, np.inf)
    low, high = _mean_interval(places, (there, there - lost), share, 1 / weight)
    if places.pair is None:
        several = n / np.maximum(n - 1, 1)
        return AdvantageMoments(n, n - 1, several * n * share * (1 - share), n, low, high)
    items, worst, best = (_sums(places.pair, row, places.owner.size) for row in rows)
    got = items - worst
    present, starts = np.unique(places.owner, return_index=True)
    known = correction(items, np.append(starts, items.size))
    freedom, squares = np.full(people, np.nan), np.zeros(people)
    freedom[present] = known.df
    squares[present] = known.variance(got - share[places.owner] * items)
    clusters, sizes = (_sums(places.owner, each, people) for each in (items > 0, items**2))
    sums = ClusterSums(present, starts, items, worst, best, known)
    return AdvantageMoments(clusters, freedom, squares, sizes, low, high, sums)


def clustering(
    counts: tuple[Counts, ...],
    sums: Sequence[ClusterSums | None],
    epsilon: float,
    kind: EpsilonKind,
) -> Clustering | None:
    """Return the effect of clusters, from each judge's counts by cluster; None without clusters.

    The design effect is the cluster-robust variance over that of independent items, both without
    their corrections for few of them; where none is seen, as with one cluster or equal
    differences, the mean number of items of an item's cluster.
    """
    if all(each is None for each in sums):
        return None
    difference = ItemDifference.of(epsilon, kind)
    n, better, worse = counts
    people = n.shape[1]
    unknown = tuple(np.full(people, np.nan) for _ in range(3))
    each = [unknown if one is None else one.mean_variance(*difference[:3], people) for one in sums]
    variance, freedom, together = (np.array(part) for part in zip(*each, strict=True))
    _, squares = difference.moments(n, better, worse)
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = (variance >= 0) & ~is_constant(*counts)
        effect = np.where(shown, variance * freedom / (freedom + 1) / (squares / n**2), together)
        variance = np.fmax(variance, squares / (n - 1) / n)
    # Rounded, as fifty clusters of one item are not fewer than fifty items.
    effect = np.fmax(effect, 1.0).round(12)
    return Clustering(variance, freedom, effect)


def _mean_interval(
    places: LabelPlaces, rows: tuple[Flags, Flags], share: Floats, weight: Floats
) -> tuple[float, float]:
    """Return the interval of the mean share of tested annotators, at its effective size.

    The mean is linearised, ``u_g = sum_j (hits_gj - share_j n_gj) / (J n_j)``. Its variance ``sum
    a_g^2 u_g^2``, with CR2 weights for the items of each cluster, gives the number of independent
    items that the mean is worth, multiplied by ``(z / t)^2``, t with Satterthwaite degrees of
    freedom. ``weight`` is 1 / n_j, or 0 for annotators that are not tested.
    """
    there, hits = rows
    items = places.clusters if places.of_items is None else places.of_items.size
    sums, asked = np.zeros(places.clusters), np.zeros(items)
    ends = np.cumsum(places.size)
    # Processing one annotator at a time stays in the CPU cache.
    for who in np.flatnonzero(weight):
        own = slice(ends[who] - places.size[who], ends[who])
        cluster = places.cluster[own]
        off = hits[own] - share[who] * there[own]
        off *= weight[who]
        if places.pair is None:
            sums[cluster] += off
        else:
            np.add.at(sums, cluster, off)
        asked[places.item[own][there[own] > 0]] = 1.0
    if places.of_items is not None:
        asked = _sums(places.of_items, asked, places.clusters)
    groups = int(np.count_nonzero(asked))
    if groups < 2:
        return np.nan, np.nan
    sums /= np.count_nonzero(weight)
    mean = float(share[weight > 0].mean())
    known = correction(asked)
    variance = float(known.variance(sums))
    size = float(groups)
    if variance > 0 and 0 < mean < 1:
        size = float(mean * (1 - mean) / variance / t_to_normal(known.df, LEVEL) ** 2)
    low, high = share_bounds(mean * size, size)
    return float(low), float(high)


def _sums(place: Codes, values: NDArray[Any], many: int) -> Floats:
    sums: Floats = np.bincount(place, values, minlength=many).astype(np.float64)
    return sums
