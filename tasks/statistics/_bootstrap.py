"""Cluster bootstrap: clusters are drawn, with all that is in them."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
SEED = 20240612


@lru_cache(maxsize=4)
def weights(clusters: int, draws: int = DRAWS, seed: int = SEED) -> NDArray[np.float64]:
    """Return how often each cluster is drawn, a row a draw; read-only, as it is shared.

    Examples
    --------
    >>> weights(5, 2, 1).sum(axis=1)
    array([5., 5.])
    """
    random = np.random.default_rng(seed)
    found = random.multinomial(clusters, np.full(clusters, 1 / clusters), draws).astype(np.float64)
    found.flags.writeable = False
    return found
