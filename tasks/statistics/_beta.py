"""Intervals of a share by the beta distribution, on request instead of Wilson's (methods, 3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

LABELS = {"wilson": "Wilson", "clopper_pearson": "Clopper-Pearson", "jeffreys": "Jeffreys"}
"""Intervals that a share can have; the first is the default."""

_chosen = ContextVar("_chosen", default="wilson")


@contextmanager
def share_interval(name: str) -> Iterator[None]:
    """Give shares another interval than Wilson's, at the same effective size.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in LABELS:
        raise ValueError(f"no interval {name!r} of a share. Known: {', '.join(LABELS)}.")
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen() -> str:
    """Return which interval shares get, see :func:`share_interval`."""
    return _chosen.get()


def clopper_pearson(hits: Any, n: Any, level: float) -> tuple[Any, Any]:
    """Return the exact interval: beta quantiles at (k, n - k + 1) and (k + 1, n - k).

    Parameters
    ----------
    hits, n
        Numbers or arrays with 0 <= hits <= n and n > 0; not necessarily whole (effective sizes).
    level
        Confidence level in (0, 1).

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413; of effective sizes Korn and Graubard (1998),
    Surv. Methodol. 24, 193-201.

    Examples
    --------
    None of ten: the upper end is 1 - .025^(1/10).

    >>> [round(float(bound), 4) for bound in clopper_pearson(0, 10, 0.95)]
    [0.0, 0.3085]
    """
    return _quantiles((hits, n - hits + 1), (hits + 1, n - hits), hits, n, level)


def jeffreys(hits: Any, n: Any, level: float) -> tuple[Any, Any]:
    """Return the quantiles of Beta(k + 1/2, n - k + 1/2), to the end at k = 0 and k = n.

    Parameters
    ----------
    hits, n, level
        As of :func:`clopper_pearson`.

    References
    ----------
    Brown, Cai and DasGupta (2001), Stat. Sci. 16, 101-133; methods.md, section 3 (the ends).

    Examples
    --------
    >>> [round(float(bound), 4) for bound in jeffreys(5, 10, 0.95)]
    [0.2235, 0.7765]
    """
    shape = (hits + 0.5, n - hits + 0.5)
    return _quantiles(shape, shape, hits, n, level)


def _quantiles(
    low: tuple[Any, Any], high: tuple[Any, Any], hits: Any, n: Any, level: float
) -> tuple[Any, Any]:
    """Return tails of two beta distributions; 0 without a hit, 1 without a miss."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    none, every = np.asarray(hits) <= 0, np.asarray(hits) >= n
    # Where an end is certain its distribution does not exist.
    lower = [np.where(none, 1.0, shape) for shape in low]
    upper = [np.where(every, 1.0, shape) for shape in high]
    share = hits / n
    # Beside the ends an effective size may leave so little of a hit that the share lies outside.
    return (
        np.where(none, 0.0, np.minimum(share, betaincinv(*lower, tail))),
        np.where(every, 1.0, np.maximum(share, betaincinv(*upper, 1 - tail))),
    )
