"""Tests of non-inferiority for one annotator, from counts.

Of ``n`` items the annotator fits better in ``better``, the judge in ``worse`` (both in the
annotator's eyes), and the rest are tied. p is small where the judge is not worse by more than
epsilon: *additive*, an amount of probability, or *multiplicative*, a share of the annotator's.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Kind = Literal["additive", "multiplicative"]
Test = Literal["t", "score", "auto"]

FEW, FEW_UNTIED = 50, 20
"""Below that many items, or items that are not tied, t is too often significant."""


def check_epsilon(epsilon: float, kind: Kind) -> None:
    """Refuse a margin outside [0, 1)."""
    if not 0 <= epsilon < 1:
        raise ValueError(
            f"epsilon {epsilon} ({kind}) must be 0 or more and below 1: experts .2, skilled "
            "annotators .15, crowd workers .1."
        )


def is_constant(n: Counts, better: Counts, worse: Counts) -> NDArray[np.bool_]:
    """Tell where all differences are alike, so that there is no t."""
    tied = n - better - worse
    constant: NDArray[np.bool_] = (better == n) | (worse == n) | (tied == n)
    return constant


def t_test(n: Counts, better: Counts, worse: Counts, epsilon: float, kind: Kind) -> Floats:
    """Return p of the paired t-test; NaN below two items, and where t is 0 / 0.

    Differences are E - F against epsilon (Calderon, Reichart & Dror 2025), or (1 - epsilon) E - F
    against 0. Where all are alike t is infinite, so p is 1 beyond the margin and 0 below it; where
    they are all equal to the margin, as those of a judge that copies a person at epsilon 0, t is
    0 / 0 and there is no p.
    """
    from scipy.special import stdtr

    gain, loss, tie, margin = (
        (1.0, -1.0, 0.0, epsilon) if kind == "additive" else (1 - epsilon, -1.0, -epsilon, 0.0)
    )
    tied = n - better - worse
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (better * gain + worse * loss + tied * tie) / n
        squares = (
            better * (gain - mean) ** 2 + worse * (loss - mean) ** 2 + tied * (tie - mean) ** 2
        )
        t = (mean - margin) / np.sqrt(squares / (n - 1) / n)
        p: Floats = stdtr(n - 1.0, t)
    at_margin = np.where(mean == margin, np.nan, np.where(mean > margin, 1.0, 0.0))
    p = np.where(is_constant(n, better, worse), at_margin, p)
    return np.where(n < 2, np.nan, p)


def score_test(items: Counts, better: Counts, worse: Counts, epsilon: float, kind: Kind) -> Floats:
    """Return p of the score test, its variance at the margin; NaN without items or variance.

    Additive: Tango (1998), Statistics in Medicine 17. Multiplicative: the same for the ratio
    (methods: chance of E without F is epsilon + (1 - epsilon) x, of F without E x; the likelihood
    is greatest at the root of a quadratic).
    """
    from scipy.special import ndtr

    e = epsilon
    n, b, c = (counts.astype(np.float64) for counts in (items, better, worse))
    tied = n - b - c
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind == "additive":
            x = _root(2.0 * n, -(b + c) + e * (2 * n - b + c), -c * e * (1 - e))
            off, variance = b - c - n * e, 2 * x + e - e * e
        else:
            linear = tied * e * (2 - e) - b * (1 - e) ** 2 - c * ((1 - e) ** 2 - e * (2 - e))
            x = _root(n * (1 - e) * (2 - e), linear, -c * e * (1 - e))
            lead = e + (1 - e) * x
            off, variance = b - (1 - e) * c - n * e, lead + (1 - e) ** 2 * x - e * e
        p: Floats = np.where(variance > 0, ndtr(off / np.sqrt(n * variance)), np.nan)
    return np.where(n < 1, np.nan, p)


def needs_score(n: Counts, better: Counts, worse: Counts) -> NDArray[np.bool_]:
    """Tell where the default is the score test: few items, few that are not tied, or no t."""
    few: NDArray[np.bool_] = (n < FEW) | (better + worse < FEW_UNTIED)
    return few | is_constant(n, better, worse)


def _root(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the larger root of a x² + b x + c, without cancellation."""
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    larger: Floats = np.where(b > 0, -2 * c / (b + root), (root - b) / (2 * a))
    return np.maximum(larger, 0.0)
