"""Krippendorff's interval alpha of many different numbers, from moments instead of coincidences."""

from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.statistics._annotations import ONE_LABEL, Block, Row, estimates, over, some
from tasks.statistics._intervals import Sums

NAME = "krippendorff_alpha_interval"


def interval_alpha(block: Block, name: str, chosen: NDArray[np.bool_]) -> list[pl.DataFrame]:
    """Return the alpha of the chosen annotators, however many different numbers they gave.

    Of an item with m >= 2 numbers v the squared distances of all pairs sum to
    ``2 (m sum v^2 - (sum v)^2)``, which over m - 1 is its share of what is observed; of all N
    numbers in such items ``2 (N sum v^2 - (sum v)^2)`` is what chance gives.
    """
    if block.scale is None:
        return []
    codes = block.codes[:, chosen]
    values = np.where(codes >= 0, (block.scale - block.scale.mean())[codes], 0.0)
    count = (codes >= 0).sum(axis=1)
    paired = (count > 1).astype(np.float64)
    total, squares = values.sum(axis=1), (values**2).sum(axis=1)
    apart = 2 * (count * squares - total**2) / np.maximum(count - 1, 1)
    sums = np.stack([paired, count, total, squares, apart], axis=1) * paired[:, None]
    cell = block.group(name, chosen, dropped=int((count == 1).sum()))
    rows = {NAME: Row(0, undefined=ONE_LABEL)}
    return estimates(block, cell, partial(some, sums[:, None, :]), _solve, rows)


def _solve(sums: Sums) -> dict[str, Sums]:
    _, many, total, squares, apart = (sums[..., at] for at in range(5))
    chance = 2 * (many * squares - total**2)
    return {NAME: 1 - over((many - 1) * apart, chance)}
