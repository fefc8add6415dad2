"""Labels as values, sets and arrays; an unreadable label is null."""

import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.inference.cluster_sums import combined

Kind = Literal["text", "number", "set", "any"]
Read = Callable[[Sequence[Any]], list[Hashable | None]]

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"(-?\d+)\.0*", re.ASCII)
LARGEST = 1e100
"""Sums of squares of larger numbers overflow."""
BITS = frozenset({"0", "1"})


class ListLabel(NamedTuple):
    """A list that a dictionary can hold."""

    json: str


def read_labels(kind: Kind, labels: Sequence[Any]) -> list[Hashable | None]:
    """Return each label (text, number, list or None) as ``kind``, or None if it is none."""
    return READERS[kind](labels)


def _texts(labels: Sequence[Any]) -> list[Hashable | None]:
    """Read names: 3, 3.0, "3" and "3.0" are one; lists are sets."""
    flags = _flags(labels)
    return [_set(label, flags) if isinstance(label, list) else _text(label) for label in labels]


def _numbers(labels: Sequence[Any]) -> list[Hashable | None]:
    return [_number(label) for label in labels]


def _sets(labels: Sequence[Any]) -> list[Hashable | None]:
    """Read sets: order and repetition do not matter; a name alone is a set of one."""
    flags = _flags(labels)
    return [
        _set(label, flags)
        if isinstance(label, list)
        # among flags per label, a name alone stands for nothing
        else None
        if flags
        else _set([label], 0)
        for label in labels
    ]


def _as_they_are(labels: Sequence[Any]) -> list[Hashable | None]:
    """Keep what is there, for a function of the user's."""
    return [ListLabel(json.dumps(label)) if isinstance(label, list) else label for label in labels]


def _text(label: Any) -> str | None:
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, int | float):
        whole = isinstance(label, int) or label.is_integer()
        return str(int(label)) if whole else repr(label)
    if not isinstance(label, str):
        return None
    # A column of whole numbers with a gap is written with decimals by many tools.
    number = WHOLE.fullmatch(label)
    return number[1] if number else label


def _number(label: Any) -> float | None:
    if isinstance(label, str) and NUMBER.fullmatch(label.strip()):
        label = float(label)
    if isinstance(label, bool) or not isinstance(label, int | float):
        return None
    return float(label) if abs(label) <= LARGEST and math.isfinite(label) else None


def _set(label: Any, flags: int) -> frozenset[str] | None:
    """Read a list: a set of names, or of the places of ones among so many ``flags``."""
    names = [_text(each) for each in label]
    if flags:
        if len(names) != flags or not BITS.issuperset(names):
            return None
        return frozenset(str(place) for place, name in enumerate(names) if name == "1")
    return None if None in names else frozenset(name for name in names if name is not None)


def _flags(labels: Sequence[Any]) -> int:
    """Return how many flags each list is, or 0 if lists are names.

    A set repeats nothing, so [0, 1, 0] is no set of the names 0 and 1 but flags; and where all
    lists are [0, 1] or [1, 0], as sets they would all be one. Other lists among flags cannot be
    read.

    Raises
    ------
    ValueError
        If flags differ in length, or as many lists are something else.
    """
    lists = [[_text(each) for each in label] for label in labels if isinstance(label, list)]
    bits = [each for each in lists if BITS.issuperset(each)]
    lengths = {len(each) for each in bits if len(set(each)) < len(each)}
    if not lengths:
        pairs = len(bits) == len(lists) and all(len(each) == 2 for each in bits)
        return 2 if pairs and len({tuple(each) for each in bits}) > 1 else 0
    others = len(lists) - len(bits)
    if len(lengths) > 1 or others > len(bits):
        found = (
            f"their lengths differ ({min(lengths)} to {max(lengths)})"
            if len(lengths) > 1
            else f"{others} other lists hold something else"
        )
        raise ValueError(
            f"lists of 0 and 1 that repeat them look like flags per label, but {found}. Give the "
            "names of the labels instead, on both sides."
        )
    return lengths.pop()


READERS: dict[Kind, Read] = {"text": _texts, "number": _numbers, "set": _sets, "any": _as_they_are}


Bits = NDArray[np.uint64]
LARGEST_BYTES = 1 << 30
"""Bytes that the sets may take."""
CHUNK = 1 << 22


class Sets:
    """The distinct sets of a panel, a row of bits each."""

    def __init__(self, values: Sequence[Any]) -> None:
        names = sorted({name for value in values for name in value})
        words = max(1, -(-len(names) // 64))
        if len(values) * words * 8 > LARGEST_BYTES:
            raise ValueError(
                f"{len(values)} distinct sets of {len(names)} labels are too many. "
                "Score texts by a function of your own, PATH:FUNCTION."
            )
        self.labels = len(names)
        """The universe: all labels that anyone gave."""
        place = {name: number for number, name in enumerate(names)}
        bits = np.zeros((len(values), words), np.uint64)
        for row, value in enumerate(values):
            for name in value:
                bits[row, place[name] // 64] |= np.uint64(1) << np.uint64(place[name] % 64)
        self.bits: Bits = bits
        self.sizes = count_bits(bits)

    def common(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the labels that both sets hold."""
        step = max(1, CHUNK // self.bits.shape[1])
        parts = [
            count_bits(self.bits[a[i : i + step]] & self.bits[b[i : i + step]])
            for i in range(0, a.size, step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def count_bits(bits: Bits) -> NDArray[np.int64]:
    """Count the bits of each row."""
    counted: NDArray[np.int64] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return counted


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
