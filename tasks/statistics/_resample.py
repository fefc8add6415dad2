"""Seeded cluster bootstrap by weights: a draw is a vector of how often each cluster is drawn."""

from functools import lru_cache

import numpy as np

from tasks.statistics._intervals import Sums

DRAWS = 2000
SEED = 20240613
AT_ONCE = 8_000_000
"""Weights that are held in memory at once."""
FEWEST = 0.5
"""Share of the draws in which a statistic must exist for its interval to be told."""


@lru_cache(maxsize=1)
def weights(clusters: int, draws: int, seed: int) -> Sums:
    """Return, for each draw, how often each cluster is in it, shape (draws, clusters).

    Parameters
    ----------
    clusters
        How many there are, and how many each draw takes, with replacement.
    draws
        Number of draws.
    seed
        Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    # Counted, not drawn as multinomials: several times as fast.
    picked = rng.integers(0, clusters, (draws, clusters)) + np.arange(draws)[:, None] * clusters
    counts = np.bincount(picked.ravel(), minlength=draws * clusters)
    found = counts.reshape(draws, clusters).astype(np.float64)
    found.setflags(write=False)
    return found


def resampled(sums: Sums) -> Sums:
    """Return the totals of each draw of clusters, shape (DRAWS, columns).

    Parameters
    ----------
    sums
        Of each cluster, shape (clusters, columns).
    """
    clusters = len(sums)
    step = min(DRAWS, max(1, AT_ONCE // clusters))
    return np.concatenate(
        [
            weights(clusters, min(step, DRAWS - start), SEED + start) @ sums
            for start in range(0, DRAWS, step)
        ]
    )


def percentiles(point: Sums, drawn: Sums, level: float) -> tuple[Sums, Sums]:
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
    ordered = np.sort(drawn, axis=0)
    known = np.isfinite(ordered).sum(axis=0)
    enough = np.isfinite(point) & (known > FEWEST * len(drawn))
    ends = []
    for q in ((1 - level) / 2, (1 + level) / 2):
        place = q * np.maximum(known - 1, 0)
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, np.maximum(known - 1, 0))
        low, high = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (below, above))
        ends.append(np.where(enough, low + (high - low) * (place - below), np.nan))
    return np.minimum(ends[0], point), np.maximum(ends[1], point)
