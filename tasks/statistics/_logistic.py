"""Logistic fits of shares in [0, 1], many at once, and their cluster bootstrap with refit."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DRAWS, SEED = 2000, 20_240_404
STEPS = 40
LONGEST_STEP, FURTHEST = 3.0, 15.0
"""Log-odds beyond these tell that what is fitted is separated: no finite value is best."""

CELLS_AT_ONCE = 4_000_000
FEWEST_DRAWS = 0.9


class Fits(NamedTuple):
    """Coefficients by fit, and which of the fits have any."""

    coefficients: Floats
    found: NDArray[np.bool_]


def fit(
    design: Floats, y: Floats, weights: Floats, start: Floats | None = None, within: float = 1e-10
) -> Fits:
    """Fit ``logit E[y] = design b`` once per row of ``weights``, by Newton's method (IRLS).

    Parameters
    ----------
    design, y
        Shapes (items, terms) and (items,); 0 <= y <= 1, not necessarily 0 or 1.
    weights
        Shape (fits, items).
    start
        Where to begin, shape (fits, terms).
    within
        The last step is shorter; the one after it would be about its square.
    """
    terms = design.shape[1]
    outer = _squared(design)
    # What is fitted is the same if a draw has no curvature left; only the step gets finite.
    ridge = 1e-10 * np.eye(terms)
    b = np.zeros((len(weights), terms)) if start is None else start.copy()
    moving = np.ones(len(b), dtype=bool)
    for _ in range(STEPS):
        at = np.flatnonzero(moving)
        if not at.size:
            break
        w = weights if at.size == len(b) else weights[at]
        mean = 1 / (1 + np.exp(-np.clip(b[at] @ design.T, -35, 35)))
        slope = (w * (y - mean)) @ design
        curve = ((w * (mean * (1 - mean))) @ outer).reshape(-1, terms, terms) + ridge
        step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
        b[at] += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        moving[at] = (np.abs(step).max(axis=1) > within) & (np.abs(b[at]).max(axis=1) < FURTHEST)
    return Fits(b, ~moving & (np.abs(b).max(axis=1) < FURTHEST))


def refits(
    design: Floats, y: Floats, cluster: NDArray[np.int64], start: Floats, draws: int = DRAWS
) -> Floats | None:
    """Return the coefficients of resampled clusters, shape (draws, terms).

    ``start`` is the fit of all items, shape (terms,). Draws without a finite fit are left out; null
    if that are more than a tenth.
    """
    clusters = int(cluster.max()) + 1
    random = np.random.default_rng((SEED, clusters))
    counts = random.multinomial(clusters, np.full(clusters, 1 / clusters), size=draws).astype(float)
    begun = _first_step(design, y, cluster, start, counts)
    at_once = max(1, CELLS_AT_ONCE // len(y))
    found = [
        fit(design, y, counts[part][:, cluster], begun[part], within=1e-4)
        for part in (slice(first, first + at_once) for first in range(0, draws, at_once))
    ]
    usable = np.concatenate([fits.coefficients[fits.found] for fits in found])
    return usable if len(usable) >= FEWEST_DRAWS * draws else None


def _first_step(
    design: Floats, y: Floats, cluster: NDArray[np.int64], start: Floats, counts: Floats
) -> Floats:
    """Go the first step from a common start: there sums over clusters do for all draws."""
    terms = design.shape[1]
    mean = 1 / (1 + np.exp(-np.clip(design @ start, -35, 35)))
    sums = np.zeros((counts.shape[1], terms + terms * terms))
    slopes = (y - mean)[:, None] * design
    curves = (mean * (1 - mean))[:, None] * _squared(design)
    np.add.at(sums, cluster, np.hstack([slopes, curves]))
    drawn = counts @ sums
    curve = drawn[:, terms:].reshape(-1, terms, terms) + 1e-10 * np.eye(terms)
    step = np.linalg.solve(curve, drawn[:, :terms, None])[:, :, 0]
    begun: Floats = start + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    return begun


def _squared(design: Floats) -> Floats:
    terms = design.shape[1]
    return (design[:, :, None] * design[:, None, :]).reshape(-1, terms * terms)
