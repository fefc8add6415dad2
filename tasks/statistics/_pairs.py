"""Pairs of annotators: whom to compare with whom, and the sums that their agreement rests on."""

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.statistics._annotations import Block
from tasks.statistics._intervals import Sums

N, AGREE, N_DECIDED, AGREE_DECIDED, LINEAR, QUADRATIC, FIRST = range(7)
"""Places of the sums; from FIRST on the marginals of the one, then those of the other."""
TIE = "tie"


class Pairs(NamedTuple):
    """Pairs that share an item, as rows of estimates and as columns of the codes."""

    cells: pl.DataFrame
    one: NDArray[np.intp]
    other: NDArray[np.intp]


def pairs_of(block: Block) -> Pairs:
    """Pair everybody with every person, and judges of the same prompt and wave with each other.

    The row is about the judge if the other is a person, else about the first by name.
    """
    human = block.human
    alike = block.who.select(pl.struct("prompt", "wave").rank("dense")).to_series().to_numpy()
    may = human[:, None] | human[None, :] | (alike[:, None] == alike[None, :])
    given = (block.codes >= 0).astype(np.float64)
    common = given.T @ given
    one, other = np.nonzero(np.triu(may & (common > 0), k=1))
    turned = human[one] & ~human[other]
    one, other = np.where(turned, other, one), np.where(turned, one, other)
    names = block.who["annotator"].gather(other.tolist())
    single = given.sum(axis=0)
    either = block.who["simulated"].gather(other.tolist())
    cells = block.cells(one, "").with_columns(
        subgroup=pl.Series([block.part(name) for name in names], dtype=pl.String),
        dropped=pl.Series((single[one] + single[other] - 2 * common[one, other]).astype(np.int64)),
        simulated=pl.col("simulated") | either,
    )
    return Pairs(cells, one, other)


def sums_of(block: Block, pairs: Pairs, part: slice) -> Sums:
    """Return the sums of some pairs, shape (items, pairs, FIRST + 2 x labels)."""
    one, other = block.codes[:, pairs.one[part]], block.codes[:, pairs.other[part]]
    both = (one >= 0) & (other >= 0)
    alike = both & (one == other)
    tie = block.labels.index(TIE) if TIE in block.labels else -2
    decided = both & (one != tie) & (other != tie)
    # Without a scale these are not used.
    scale = np.zeros(len(block.labels)) if block.scale is None else block.scale
    found = np.zeros((*both.shape, FIRST + 2 * len(block.labels)))
    found[:, :, N], found[:, :, AGREE] = both, alike
    found[:, :, N_DECIDED], found[:, :, AGREE_DECIDED] = decided, decided & alike
    found[:, :, LINEAR] = np.where(both, np.abs(scale[one] - scale[other]), 0)
    found[:, :, QUADRATIC] = np.where(both, (scale[one] - scale[other]) ** 2, 0)
    for k in range(len(block.labels)):
        found[:, :, FIRST + k] = both & (one == k)
        found[:, :, FIRST + len(block.labels) + k] = both & (other == k)
    return found
