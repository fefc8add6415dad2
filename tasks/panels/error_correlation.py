"""Correlation of the errors of jury members, and the jury's effective number of judges."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.agreement.coefficients import Coefficient
from tasks.counting.annotations import ALIKE_OR_FEW
from tasks.inference.bootstrap import (
    DRAWS,
    FORMULAS,
    SEED,
    by_chance,
    resampled,
    widened_percentiles,
)
from tasks.inference.cluster_sums import Floats
from tasks.inference.intervals import EMPTY, LEVEL, SINGLE
from tasks.inference.linearised_errors import correction

OPPOSED = "errors of the members cancel out: the size has no bound"
UNBOUNDED = "errors of the members may cancel out: the interval has no upper end"


def products(values: Floats, whole: NDArray[np.bool_]) -> Floats:
    """Return, per item, a one, the values, their squares, and the products of pairs of members.

    ``values`` has the shape (items, members); ``whole`` tells which items have every member's
    value, and all columns of the others are 0.
    """
    first, second = np.triu_indices(values.shape[1], 1)
    own = np.where(whole[:, None], values, 0.0)
    return np.concatenate(
        [whole[:, None].astype(np.float64), own, own**2, own[:, first] * own[:, second]], axis=1
    )


def correlation(sums: Floats, members: int, unvaried: str) -> Coefficient:
    """Return the mean correlation of pairs of members with widened bootstrap percentiles.

    ``sums`` are cluster sums of :func:`products`; ``unvaried`` is the reason if fewer than two
    members vary.
    """
    clusters = int((sums[:, 0] > 0).sum())
    if not clusters:
        return Coefficient(None, reason=EMPTY)
    r = float(_mean_correlation(sums.sum(axis=0)[None], members)[0])
    if np.isnan(r):
        return Coefficient(None, reason=unvaried)
    if clusters < 2:
        return Coefficient(r, reason=SINGLE)
    df = float(correction(sums[:, 0]).df)
    if not by_chance():
        return Coefficient(r, reason=FORMULAS, df=df)
    drawn = _mean_correlation(resampled(sums), members)
    ends = widened_percentiles(np.array([r]), drawn[:, None], 1 + df)
    low, high = (float(end[0]) for end in ends)
    if not high - low >= 1e-12:  # or NaN
        return Coefficient(r, reason=ALIKE_OR_FEW, df=df)
    return Coefficient(r, low, high, df)


def effective_size(r: float | None, members: int) -> float | None:
    """Return ``m / (1 + (m - 1) r)``, or None where it is unbounded.

    Examples
    --------
    >>> effective_size(0.5, 3)
    1.5
    """
    rest = 0.0 if r is None else 1 + (members - 1) * r
    return members / rest if rest > 1e-9 else None


def size_rows(
    names: tuple[str, str],
    row: Mapping[str, Any],
    estimated: Coefficient,
    members: int,
    used: tuple[int, int],
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a correlation and of the effective size that follows from it.

    ``used`` are the numbers of items and clusters that they are based on.
    """
    yield {**row, **_numbers(names[0], estimated, used)}
    size, least, most = (
        effective_size(r, members) for r in (estimated.estimate, estimated.high, estimated.low)
    )
    reason = estimated.reason
    if estimated.estimate is not None and size is None:
        reason = OPPOSED
    elif estimated.low is not None and most is None:
        reason = UNBOUNDED
    yield {**row, **_numbers(names[1], Coefficient(size, least, most, estimated.df, reason), used)}


def _numbers(name: str, estimated: Coefficient, used: tuple[int, int]) -> dict[str, Any]:
    """Return the columns of a row; an interval needs both ends, and n is 0 without an estimate."""
    known = None not in estimated[:3]
    n, clusters = (0, 0) if estimated.estimate is None else used
    return {
        "statistic": name,
        "estimate": estimated.estimate,
        "low": estimated.low if known else None,
        "high": estimated.high if known else None,
        "level": LEVEL if known else None,
        "n": n,
        "clusters": clusters,
        "df": estimated.df if clusters else None,
        "reason": estimated.reason,
        "method": f"cluster bootstrap, {DRAWS} draws" if known else "none",
        "seed": SEED if known else None,
    }


def _mean_correlation(sums: Floats, members: int) -> Floats:
    """Return the mean correlation of pairs for each row of sums; NaN if fewer than two vary."""
    first, second = np.triu_indices(members, 1)
    n = np.maximum(sums[:, :1], 1.0)
    mean, square, product = np.split(sums[:, 1:] / n, [members, 2 * members], axis=1)
    variance = square - mean**2
    spread = np.sqrt(np.where(variance > 1e-12, variance, 0.0))
    scale = spread[:, first] * spread[:, second]
    shared = product - mean[:, first] * mean[:, second]
    vary = scale > 0
    r = np.divide(shared, scale, out=np.zeros_like(shared), where=vary)
    many = vary.sum(axis=1)
    found: Floats = np.where(many > 0, r.sum(axis=1) / np.maximum(many, 1), np.nan)
    return found
