"""Ids that depend on content alone."""

import hashlib
import json
from collections.abc import Sequence

import polars as pl

LENGTH = 32


def content_key(*parts: object) -> str:
    """Return 128 bits of SHA-256 over the JSON of ``parts``, as hex.

    >>> content_key("a", "bc") == content_key("ab", "c")
    False
    """
    packed = json.dumps(parts, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(packed.encode()).hexdigest()[:LENGTH]


def content_keys(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Return the :func:`content_key` of each row over ``columns``."""
    return pl.Series(
        (content_key(*row) for row in frame.select(columns).iter_rows()), dtype=pl.String
    )


def frame_digest(frame: pl.DataFrame) -> str:
    """Return a digest of a frame's schema and values, whatever its layout in memory."""
    digest = hashlib.sha256(repr(list(frame.schema.items())).encode())
    digest.update(frame.write_ndjson().encode())
    return digest.hexdigest()
