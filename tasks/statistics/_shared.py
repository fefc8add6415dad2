"""Which judges share enough questions to be compared on them."""

import numpy as np
from numpy.typing import NDArray

from tasks.defaults import FEWEST_CLUSTERS
from tasks.statistics._cluster_variance import have_enough

ALONE = "a single judge: nothing to rank"
UNSHARED = f"shares too few questions with the other judges: fewer than {FEWEST_CLUSTERS}"
WHOLE = np.zeros(1, np.intp)
Told = NDArray[np.bool_]
Places = NDArray[np.intp]


def seen(told: Told, starts: Places, parts: Places = WHOLE) -> NDArray[np.int64]:
    """Count the clusters of each part in which some sample is told, shape (parts, columns).

    Parameters
    ----------
    told
        Shape (samples, columns), the samples of a cluster together, and the clusters of a part.
    starts
        First sample of each cluster.
    parts
        First cluster of each part, such as a perturbation.
    """
    some = np.logical_or.reduceat(told, starts, axis=0)
    counts: NDArray[np.int64] = np.add.reduceat(some.astype(np.int64), parts, axis=0)
    return counts


def enough(told: Told, starts: Places, parts: Places = WHOLE) -> Told:
    """Tell where each part has enough clusters of told samples, shape (parts, columns).

    Parameters are those of :func:`seen`; what is enough :mod:`tasks.enough` says.
    """
    sizes = np.add.reduceat(told.astype(np.float64), starts, axis=0)
    return np.array([have_enough(each) for each in np.split(sizes, parts[1:])])


def sharing(told: Told, starts: Places, parts: Places = WHOLE) -> Told:
    """Tell which judges share enough clusters of every part, shape (judges,).

    Nobody without enough of its own does. As long as the others share too few, the judge is left
    out without which the rest share most (in the part where it is least); of several the one that
    shares the fewest samples with each of the others, then the first. If fewer than two are left,
    nobody shares.

    Parameters
    ----------
    told, starts, parts
        See :func:`seen`; a column is a judge.

    Examples
    --------
    Of 30 questions a and b saw all, c ten, d the ten others: without c or d ten are shared, and
    both share as many samples with the others, so c is left out.
    """
    kept: Told = np.all(enough(told, starts, parts), axis=0)
    lacking = (~told[:, kept]).sum(axis=1)
    together = told.T.astype(np.float64) @ told
    while kept.sum() > 1 and not enough(lacking[:, None] == 0, starts, parts).all():
        without = seen(lacking[:, None] == ~told, starts, parts).min(axis=0)
        common = together[:, kept].sum(axis=1) - together.diagonal()
        worst = np.lexsort((common, -without, ~kept))[0]
        kept[worst] = False
        lacking = lacking - ~told[:, worst]
    several: Told = kept & (kept.sum() > 1)
    return several
