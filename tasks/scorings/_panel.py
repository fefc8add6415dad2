"""Human labels of items that two or more people labelled, counted once for all judges."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.statistics._groups import combined

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
PAIRS = 2_000_000_000
"""Pairs of distinct labels of an item that are compared: minutes."""


@dataclass(frozen=True)
class Panel:
    """A table with one row per item and distinct label, sorted by them.

    How well an annotator fits depends on the item and the own label alone, so all scores are
    computed on this table and handed to the annotators by ``row``.
    """

    values: Sequence[Hashable]
    """What a code stands for; codes of judges are among them."""
    size: Codes
    """People per item: two or more."""
    item: Codes
    code: Codes
    count: Codes
    """People who gave this label."""
    row: Codes
    """For each human label, its row of the table."""

    @property
    def others(self) -> Codes:
        """Return how many people are left, per row, without the one left out."""
        others: Codes = self.size[self.item] - 1
        return others

    @property
    def starts(self) -> Codes:
        """Return the first row of each item."""
        starts: Codes = np.searchsorted(self.item, np.arange(self.size.size + 1))
        return starts

    def votes(self, codes: Codes) -> Codes:
        """Return how many people gave each item the label ``codes[item]``."""
        wide = len(self.values)
        wanted = np.arange(self.size.size) * wide + codes
        keys = self.item * wide + self.code
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        votes: Codes = np.where(keys[place] == wanted, self.count[place], 0)
        return votes

    def sums(self, values: Floats) -> Floats:
        """Sum over the rows of each item, each person once."""
        sums: Floats = np.bincount(self.item, values * self.count, minlength=self.size.size).astype(
            np.float64
        )
        return sums


def make_panel(values: Sequence[Hashable], items: Codes, codes: Codes) -> Panel:
    """Count labels (``codes``) of ``items``, numbered from 0 without gaps."""
    wide = max(len(values), 1)
    size = np.bincount(items)
    row, keys = combined([(items * wide + codes, size.size * wide)])
    return Panel(values, size, keys // wide, keys % wide, np.bincount(row), row)


def neighbours(panel: Panel, most: int) -> Iterator[tuple[slice, Codes, Codes]]:
    """Pair each row with all rows of its item, about ``most`` pairs at a time.

    Yields the rows, and of each pair the place among these and the other row.
    """
    starts = panel.starts
    first, widths = starts[panel.item], np.diff(starts)[panel.item]
    ends = np.cumsum(widths)
    if ends.size and ends[-1] > PAIRS:
        raise ValueError(
            f"{ends[-1]} pairs of distinct labels of one item are too many (at most {PAIRS}). "
            "Leave out people, or give labels from a list."
        )
    done = 0
    while done < widths.size:
        before = ends[done - 1] if done else 0
        stop = max(done + 1, int(np.searchsorted(ends, before + most, side="right")))
        width = widths[done:stop]
        place = np.repeat(np.arange(stop - done), width)
        offset = np.arange(place.size) - np.repeat(np.cumsum(width) - width, width)
        yield slice(done, stop), place, first[done:stop][place] + offset
        done = stop
