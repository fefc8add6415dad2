"""Labels as a scoring reads them; what cannot be read is None, and never filled in."""

import json
import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, NamedTuple

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
        _set(label, flags) if isinstance(label, list)
        # among flags per label, a name alone stands for nothing
        else None if flags else _set([label], 0)
        for label in labels
    ]  # fmt: skip


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


READERS: dict[Kind, Read] = {
    "text": _texts, "number": _numbers, "set": _sets, "any": _as_they_are
}  # fmt: skip
