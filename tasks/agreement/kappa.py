"""Cohen's kappa from sums: the one place of its formula."""

from typing import Any

import numpy as np

from tasks.inference.cluster_sums import Floats
from tasks.inference.linearised_errors import over

CERTAIN = 1e-12
"""Below this expected disagreement, agreement by chance is certain."""


def kappa(n: Any, apart: Any, one: Any, other: Any, distance: Any = None) -> Floats:
    """Return Cohen's kappa, ``1 - O / E``; NaN where agreement by chance is certain.

    O is the mean distance of the two labels of an item, E the mean distance of two labels drawn at
    random, one of each annotator.

    Parameters
    ----------
    n
        Number of items.
    apart
        Sum over the items of the distance of their two labels.
    one, other
        How often each annotator gave each label, shape (..., labels).
    distance
        Distance of each two labels, shape (labels, labels); default: 1 for unequal labels.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20, 37-46; (1968), Psychol. Bull. 70, 213-220.

    Examples
    --------
    Ten items, three with unequal labels; one annotator gives the first label five times, the other
    four times: O = .3, E = .5.

    >>> round(float(kappa(10, 3, np.array([5, 5]), np.array([4, 6]))), 12)
    0.4
    """
    if distance is None:
        expected = np.square(n) - (one * other).sum(axis=-1)
    else:
        expected = ((one @ distance) * other).sum(axis=-1)
    found: Floats = 1 - over(apart * n, expected, CERTAIN)
    return found
