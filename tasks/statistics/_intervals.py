"""Intervals whose unit is the cluster, never the vote (methods, section 3)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.statistics._quantiles import normal_quantile, t_quantile, t_tail

LEVEL = 0.95
Sums = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate with its uncertainty; null where it cannot be told."""

    estimate: float | None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    p_value: float | None = None
    method: str = "none"
    reason: str | None = None


def wilson(hits: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the Wilson score interval of ``hits`` in ``n``.

    Parameters
    ----------
    hits, n
        Numbers with 0 <= hits <= n and n > 0; not necessarily whole (effective sizes).
    level
        Confidence level in (0, 1).

    References
    ----------
    Wilson, E. B. (1927), JASA 22, 209-212.

    Examples
    --------
    Five of ten, by hand: centre .5, half-width 1.96 sqrt(.025 + .0096) / 1.384.

    >>> [round(bound, 4) for bound in wilson(5, 10)]
    [0.2366, 0.7634]
    """
    if not (n > 0 and 0 <= hits <= n * (1 + 1e-12) and 0 < level < 1):
        raise ValueError(
            f"hits ({hits}) must lie in 0..n ({n}), n be above 0, level ({level}) in (0, 1)."
        )
    z = normal_quantile((1 + level) / 2)
    p = min(hits / n, 1.0)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return (
        0.0 if p == 0 else max(0.0, float(centre - half)),
        1.0 if p == 1 else min(1.0, float(centre + half)),
    )


def cluster_wilson(
    hits: Sums, totals: Sums, level: float = LEVEL, *, whole: bool = True
) -> Interval:
    """Return a proportion with its Wilson interval at the effective sample size.

    ``deff = max(1, var / (R (1 - R) / v))`` with the cluster variance of ``R = k / v``; for R in
    {0, 1} ``deff = max(1, sum v_g^2 / v)``.

    Parameters
    ----------
    hits, totals
        Shape (clusters,): numerator and denominator of each cluster.
    whole
        Whether an item is a hit or not. If its hits are averages, it varies less than 0 and 1 do,
        and ``deff`` may fall below 1: at 1 a nominal 95 % interval covered 99 %.
    """
    rate, deff = _design_effect(hits, totals, least=1.0 if whole else 0.0)
    if rate is None:
        return Interval(None, reason="nothing qualifies: the denominator is empty")
    if deff is None:
        return Interval(rate, reason="a single cluster: no interval")
    n = float(totals.sum()) / deff
    low, high = wilson(rate * n, n, level)
    return Interval(rate, low, high, method="cluster-adjusted Wilson")


def cluster_ratio(
    num: Sums, den: Sums, parts: tuple[Sums, Sums] | None = None, level: float = LEVEL
) -> Interval:
    """Return a ratio of sums with its cluster-linearised t interval and p-value against 0.

    ``u_g = num_g - R den_g``, ``SE = sqrt(G / (G - 1) sum u_g^2) / sum den``, G - 1 degrees of
    freedom. If every ``u_g`` is 0, Newcombe's interval from the Wilson intervals of the two
    proportions in ``parts`` (whose difference of sums is ``num``), and the p-value of flipping the
    clusters' signs: all alike, only 2 of 2^G flips are as far from 0.

    Parameters
    ----------
    num, den
        Shape (clusters,): sums of each cluster.
    parts
        Numerators, shape (clusters,), of the two proportions that the ratio is the difference of.
    """
    clusters, total = len(den), float(den.sum())
    if total == 0:
        return Interval(None, reason="nothing qualifies: the denominator is empty")
    ratio = float(num.sum()) / total
    if clusters < 2:
        return Interval(ratio, reason="a single cluster: no interval")
    residuals = num - ratio * den
    error = float(np.sqrt(clusters / (clusters - 1) * (residuals**2).sum()) / total)
    if error < 1e-12:
        return _newcombe(ratio, parts, den, level)
    half = float(t_quantile(clusters - 1, (1 + level) / 2)) * error
    p_value = min(1.0, float(t_tail(clusters - 1, ratio / error)))
    method = "cluster linearisation, t"
    return Interval(ratio, ratio - half, ratio + half, error, p_value, method)


def _newcombe(ratio: float, parts: tuple[Sums, Sums] | None, den: Sums, level: float) -> Interval:
    if parts is None:
        return Interval(ratio, reason="no variation between clusters: no interval")
    bounds = []
    for part in parts:
        rate, deff = _design_effect(part, den)
        if rate is None or deff is None:
            return Interval(ratio, reason="no variation between clusters: no interval")
        n = float(den.sum()) / deff
        bounds.append((rate, *wilson(min(max(rate, 0.0), 1.0) * n, n, level)))
    (a, low_a, high_a), (b, low_b, high_b) = bounds
    low = ratio - float(np.hypot(a - low_a, high_b - b))
    high = ratio + float(np.hypot(high_a - a, b - low_b))
    # Without it a judge that shifts every cluster alike, the worst there is, would stay untested.
    p_value = 1.0 if abs(ratio) < 1e-12 else 2.0 ** (1 - len(den))
    return Interval(ratio, low, high, p_value=p_value, method="Newcombe")


def _design_effect(
    hits: Sums, totals: Sums, least: float = 1.0
) -> tuple[float | None, float | None]:
    total, clusters = float(totals.sum()), len(totals)
    if total == 0:
        return None, None
    rate = float(hits.sum()) / total
    if clusters < 2:
        return rate, None
    if rate in {0.0, 1.0}:
        return rate, max(1.0, float((totals**2).sum()) / total)
    residuals = hits - rate * totals
    variance = clusters / (clusters - 1) * float((residuals**2).sum()) / total**2
    return rate, max(least, variance / (rate * (1 - rate) / total)) or 1.0
