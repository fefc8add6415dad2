"""What a design can see (methods, section 4)."""

import math

from tasks.statistics._quantiles import normal_quantile

NOISE_OF_VOTES, NOISE_OF_ITEMS = 0.2907, 0.0068
"""Variance of a sample's shift is a/m + b at m votes per arm: through the typical judge's .39 at
m = 2 and .235 at 6 (simulated, methods section 4); at 4 that gives .282 against .28 there."""


def shift_sigma(votes_per_pair: int) -> float:
    """Return the standard deviation of one sample's preference shift, for a typical judge.

    Examples
    --------
    >>> [round(shift_sigma(m), 3) for m in (2, 4, 6)]
    [0.39, 0.282, 0.235]
    """
    return math.sqrt(NOISE_OF_VOTES / votes_per_pair + NOISE_OF_ITEMS)


def smallest_shift(
    samples: int, votes_per_pair: int, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the smallest mean preference shift found with ``power``; null without samples.

    ``delta = (z_{1 - alpha/2} + z_power) sigma / sqrt(N)``.

    Examples
    --------
    >>> round(smallest_shift(142, 2), 3), round(smallest_shift(142, 6), 3)
    (0.092, 0.055)
    """
    if not samples:
        return None
    z = float(normal_quantile(1 - alpha / 2) + normal_quantile(power))
    return z * shift_sigma(votes_per_pair) / math.sqrt(samples)
