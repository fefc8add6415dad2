"""Cohen's kappa and rank correlations with cluster-robust intervals on Fisher's scale."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.agreement.kappa import kappa
from tasks.inference.cluster_sums import Floats
from tasks.inference.intervals import ALIKE, LEVEL, ROUNDING, SINGLE
from tasks.inference.linearised_errors import correction
from tasks.inference.quantiles import t_quantile

Codes = NDArray[np.int64]
MOST_CELLS = 4_000_000
"""Largest table of distinct pairs of values for which Kendall's tau is computed."""
ALL_ALIKE = "all values of one side are equal: no correlation"
PERFECT = "a coefficient of -1 or 1: no interval"
ONE_LABEL = "only one label occurs: agreement by chance is certain"
TOO_MANY = "too many distinct grades for Kendall's tau"


class Coefficient(NamedTuple):
    """A coefficient with its interval; null with a reason where there is none."""

    estimate: float | None
    low: float | None = None
    high: float | None = None
    df: float | None = None
    reason: str | None = None


def cohen_kappa(one: Codes, other: Codes, distance: Floats, cluster: Codes) -> Coefficient:
    """Return Cohen's kappa of two annotators, weighted by the distances of their labels.

    ``kappa = 1 - O / E``: O is the mean distance w of the two labels of an item, E the mean
    distance of two labels drawn at random, one from each annotator. Item i moves it by
    ``-((w_i - O) - (O / E) (e_i - 2 E)) / E``; e_i adds the mean distance of its first label from
    all labels of the other annotator and the mean distance of its second label from all of the one.

    Parameters
    ----------
    one, other
        Codes of the labels, from 0.
    distance
        Distance of each two labels: 0 for equal and 1 for other ones (plain kappa), or the
        distance of two grades (linear weights) or its square.
    cluster
        Code of each item's cluster.

    References
    ----------
    Cohen (1968), Psychol. Bull. 70, 213-220; Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72,
    323-327 (variance).

    Examples
    --------
    Ten items, equal on 3 of label 0 and 4 of label 1; one gives 0 five times, the other four times:
    O = .3, E = .5, kappa = .4.
    """
    n, many = len(one), len(distance)
    counts = [np.bincount(each, minlength=many) for each in (one, other)]
    shares = [each / n for each in counts]
    w = distance[one, other]
    expected, observed = float(shares[0] @ distance @ shares[1]), float(w.mean())
    if expected < ROUNDING:
        return Coefficient(None, reason=ONE_LABEL)
    each = (distance @ shares[1])[one] + (shares[0] @ distance)[other]
    ratio = 1 - float(kappa(n, w.sum(), counts[0], counts[1], distance))
    influence = -((w - observed) - ratio * (each - 2 * expected)) / expected
    return _interval(1 - ratio, influence / n, cluster)


def quadratic_kappa(one: Floats, other: Floats, cluster: Codes) -> Coefficient:
    """Return Cohen's kappa with quadratic weights, for any values: it needs only their moments.

    As :func:`cohen_kappa` with squared distances: ``O = mean (x - y)^2``, ``E = mean x^2 + mean y^2
    - 2 mean x mean y``.

    Examples
    --------
    1, 2, 3, 4 against 2, 1, 4, 3: O = 1, E = 7.5 + 7.5 - 12.5 = 2.5, kappa = .6.
    """
    n, (x, y) = len(one), (one - one.mean(), other - one.mean())
    w = (x - y) ** 2
    expected = float((x**2).mean() + (y**2).mean() - 2 * x.mean() * y.mean())
    if expected < ROUNDING:
        return Coefficient(None, reason=ONE_LABEL)
    each = x**2 + (y**2).mean() - 2 * x * y.mean() + y**2 + (x**2).mean() - 2 * y * x.mean()
    ratio = float(w.mean()) / expected
    influence = -((w - w.mean()) - ratio * (each - 2 * expected)) / expected
    return _interval(1 - ratio, influence / n, cluster)


