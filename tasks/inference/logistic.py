"""Logistic regression with cluster bootstrap, fitted to many resamples at once."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.frame import Row
from tasks.inference.bootstrap import DRAWS, FORMULAS, by_chance, weights
from tasks.inference.cluster_sums import Floats
from tasks.inference.intervals import ALIKE, LEVEL, ROUNDING, SINGLE
from tasks.inference.quantiles import bootstrap_factor, t_quantile

SEED = 20_240_404
STEPS = 40
LONGEST_STEP, FURTHEST = 3.0, 15.0
"""In log-odds; a coefficient beyond ``FURTHEST`` means separation: no finite estimate exists."""

CELLS_AT_ONCE = 4_000_000
NEAR = 1e-2
"""Convergence tolerance of draws: the error left is about its square, far below their spread."""

FEWEST_DRAWS = 0.9


class CountedItems(NamedTuple):
    """Items with the same design row and the same cluster, counted together."""

    row: NDArray[np.int64]
    """Index of the design row."""
    cluster: NDArray[np.int64]
    n: Floats
    wins: Floats
    """Sum of y."""


class Fits(NamedTuple):
    """Coefficients of each fit, and which fits converged."""

    coefficients: Floats
    found: NDArray[np.bool_]


def fit(
    design: NDArray[Any],
    wins: NDArray[Any],
    weights: NDArray[Any],
    start: Floats | None = None,
    within: float = 1e-10,
) -> Fits:
    """Fit ``logit E[y] = design b`` once per row of ``weights``, by Newton's method (IRLS).

    Items with the same row of the design may be one item, as only sums enter the likelihood.

    ``design`` has the shape (items, terms), and sums over items have its precision, single or
    double. ``wins``, sums of y times weight with 0 <= y <= 1, and ``weights`` have the shape (fits,
    items), ``start`` has (fits, terms). Once the last step is ``within`` this tolerance, the next
    one would be about its square.
    """
    terms = design.shape[1]
    outer = _outer_products(design)
    # The ridge does not move the optimum; it keeps the step finite where a draw has no curvature.
    ridge = 1e-10 * np.eye(terms)
    b: Floats = np.zeros((len(weights), terms)) if start is None else start.copy()
    moving = np.ones(len(b), dtype=bool)
    for _ in range(STEPS):
        at = np.flatnonzero(moving)
        if not at.size:
            break
        w, won = (weights, wins) if at.size == len(b) else (weights[at], wins[at])
        mean = _expit_in_place(b[at].astype(design.dtype) @ design.T)
        rest = w * mean
        slope = ((won - rest) @ design).astype(np.float64)
        rest *= 1 - mean
        curve = (rest @ outer).astype(np.float64).reshape(-1, terms, terms) + ridge
        step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
        b[at] += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        moving[at] = (np.abs(step).max(axis=1) > within) & (np.abs(b[at]).max(axis=1) < FURTHEST)
    return Fits(b, ~moving & (np.abs(b).max(axis=1) < FURTHEST))


def refits(
    design: Floats, counted: CountedItems, start: Floats, draws: int = DRAWS
) -> Floats | None:
    """Return the coefficients of cluster-bootstrap refits, shape (draws, terms).

    ``start`` is the fit to all items, shape (terms,). Draws without a finite fit are dropped; the
    result is None if more than a tenth are, or if bootstrapping is switched off.
    """
    if not by_chance():
        return None
    from scipy.sparse import csr_array

    clusters = int(counted.cluster.max()) + 1
    n, wins = (
        csr_array((values, (counted.cluster, counted.row)), shape=(clusters, len(design)))
        for values in (counted.n, counted.wins)
    )
    sums = _sums_at(design, wins, n, start)
    single = design.astype(np.float32)
    columns = [table.T.astype(np.float32) for table in (wins, n)]
    found = []
    step = max(1, CELLS_AT_ONCE // len(design))
    for counts in weights(clusters, draws, SEED):
        for at in range(0, len(counts), step):
            some = counts[at : at + step]
            begun = _first_step(sums, start, some)
            times = some.T.astype(np.float32)
            won, drawn = (np.ascontiguousarray((column @ times).T) for column in columns)
            found.append(fit(single, won, drawn, begun, within=NEAR))
    usable = np.concatenate([fits.coefficients[fits.found] for fits in found])
    return usable if len(usable) >= FEWEST_DRAWS * draws else None


def _sums_at(design: Floats, wins: Any, n: Any, start: Floats) -> Floats:
    """Return each cluster's slope and curvature at ``start``, side by side."""
    mean = _expit_in_place(design @ start)
    slopes = wins @ design - n @ (mean[:, None] * design)
    curves = n @ ((mean * (1 - mean))[:, None] * _outer_products(design))
    return np.hstack([slopes, curves])


def _first_step(sums: Floats, start: Floats, counts: Floats) -> Floats:
    """Take the first Newton step from a common start, where cluster sums serve all draws."""
    terms = len(start)
    drawn = counts @ sums
    curve = drawn[:, terms:].reshape(-1, terms, terms) + 1e-10 * np.eye(terms)
    step = np.linalg.solve(curve, drawn[:, :terms, None])[:, :, 0]
    begun: Floats = start + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    return begun


def _expit_in_place(log_odds: NDArray[Any]) -> NDArray[Any]:
    np.clip(log_odds, -35, 35, out=log_odds)
    np.negative(log_odds, out=log_odds)
    np.exp(log_odds, out=log_odds)
    log_odds += 1
    np.reciprocal(log_odds, out=log_odds)
    return log_odds


def _outer_products(design: NDArray[Any]) -> NDArray[Any]:
    terms = design.shape[1]
    squared: NDArray[Any] = design[:, :, None] * design[:, None, :]
    return squared.reshape(-1, terms * terms)


UNSTABLE = "more than a tenth of the bootstrap draws have no finite fit: no interval"
TIES = "all contests are ties: nothing to fit"
METHOD = "cluster bootstrap with refit, t"


def logit_row(value: float, draws: Floats | None, clusters: float) -> Row:
    """Return an estimate in log-odds with its t interval and the percentiles of the draws.

    ``clusters`` is the effective number, see :func:`effective_clusters`.
    """
    if clusters < 2:
        return {"estimate": value, "method": "none", "reason": SINGLE}
    row: Row = {"estimate": value, "df": clusters - 1}
    if draws is None:
        return row | {"method": "none", "reason": UNSTABLE if by_chance() else FORMULAS}
    error = float(draws.std(ddof=1)) * bootstrap_factor(clusters)
    if error < ROUNDING:
        return row | {"method": "none", "reason": ALIKE}
    half = float(t_quantile(clusters - 1, (1 + LEVEL) / 2)) * error
    tails = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return row | {
        "low": value - half,
        "high": value + half,
        "standard_error": error,
        "boot_low": float(tails[0]),
        "boot_high": float(tails[1]),
        "level": LEVEL,
        "method": METHOD,
        "seed": SEED,
    }


def rate_row(value: float, draws: Floats | None, clusters: float) -> Row:
    """Return the same row on the probability scale, with the standard error of the rates."""
    row = logit_row(value, draws, clusters)
    ends = ("estimate", "low", "high", "boot_low", "boot_high")
    row |= {end: expit(row[end]) for end in ends if end in row}
    if "standard_error" in row and draws is not None:
        spread = float((1 / (1 + np.exp(-draws))).std(ddof=1))
        row["standard_error"] = spread * bootstrap_factor(clusters)
    return row


def expit(value: float) -> float:
    """Turn log-odds into a probability."""
    return float(1 / (1 + np.exp(-value)))
