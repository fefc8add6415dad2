"""Labels as a scoring reads them; what cannot be read is None, and never filled in."""

import json
import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, NamedTuple

Kind = Literal["text", "number", "set", "any"]
Read = Callable[[Sequence[Any]], list[Hashable | None]]

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LARGEST = 1e100
"""Sums of squares of larger numbers overflow."""


class ListLabel(NamedTuple):
    """A list that a dictionary can hold."""

    json: str


def read_labels(kind: Kind, labels: Sequence[Any]) -> list[Hashable | None]:
    """Return each label (text, number, list or None) as ``kind``, or None if it is none."""
    return READERS[kind](labels)


def _texts(labels: Sequence[Any]) -> list[Hashable | None]:
    """Read names: 3, 3.0 and "3" are one; lists are sets."""
    flags = _multi_hot(labels)
    return [
        _set(label, flags=flags) if isinstance(label, list) else _text(label) for label in labels
    ]


def _numbers(labels: Sequence[Any]) -> list[Hashable | None]:
    return [_number(label) for label in labels]


def _sets(labels: Sequence[Any]) -> list[Hashable | None]:
    """Read sets: order and repetition do not matter; a name alone is a set of one."""
    flags = _multi_hot(labels)
    return [
        _set(label, flags=flags) if isinstance(label, list)
        # among flags per label, a name alone stands for nothing
        else None if flags else _set([label], flags=False)
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
    return label if isinstance(label, str) else None


def _number(label: Any) -> float | None:
    if isinstance(label, str) and NUMBER.fullmatch(label.strip()):
        label = float(label)
    if isinstance(label, bool) or not isinstance(label, int | float):
        return None
    return float(label) if abs(label) <= LARGEST and math.isfinite(label) else None


def _set(label: Any, *, flags: bool) -> frozenset[str] | None:
    names = [_text(each) for each in label]
    if flags:
        return frozenset(str(place) for place, name in enumerate(names) if name == "1")
    return None if None in names else frozenset(name for name in names if name is not None)


def _multi_hot(labels: Sequence[Any]) -> bool:
    """Tell whether all lists are multi-hot: of one length, of 0 and 1 alone, with repetitions.

    A set repeats nothing, so a list such as [0, 1, 0] is no set of the names 0 and 1.
    """
    lists = [label for label in labels if isinstance(label, list)]
    if not all(_text(each) in {"0", "1"} for label in lists for each in label):
        return False
    if all(len({_text(each) for each in label}) == len(label) for label in lists):
        return False
    lengths = {len(label) for label in lists}
    if len(lengths) > 1:
        raise ValueError(
            f"lists of 0 and 1 that repeat them look like flags per label, but their lengths "
            f"differ ({min(lengths)} to {max(lengths)}). Give the names of the labels instead."
        )
    return True


READERS: dict[Kind, Read] = {
    "text": _texts, "number": _numbers, "set": _sets, "any": _as_they_are
}  # fmt: skip
