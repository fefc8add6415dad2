"""Agreement with people by the quality gap between the two answers."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.counting.annotations import (
    HUMANS,
    NO_SCALE,
    Asked,
    Block,
    Codes,
    CountColumns,
    measured,
    over,
)
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic

TERTILES = ("small", "middle", "large")
NAMES = tuple(f"agreement_{tertile}_gap" for tertile in TERTILES)
NONE_LEFT = "no item in this tertile: nobody else labelled them, or all gaps are equal"


@statistic(
    source="methods.md, section 9",
    gives=NAMES,
    family="agreement",
    needs=("human",),
    missing="no item in this group has labels of the judge, a person, and others who define the "
    "gap",
)
def gap_agreement(annotations: DataFrame[Annotations]) -> DataFrame[Estimates]:
    """Measure how often a judge and a person agree, by the quality gap of the item.

    The gap comes from the other annotators of the item: the absolute mean of their labels' values
    (anchor -1, tie 0, target 1). Pairs of the judge and a person are divided into tertiles by the
    mid-rank of their gap.

    Parameters
    ----------
    annotations
        One row per item and annotator.

    Returns
    -------
    Estimates
        Three rows per judge, ``subgroup`` ``humans``; ``n`` pairs of labels. Intervals by
        cluster-adjusted Wilson, with bootstrap percentiles as a cross-check, for fixed tertiles.

    Notes
    -----
    The two are excluded from the gap, as their agreement would enlarge it. Equal gaps are never
    split, so tertiles may differ in size or be empty (null). Labels without values have no gap.
    Between equally good answers even perfect annotators disagree, so compare judges within a
    tertile.

    References
    ----------
    methods.md, section 9.

    Examples
    --------
    The others say target, target (gap 1), anchor, target (gap 0), tie, target (gap .5) on three
    items: each is a tertile of its own.
    """
    return measured(annotations, _asked, in_pairs=True)


def _asked(block: Block) -> Iterator[Asked]:
    models = np.flatnonzero(~block.human)
    if not block.human.any():
        return
    undefined = NO_SCALE if block.scale is None else NONE_LEFT
    rows = {
        name: CountColumns(2 * at, 2 * at + 1, undefined=undefined, several=True)
        for at, name in enumerate(NAMES)
    }
    features = partial(_features, block, block.codes[:, models])
    yield block.cells(models, HUMANS), features, _solve, rows


def _features(block: Block, given: Codes, part: slice) -> Sums:
    given = given[:, part]
    found = np.zeros((*given.shape, 6))
    if block.scale is None:
        return found
    everybody = block.counts(np.ones(block.who.height, dtype=bool))
    people = block.counts(block.human)
    total, size = everybody @ block.scale, everybody.sum(axis=1)
    for column in range(given.shape[1]):
        label = given[:, column]
        rest = (size - 2)[:, None]
        others = (total - block.scale[label])[:, None] - block.scale
        pairs = np.where((label >= 0)[:, None] & (rest > 0), people, 0.0)
        # Rounded so that equal gaps do not differ in their last digit.
        gap = np.round(np.abs(others) / np.maximum(rest, 1), 9)
        tertile = _tertiles(gap, pairs)
        alike = np.arange(len(block.labels)) == label[:, None]
        for at in range(3):
            within = np.where(tertile == at, pairs, 0.0)
            found[:, column, 2 * at] = within.sum(axis=1)
            found[:, column, 2 * at + 1] = (within * alike).sum(axis=1)
    return found


def _tertiles(gap: Sums, pairs: Sums) -> Codes:
    """Return the tertile (0, 1, 2) of each gap by mid-rank, weighted by ``pairs``."""
    values, inverse = np.unique(gap, return_inverse=True)
    sizes = np.bincount(inverse.ravel(), weights=pairs.ravel(), minlength=len(values))
    middle = np.cumsum(sizes) - sizes / 2
    share = middle / max(float(sizes.sum()), 1.0)
    return np.minimum(share * 3, 2).astype(np.int32)[inverse].reshape(gap.shape)


def _solve(sums: Sums) -> dict[str, Sums]:
    return {name: over(sums[..., 2 * at + 1], sums[..., 2 * at]) for at, name in enumerate(NAMES)}
