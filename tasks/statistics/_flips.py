"""Sign flips of whole clusters: what sums would be if the two arms were exchangeable."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tasks.defaults import PERMUTATIONS
from tasks.statistics._bootstrap import MOST_CLUSTERS
from tasks.statistics._swaps import BLOCK, EXHAUSTIVE, signs

FLIP_SEED = 20240614
ROUNDING = 1e-5
Value = Callable[[Floats], Floats]


def sign_flip_test(sums: NDArray[np.float64], value: Value) -> NDArray[np.float64]:
    """Return the p-value of each cell: how often flipped signs give at least the observed value.

    All sign patterns where there are few (``EXHAUSTIVE``), else ``PERMUTATIONS`` seeded draws and
    ``p = (1 + #) / (1 + draws)``. Of very many clusters the flipped sums are drawn from the normal
    distribution that they then follow.

    Parameters
    ----------
    sums
        Of each cluster, 0 where it does not count; shape (cells, rows, clusters).
    value
        From totals, shape (cells, rows, draws), to the statistic, shape (cells, draws); large
        values speak against the null hypothesis.

    Examples
    --------
    Two clusters that sum to 1: of the four sign patterns one reaches 2.

    >>> sign_flip_test(np.array([[[1.0, 1.0]]]), lambda totals: totals[:, 0]).tolist()
    [0.25]
    """
    cells, rows, clusters = sums.shape
    observed = value(sums.sum(axis=2, keepdims=True))[:, 0]
    scale = np.abs(value(np.abs(sums).sum(axis=2, keepdims=True)))[:, 0]
    # Single precision: what is this close counts as equal, against rejection.
    bound = (observed - ROUNDING * (scale + np.abs(observed)))[:, None]
    every = 2**clusters if clusters < EXHAUSTIVE else np.inf
    exhaustive = every <= EXHAUSTIVE
    tries = int(every) if exhaustive else PERMUTATIONS
    random = np.random.default_rng(FLIP_SEED)
    flat = sums.reshape(cells * rows, clusters).astype(np.float32)
    spread = np.sqrt(np.square(sums).sum(axis=2, keepdims=True))
    reached = np.zeros(cells)
    for start in range(0, tries, BLOCK):
        some = range(start, min(start + BLOCK, tries))
        if clusters > MOST_CLUSTERS:
            totals = spread * random.standard_normal((1, rows, len(some)))
        else:
            block = signs(clusters, some, None if exhaustive else random)
            totals = (flat @ block).astype(np.float64).reshape(cells, rows, len(some))
        reached += np.count_nonzero(value(totals) >= bound, axis=1)
    return reached / tries if exhaustive else (1 + reached) / (1 + tries)
