"""Delta method for functions of several cluster sums per cell (methods, section 3)."""

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.inference.bootstrap import BOOT, Value, boot_ends, bounds_of
from tasks.inference.cluster_sums import Groups, Sums, grouped
from tasks.inference.intervals import ALIKE, LEVEL, SINGLE, arrays, t_interval
from tasks.inference.linearised_errors import ROUNDING, correction, over

METHOD = "cluster linearisation, t"


class Linear(NamedTuple):
    """A function of each cell's sums and its gradient; one entry per cell."""

    estimate: Sums
    """NaN where it cannot be computed."""
    slopes: dict[str, Sums]
    """Derivative to each sum except ``n``: the function must not change when all sums and ``n``
    are doubled, so the others imply that one."""
    reason: NDArray[np.str_]
    """Why it cannot be computed, if it cannot."""
    added: Sums | None = None
    """Square to add to the clusters' variance, times the inflation of their weights."""
    flag: NDArray[np.str_] | None = None
    """Text to append to the method."""


Solve = Callable[[dict[str, Sums]], Linear]


def summed(
    items: pl.DataFrame,
    sums: tuple[str, ...],
    value: Value | None = None,
    groups: Groups | None = None,
) -> pl.DataFrame:
    """Return each cell's sums and the cross-products of its cluster sums.

    ``items`` has the cell's columns, ``cluster, kind, votes, simulated``, ``counted`` (true or
    false), ``dropped``, and the numbers to sum, which count where ``counted`` is true. A product is
    of deviations ``x_gk - n_g X_k / n`` (x_gk the sum of a cluster, X_k of the cell, n the counted
    items), times the CR2 weight of the cluster. If ``value``, a function of the sums and ``n``, is
    given, its bootstrap interval is added as a cross-check. ``groups`` may pass the items' groups.
    """
    counted = items["counted"].fill_null(value=False)
    kept = items.select(pl.when(counted).then(pl.col(*sums).cast(pl.Float64)).otherwise(0.0))
    groups = groups or grouped(items)
    n, cell = groups.by_cluster(counted.cast(pl.Int64)), groups.cell_of_sums()
    number = groups.of_cells(n)
    share = over(n, number[cell])
    totals: dict[str, Sums] = {}
    centred: dict[str, Sums] = {}
    by_cluster = {name: groups.by_cluster(kept[name]) for name in sums}
    for name, values in by_cluster.items():
        totals[name] = groups.of_cells(values)
        centred[name] = _centred(values, np.nan_to_num(share) * totals[name][cell])
    sizes = correction(n, groups.starts)
    products = {
        f"{a} x {b}": sizes.covariance(centred[a], centred[b])
        for a, b in combinations_with_replacement(sums, 2)
    }
    counts = {
        "n": number,
        "dropped": groups.by_cell(items["dropped"]),
        "clusters": groups.of_cells((n > 0).astype(np.float64)),
    }
    found = groups.cells.with_columns(
        *(pl.Series(name, values) for name, values in (totals | products).items()),
        freedom=pl.Series(sizes.df, dtype=pl.Float64),
        inflation=pl.Series(sizes.inflation, dtype=pl.Float64),
    ).with_columns(pl.Series(name, values.astype(np.int64)) for name, values in counts.items())
    if value is None:
        return found
    ends = bounds_of(groups, by_cluster | {"n": n}, n, value)
    return found.with_columns(boot_ends(ends))


def _centred(value: Sums, share: Sums) -> Sums:
    """Return the deviations of cluster sums from their shares; 0 if only rounding error is left."""
    rounded = np.abs(value - share) <= ROUNDING * (np.abs(value) + np.abs(share))
    beyond: Sums = np.where(rounded, 0.0, value - share)
    return beyond


def mean_of(name: str, none: str, sums: dict[str, Sums]) -> Linear:
    """Return the mean of a value by cell; ``none`` is the reason where nothing is counted."""
    n = sums["n"]
    return Linear(over(sums[name], n), {name: over(1.0, n)}, np.full(n.shape, none))


