"""Noise ceiling: a judge's agreement with people, relative to people's own agreement."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.counting.annotations import HUMANS, Asked, Block, Codes, CountColumns, measured, over
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic

NEVER = "the people never agree with each other: no ratio"
ROWS = {
    "noise_ceiling": CountColumns(0),
    "below_ceiling": CountColumns(0),
    "ceiling_ratio": CountColumns(0, undefined=NEVER),
}


@statistic(
    source="methods.md, section 9",
    gives=tuple(ROWS),
    family="agreement",
    rows={"ceiling_ratio": {"unit": "ratio", "null": 1.0}},
    needs=("human",),
    missing="no item has labels of the judge and of two people",
)
def noise_ceiling(annotations: DataFrame[Annotations]) -> DataFrame[Estimates]:
    """Measure a judge's agreement with people as a share of the agreement among people.

    Over the items that the judge and two or more people labelled: ``noise_ceiling`` is the mean
    share of pairs of people that agree, ``below_ceiling`` the mean share of pairs of the judge and
    a person, ``ceiling_ratio = below_ceiling / noise_ceiling``.

    Parameters
    ----------
    annotations
        One row per item and annotator.

    Returns
    -------
    Estimates
        Three rows per judge, ``subgroup`` ``humans``. Intervals by cluster bootstrap, for the ratio
        by resampling both together.

    Notes
    -----
    Ties are labels like any others. A ratio above 1 is possible: a judge that always names the
    majority agrees with a random person more often than another person does. There is no ratio
    without an item that two people labelled, or if people never agree.

    References
    ----------
    methods.md, section 9.

    Examples
    --------
    People say target, target, anchor, and anchor, anchor; the judge target, anchor. Ceiling
    (1/3 + 1) / 2 = 2/3, the judge (2/3 + 1) / 2 = 5/6, ratio 5/4.
    """
    return measured(annotations, _asked)


def _asked(block: Block) -> Iterator[Asked]:
    models = np.flatnonzero(~block.human)
    if block.human.any():
        features = partial(_features, block, block.codes[:, models])
        yield block.cells(models, HUMANS), features, _solve, ROWS


def _features(block: Block, given: Codes, part: slice) -> Sums:
    counts = block.counts(block.human)
    people, alike = among(counts)
    pairs, named = between(given[:, part], counts)
    there = (pairs > 0) & (people > 0)
    ceiling = np.broadcast_to(alike / np.maximum(people, 1), there.shape)
    return np.stack(
        [there, np.where(there, ceiling, 0), np.where(there, named / np.maximum(pairs, 1), 0)],
        axis=-1,
    )


def _solve(sums: Sums) -> dict[str, Sums]:
    n, people, judge = (sums[..., at] for at in range(3))
    return {
        "noise_ceiling": over(people, n),
        "below_ceiling": over(judge, n),
        "ceiling_ratio": over(judge, people),
    }


def between(given: Codes, counts: Sums) -> tuple[Sums, Sums]:
    """Return the number of judge-person pairs of each item, and how many of them agree.

    ``given`` are the judges' labels, shape (items, judges); labels that do not count are NaN in
    ``counts``.
    """
    named = np.where(given < 0, np.nan, np.take_along_axis(counts, np.maximum(given, 0), axis=1))
    people = np.nansum(counts, axis=1)[:, None]
    return np.where(np.isnan(named), 0.0, people), np.nan_to_num(named)


def among(counts: Sums) -> tuple[Sums, Sums]:
    """Return the number of pairs of people on each item, and how many agree, as one column."""
    people = np.nansum(counts, axis=1)
    alike = np.nansum(counts * (counts - 1), axis=1) / 2
    return (people * (people - 1) / 2)[:, None], alike[:, None]
