"""Cluster-robust confidence intervals for many cells at once (methods, section 3).

Each cell is one row of moments, computed from the sums of its clusters: ``num``, ``den`` and
``clusters`` (those with ``den`` above 0), ``squares`` = sum a_g^2 (num_g - R den_g)^2 with R = num
/ den and the CR2 weights a_g^2 for the clusters' sizes, ``freedom``, the degrees of freedom
(``linearised_errors.py``), and ``den_squares`` = sum den_g^2.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.inference.cluster_sums import Sums
from tasks.inference.linearised_errors import correction, layout, over
from tasks.inference.quantiles import normal_quantile, t_quantile, t_tail, t_to_normal
from tasks.kit.defaults import chosen_interval

LEVEL = 0.95
EMPTY = "nothing qualifies: the denominator is empty"
SINGLE = "a single cluster: no interval"
ROUNDING = 1e-12
"""Standard errors below this are rounding error."""
BISECTIONS = 50
"""Bisection steps; the remaining width is below rounding error."""

ALIKE = "no variation between clusters: no interval"


FOUND = ("estimate", "low", "high", "standard_error", "df", "p_value", "method", "reason")
"""Columns of the result, one row per cell; null where a value cannot be computed."""


def wilson(hits: Any, n: Any, level: float = LEVEL) -> tuple[Any, Any]:
    """Return the Wilson score interval of ``hits`` in ``n``, numbers or arrays.

    ``hits`` are from 0 to ``n``, which is above 0; effective sizes need not be whole numbers.

    References
    ----------
    Wilson, E. B. (1927), JASA 22, 209-212.

    Examples
    --------
    Five of ten, by hand: centre .5, half-width 1.96 sqrt(.025 + .0096) / 1.384.

    >>> [round(float(bound), 4) for bound in wilson(5, 10)]
    [0.2366, 0.7634]
    """
    if not (np.all(n > 0) and np.all((hits >= 0) & (hits <= n * (1 + 1e-12))) and 0 < level < 1):
        raise ValueError(
            f"hits ({hits}) must lie in 0..n ({n}), n be above 0, level ({level}) in (0, 1)."
        )
    z = normal_quantile((1 + level) / 2)
    p = np.minimum(hits / n, 1.0)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low = np.where(p == 0, 0.0, np.maximum(0.0, centre - half))
    return low, np.where(p == 1, 1.0, np.minimum(1.0, centre + half))


def proportions(moments: pl.DataFrame, level: float = LEVEL, *, whole: bool = True) -> pl.DataFrame:
    """Return each cell's proportion with its Wilson interval at the effective sample size.

    ``deff = max(1, var / (R (1 - R) / v))`` with the cluster-robust variance of ``R = k / v``; for
    R in {0, 1} ``deff = max(1, sum v_g^2 / v)``; so too if all clusters have the same R between
    them, with ``[R (1 - h), R + (1 - R) h]`` for h the upper end of a share of 0.
    :func:`tasks.kit.defaults.share_interval` selects another interval, at the same effective size.

    ``whole`` tells whether each item is a hit or a miss. Averaged hits vary less than zeros and
    ones, so their ``deff`` may fall below 1: a minimum of 1 made a nominal 95 % interval cover 99
    %. Without that minimum the variance of few clusters is often too small, so the effective size
    is multiplied by ``(z / t)^2``, t with the cell's degrees of freedom: with 20 clusters, z
    covered 92 to 94 %. The columns are ``FOUND``.

    References
    ----------
    methods.md, section 3. Korn and Graubard (1998), Surv. Methodol. 24, 193-201 (effective size by
    degrees of freedom).
    """
    num, den, clusters, df = arrays(moments, "num", "den", "clusters", "freedom")
    known = (den > 0) & (clusters > 1)
    hits, size, alike = _effective(moments, level, least=1.0 if whole else 0.0)
    low, high = share_bounds(hits, size, level)
    # The largest share of clusters that are not seen: all their items may be misses, or all hits.
    _, unseen = share_bounds(np.zeros_like(hits), size, level)
    rate = hits / size
    low = np.where(alike, rate - rate * unseen, low)
    high = np.where(alike, rate + (1 - rate) * unseen, high)
    return _frame(
        estimate=over(num, den),
        low=np.where(known, low, np.nan),
        high=np.where(known, high, np.nan),
        df=np.where(known, df, np.nan),
        method=np.where(known, cluster_adjusted(), "none"),
        reason=np.where(den > 0, np.where(known, "", SINGLE), EMPTY),
    )


def ratios(moments: pl.DataFrame, level: float = LEVEL, *, bounded: bool = True) -> pl.DataFrame:
    """Return each cell's ratio with its cluster-linearised t interval and p-value against 0.

    ``u_g = num_g - R den_g``, ``SE = sqrt(sum a_g^2 u_g^2) / sum den`` with CR2 weights and
    Satterthwaite degrees of freedom, which are G / (G - 1) and G - 1 for clusters of equal size.
    If every ``u_g`` is 0, a bounded ratio has the interval of :func:`common_difference`, with the
    p-value of a sign-flip test of the clusters: only 2 of the 2^G flips are as far from 0.

    ``bounded`` tells whether ratios lie in [-1, 1], as means of differences of two values in [0, 1]
    do; so do their intervals. The columns are ``FOUND``.
    """
    num, den, clusters, squares, freedom, den_squares = arrays(
        moments, "num", "den", "clusters", "squares", "freedom", "den_squares"
    )
    ratio = over(num, den)
    error = np.sqrt(squares) * over(np.ones_like(den), den)
    several = (den > 0) & (clusters > 1)
    alike = several & (error < ROUNDING)
    known = several & ~alike
    low, high, p_value = t_interval(ratio, np.where(known, error, 0.0), freedom, level)
    if bounded:
        size = np.where(alike, over(den**2, np.maximum(den, den_squares)), 1.0)
        ends = common_difference(np.where(alike, ratio, 0.0), size, level)
        low = np.clip(np.where(alike, ends[0], low), -1.0, 1.0)
        high = np.clip(np.where(alike, ends[1], high), -1.0, 1.0)
        # Otherwise a judge that shifts every cluster by the same amount would go untested.
        flips = np.where(np.abs(ratio) < ROUNDING, 1.0, 2.0 ** (1 - np.minimum(clusters, 1000)))
        p_value = np.where(alike, flips, p_value)
        method, silent = "Newcombe", ""
    else:
        method, silent = "none", ALIKE
    return _frame(
        estimate=ratio,
        low=low,
        high=high,
        standard_error=np.where(known, error, np.nan),
        df=np.where(several, freedom, np.nan),
        p_value=p_value,
        method=np.where(known, "cluster linearisation, t", np.where(alike, method, "none")),
        reason=np.where(known, "", np.where(alike, silent, np.where(den > 0, SINGLE, EMPTY))),
    )


def t_interval(
    estimate: Sums, error: Sums, df: Sums, level: float = LEVEL
) -> tuple[Sums, Sums, Sums]:
    """Return both ends of the t interval and the two-sided p-value against 0.

    NaN where the estimate or the degrees of freedom are, or the standard error is 0.

    Examples
    --------
    .5 with error .25 and one degree of freedom: t = 2, half-width 12.706 / 4.

    >>> low, high, p = t_interval(np.array([0.5]), np.array([0.25]), np.array([1.0]))
    >>> float(low[0].round(4)), float(high[0].round(4)), float(p[0].round(4))
    (-2.6766, 3.6766, 0.2952)
    """
    wide = np.where(error > 0, t_quantile(df, (1 + level) / 2) * error, np.nan)
    return estimate - wide, estimate + wide, np.minimum(1.0, t_tail(df, over(estimate, error)))


def tango(up: Sums, down: Sums, n: Sums) -> tuple[Sums, Sums]:
    """Return Tango's score interval of ``up - down``, the shares that rose and fell of n pairs.

    The variance is the maximum-likelihood one under the tested shift, so the interval keeps its
    coverage where few pairs move.

    ``up`` and ``down`` are shares whose sum is at most 1, ``n`` is the effective number of pairs,
    above 0; shape (cells,) each.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908.

    Examples
    --------
    None of 24 moved: z^2 / (24 + z^2) either way, as Wilson's of none.

    >>> low, high = tango(*(np.array([value]) for value in (0.0, 0.0, 24.0)))
    >>> float(low[0].round(4)), float(high[0].round(4))
    (-0.138, 0.138)
    """
    z2 = normal_quantile((1 + LEVEL) / 2) ** 2

    def is_inside(shift: Sums) -> NDArray[np.bool_]:
        # Maximum-likelihood share that falls, given the shift: the root of a quadratic equation.
        linear = (2 - up + down) * shift - up - down
        fall = (np.sqrt(np.maximum(linear**2 + 8 * down * shift * (1 - shift), 0)) - linear) / 4
        inside: NDArray[np.bool_] = n * (up - down - shift) ** 2 <= z2 * (
            2 * fall + shift * (1 - shift)
        )
        return inside

    ends = []
    for farthest in (-1.0, 1.0):
        near, far = up - down, np.full_like(up, farthest)
        for _ in range(BISECTIONS):
            middle = (near + far) / 2
            inside = is_inside(middle)
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        ends.append(near)
    return ends[0], ends[1]


def newcombe(one: Sums, other: Sums) -> tuple[Sums, Sums]:
    """Return the ends of the interval of a difference from those of both terms (MOVER).

    Each term is an estimate with the low and high end of its interval, shape (3, cells).

    References
    ----------
    Newcombe (1998), Stat. Med. 17, 873-890, method 10.
    """
    (a, low_a, high_a), (b, low_b, high_b) = one, other
    return a - b - np.hypot(a - low_a, high_b - b), a - b + np.hypot(high_a - a, b - low_b)


def common_difference(difference: Sums, n: Sums, level: float = LEVEL) -> tuple[Sums, Sums]:
    """Return the ends of the interval of a difference that n clusters share.

    Newcombe's, from the Wilson intervals of what rose and of what fell: one of the two is 0, and
    its upper end is what clusters that were not seen may do. (From the levels before and after it
    would be that of two independent samples: 24 questions of which none moved, each at one half,
    got -.27 to .27, where even a shift by 1 of all that may move, at most .14 of them, is less.)

    ``difference`` is in [-1, 1], ``n``, the effective number of clusters, above 0; shape (cells,)
    each.

    Examples
    --------
    None of 24 moved: z^2 / (24 + z^2) either way.

    >>> low, high = common_difference(np.array([0.0]), np.array([24.0]))
    >>> float(low[0].round(4)), float(high[0].round(4))
    (-0.138, 0.138)
    """
    risen, fallen = (np.clip(sign * difference, 0.0, 1.0) for sign in (1, -1))
    one, other = (np.stack([part, *wilson(part * n, n, level)]) for part in (risen, fallen))
    return newcombe(one, other)


def table_moments(num: Sums, den: Sums) -> pl.DataFrame:
    """Return the moments of cells from cluster sums of shape (clusters, cells)."""
    return moments({"num": num, "den": den, "counted": den})


def moments(sums: Mapping[str, Sums], starts: NDArray[np.int64] | None = None) -> pl.DataFrame:
    """Return the moments of cells from their cluster sums.

    ``sums`` has ``num``, ``den`` and ``counted`` (the samples that define a cluster's size), laid
    out as the sizes and ``starts`` of :func:`tasks.inference.linearised_errors.correction`.
    """
    num, den = sums["num"], sums["den"]
    total, each = layout(starts)
    found: dict[str, Any] = {"num": total(num), "den": total(den)}
    sizes = correction(np.where(den > 0, sums["counted"], 0.0), starts)
    rate = np.nan_to_num(over(found["num"], found["den"]))
    return pl.DataFrame(
        found
        | {
            "clusters": total((den > 0).astype(np.float64)).astype(np.int64),
            "freedom": sizes.df,
            "den_squares": total(den**2),
            "squares": sizes.variance(each(rate) * den - num),
        }
    )


def _effective(
    moments: pl.DataFrame, level: float, least: float
) -> tuple[Sums, Sums, NDArray[np.bool_]]:
    """Return the hits at the effective sample size, that size, and whether clusters are alike.

    They are if all have the same rate, between 0 and 1.
    """
    num, residual = arrays(moments, "num", "squares")
    den, df, den_squares = arrays(moments, "den", "freedom", "den_squares")
    rate = np.clip(over(num, den), 0.0, 1.0)
    variance = residual * over(np.ones_like(den), den) ** 2
    spread = np.maximum(least, over(variance * den, rate * (1 - rate)))
    edge = np.maximum(1.0, over(den_squares, den))
    alike = (spread < ROUNDING) & (rate > 0) & (rate < 1)
    deff: Sums = np.where(alike | (rate == 0) | (rate == 1), edge, spread)
    if least < 1.0:
        far = t_to_normal(np.nan_to_num(df, nan=1.0), level)
        deff *= np.where((rate > 0) & (rate < 1) & ~alike, far**2, 1.0)
    n = np.where(den > 0, over(den, deff), 1.0)
    n = np.where(np.isfinite(n), n, 1.0)
    return np.where(np.isfinite(rate), rate, 0.0) * n, n, alike


def arrays(frame: pl.DataFrame, *names: str) -> tuple[Sums, ...]:
    """Return columns of numbers as arrays, with NaN for null."""
    return tuple(frame[name].cast(pl.Float64).to_numpy() for name in names)


def _frame(**columns: NDArray[Any]) -> pl.DataFrame:
    unknown = np.full(len(columns["reason"]), np.nan)
    found: dict[str, Any] = {name: columns.get(name, unknown) for name in FOUND}
    found["reason"] = pl.Series(
        [why or None for why in columns["reason"].tolist()], dtype=pl.String
    )
    return pl.DataFrame(found, nan_to_null=True)


LABELS = {"wilson": "Wilson", "clopper_pearson": "Clopper-Pearson", "jeffreys": "Jeffreys"}
"""Intervals available for proportions; the first is the default."""


def cluster_adjusted() -> str:
    """Return the name of the interval for proportions that is in force, as results have it."""
    return f"cluster-adjusted {LABELS[chosen_interval()]}"


def share_bounds(hits: Any, n: Any, level: float = LEVEL) -> tuple[Any, Any]:
    """Return the interval for proportions that is in force, of ``hits`` in ``n``."""
    return INTERVALS[chosen_interval()](hits, n, level)


def clopper_pearson(hits: Any, n: Any, level: float) -> tuple[Any, Any]:
    """Return the exact interval: beta quantiles at (k, n - k + 1) and (k + 1, n - k).

    ``hits`` and ``n`` are as those of :func:`wilson`.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413; for effective sizes Korn and Graubard
    (1998), Surv. Methodol. 24, 193-201.

    Examples
    --------
    No hit in ten: the upper end is 1 - .025^(1/10).

    >>> [round(float(bound), 4) for bound in clopper_pearson(0, 10, 0.95)]
    [0.0, 0.3085]
    """
    return _quantiles((hits, n - hits + 1), (hits + 1, n - hits), hits, n, level)


def jeffreys(hits: Any, n: Any, level: float) -> tuple[Any, Any]:
    """Return quantiles of Beta(k + 1/2, n - k + 1/2), with low 0 at k = 0 and high 1 at k = n.

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
    """Return the tail quantiles of two beta distributions; 0 if no hits, 1 if no misses."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    none, every = np.asarray(hits) <= 0, np.asarray(hits) >= n
    # The beta distribution is undefined at an end that is certain.
    lower = [np.where(none, 1.0, shape) for shape in low]
    upper = [np.where(every, 1.0, shape) for shape in high]
    share = hits / n
    # A tiny effective number of hits can place the share outside its own interval.
    return (
        np.where(none, 0.0, np.minimum(share, betaincinv(*lower, tail))),
        np.where(every, 1.0, np.maximum(share, betaincinv(*upper, 1 - tail))),
    )


INTERVALS = {"wilson": wilson, "clopper_pearson": clopper_pearson, "jeffreys": jeffreys}
