"""Seeded random numbers that depend on their keys only, not on the order of calls."""

import hashlib
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")
NORMAL = NormalDist()


def uniform(*keys: object) -> float:
    """Return a number in (0, 1): the first 52 bits of SHA-256 over ``keys``."""
    digest = hashlib.sha256("\x1f".join(map(str, keys)).encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8]) >> 12) * 2.0**-52 + 2.0**-53


def normal(*keys: object) -> float:
    """Return a standard normal number."""
    return NORMAL.inv_cdf(uniform(*keys))


def pick(options: Sequence[T], *keys: object) -> T:
    """Return one of ``options``."""
    return options[int(uniform(*keys) * len(options))]


def shuffle(options: Sequence[T], *keys: object) -> list[T]:
    """Return ``options`` in a random order."""
    order = sorted(range(len(options)), key=lambda index: uniform(*keys, index))
    return [options[index] for index in order]