def linearised(name: str, cells: pl.DataFrame, solve: Solve) -> DataFrame[Estimates]:
    """Estimate ``f(sums)`` in each cell, with ``u_g = sum_k f_k (x_gk - n_g X_k / n)``.

    f_k are the derivatives; ``SE^2 = sum_g a_g^2 u_g^2`` with the CR2 weights of the clusters, and
    the interval uses t with Satterthwaite degrees of freedom (``linearised_errors.py``).

    ``cells`` are as :func:`summed` returns them; ``solve`` makes the estimates and their
    derivatives of the sums of the cells and ``n``. A row has no p-value and interval where the
    clusters do not vary.
    """
    names = [*(c for c in cells.columns if f"{c} x {c}" in cells.columns), "n"]
    linear = solve(dict(zip(names, arrays(cells, *names), strict=True)))
    rows = cells.with_columns(*_intervals(cells, linear), statistic=pl.lit(name))
    ends = [pl.when(pl.col("low").is_not_null()).then(end).alias(end) for end in BOOT]
    return Estimates.draft(rows.with_columns(ends) if BOOT[0] in cells.columns else rows)


def _error(cells: pl.DataFrame, linear: Linear) -> Sums:
    """Return the standard error; 0 where the variance is only rounding error."""
    squares, scale = np.zeros(cells.height), np.zeros(cells.height)
    for a, b in combinations_with_replacement(linear.slopes, 2):
        name = f"{a} x {b}" if f"{a} x {b}" in cells.columns else f"{b} x {a}"
        term = linear.slopes[a] * linear.slopes[b] * cells[name].to_numpy()
        squares += term if a == b else 2 * term
        scale += np.abs(term)
    squares = np.where(squares > ROUNDING * scale, squares, 0.0)
    if linear.added is not None:
        squares += linear.added * cells["inflation"].to_numpy()
    error: Sums = np.sqrt(squares)
    return error


def _intervals(cells: pl.DataFrame, linear: Linear) -> list[pl.Series]:
    estimate, clusters = linear.estimate, cells["clusters"].to_numpy()
    freedom, finite = cells["freedom"].to_numpy(), np.isfinite(estimate)
    several = finite & (clusters > 1)
    error = np.where(finite, _error(cells, linear), 0.0)
    known = several & (error > 0)
    low, high, p_value = t_interval(estimate, error, freedom)
    flag = np.full(estimate.shape, "") if linear.flag is None else linear.flag
    untested = np.where(known, "", np.where(clusters > 1, ALIKE, SINGLE))
    why = np.where(finite, untested, linear.reason)
    return [
        _float("estimate", finite, estimate),
        _float("low", known, low),
        _float("high", known, high),
        _float("level", known, np.full(estimate.shape, LEVEL)),
        _float("standard_error", known, error),
        _float("df", several, freedom),
        _float("p_value", known, p_value),
        pl.Series("method", np.where(known, METHOD, "none").tolist(), pl.String)
        + pl.Series(flag.tolist(), dtype=pl.String),
        pl.Series("reason", why.tolist(), pl.String).replace("", None),
    ]


def _float(name: str, known: NDArray[np.bool_], values: Sums) -> pl.Series:
    return pl.Series(name, np.where(known, values, np.nan), nan_to_null=True)


def ratio_limits(top: Sequence[Sums], below: Sequence[Sums]) -> tuple[Sums, Sums]:
    """Return the interval of ``a / b`` from the intervals of a and b, each (estimate, low, high).

    The limits are the values t for which the MOVER interval of ``a - t b`` ends at 0:
    ``(a - t b)^2 = (a - end_a)^2 + t^2 (b - end_b)^2``, with the ends towards which the difference
    shrinks. Needs ``low_b > 0``; any correlation of a and b is ignored.

    References
    ----------
    Donner and Zou (2012), Stat. Methods Med. Res. 21, 347-359.

    Examples
    --------
    a = 1 in [0, 2] over b = 2, known exactly: half of a's interval.

    >>> one, none, two = np.array([1.0]), np.array([0.0]), np.array([2.0])
    >>> [bound.tolist() for bound in ratio_limits((one, none, two), (two, two, two))]
    [[0.0], [1.0]]
    """
    a, low_a, high_a = top
    low = _lower_limit(a, low_a, *below)
    return low, -_lower_limit(-a, -high_a, *below)


def _lower_limit(a: Sums, low_a: Sums, b: Sums, low_b: Sums, high_b: Sums) -> Sums:
    above = low_a > 0
    square = b**2 - (b - np.where(above, high_b, low_b)) ** 2
    constant = a**2 - (a - low_a) ** 2
    root = np.sqrt(np.maximum(0.0, (a * b) ** 2 - square * constant))
    # Two forms of one root of the quadratic: the first is also valid for ``square`` below 0.
    limit: Sums = np.where(above, over(constant, a * b + root), over(a * b - root, square))
    return limit