def spearman(x: Floats, y: Floats, cluster: Codes) -> Coefficient:
    """Return Spearman's rank correlation, Pearson's of the midranks.

    With U and V the midranks over n, minus their means, rho = A / sqrt(B C), A = mean(U V),
    B = mean(U^2), C = mean(V^2). Item i moves A by ``U_i V_i + mean_j h(x_j, x_i) V_j +
    mean_j h(y_j, y_i) U_j``, where h is 1 for x_i < x_j, 1/2 for a tie, as it also moves the ranks
    of the others; B and C likewise.

    References
    ----------
    Hoeffding (1948), Ann. Math. Stat. 19, 293-325 (variance of such statistics).

    Examples
    --------
    Ranks 1, 2, 3, 4 against 2, 1, 4, 3: 1 - 6 * 4 / (4 * 15) = .6.
    """
    n = len(x)
    (u, of_u), (v, of_v) = _ranked(x), _ranked(y)
    b, c = float((u * u).mean()), float((v * v).mean())
    if min(b, c) < ROUNDING:
        return Coefficient(None, reason=ALL_ALIKE)
    rho = float((u * v).mean() / np.sqrt(b * c))
    moved = u * v + of_u(v) + of_v(u)
    moved_b, moved_c = u * u + 2 * of_u(u), v * v + 2 * of_v(v)
    moved, moved_b, moved_c = (each - each.mean() for each in (moved, moved_b, moved_c))
    influence = moved / np.sqrt(b * c) - rho / 2 * (moved_b / b + moved_c / c)
    return _interval(rho, influence / n, cluster)


def kendall(x: Floats, y: Floats, cluster: Codes) -> Coefficient:
    """Return Kendall's tau-b, which allows for ties.

    ``tau = S / sqrt(X Y)``: S the sum over ordered pairs of sign(x_i - x_j) sign(y_i - y_j), X and
    Y the numbers of ordered pairs that x and y do not tie. Item i moves it by
    ``2 s_i / sqrt(X Y) - tau (t_i / X + w_i / Y)``, with s, t, w its parts of S, X, Y.

    References
    ----------
    Kendall (1945), Biometrika 33, 239-251; Hoeffding (1948), Ann. Math. Stat. 19, 293-325.

    Examples
    --------
    1, 2, 3, 4 against 2, 1, 4, 3: four of six pairs agree, two do not: 2 / 6 = .33.
    """
    xs, i = np.unique(x, return_inverse=True)
    ys, j = np.unique(y, return_inverse=True)
    if min(len(xs), len(ys)) < 2:
        return Coefficient(None, reason=ALL_ALIKE)
    if len(xs) * len(ys) > MOST_CELLS:
        return Coefficient(None, reason=TOO_MANY)
    counts = np.zeros((len(xs), len(ys)))
    np.add.at(counts, (i, j), 1.0)
    below = np.zeros((len(xs) + 1, len(ys) + 1))
    below[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    n = below[-1, -1]
    lower, upto = below[:-1, :], below[1:, :]
    in_column_below, in_column_upto = below[-1, :-1], below[-1, 1:]
    in_row_below, in_row_upto = below[:-1, -1][:, None], below[1:, -1][:, None]
    alike = lower[:, :-1] + n - in_row_upto - in_column_upto + upto[:, 1:]
    unlike = in_row_below - lower[:, 1:] + in_column_below - upto[:, :-1]
    s = (alike - unlike)[i, j]
    t = n - (in_row_upto - in_row_below)[:, 0][i]
    w = n - (in_column_upto - in_column_below)[j]
    scale = float(np.sqrt(t.sum() * w.sum()))
    tau = float(s.sum() / scale)
    return _interval(tau, 2 * s / scale - tau * (t / t.sum() + w / w.sum()), cluster)


def _ranked(values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the centred midranks over n, and the mean of weights over the items above each item.

    The mean over all items j of h(x_j, x_i) w_j: h is 1 if x_j is larger, 1/2 if it is tied.
    """
    _, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = (counts.cumsum() - counts / 2) / len(values)
    ranks: Floats = middle[code]

    def above(weights: Floats) -> Floats:
        sums = np.bincount(code, weights, minlength=len(counts))
        mean: Floats = (sums.sum() - sums.cumsum() + sums / 2)[code] / len(code)
        return mean

    return ranks - ranks.mean(), above


def _interval(estimate: float, influence: Floats, cluster: Codes) -> Coefficient:
    """Return the interval on Fisher's scale: tanh(atanh r -+ t SE / (1 - r^2)).

    The variance comes from the cluster sums of the influences, with CR2 weights.
    """
    sums = np.bincount(cluster, influence).astype(np.float64)
    known = correction(np.bincount(cluster).astype(np.float64))
    df = float(known.df)
    if not np.isfinite(df):
        return Coefficient(estimate, reason=SINGLE)
    error = float(np.sqrt(known.variance(sums)))
    if abs(estimate) > 1 - 1e-9:
        return Coefficient(estimate, df=df, reason=PERFECT)
    if error < ROUNDING:
        return Coefficient(estimate, df=df, reason=ALIKE)
    wide = t_quantile(df, (1 + LEVEL) / 2) * error / (1 - estimate**2)
    low, high = np.tanh(np.arctanh(estimate) - wide), np.tanh(np.arctanh(estimate) + wide)
    return Coefficient(estimate, float(low), float(high), df)
