"""Sets of labels as bits."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
