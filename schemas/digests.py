"""Keys and digests of frames."""

import hashlib
from collections.abc import Sequence

import polars as pl
import polars.selectors as cs

from schemas.keys import content_key

SLICE = 4096


def content_keys(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Return the :func:`content_key` of each row over ``columns``."""
    return pl.Series(
        (content_key(*row) for row in frame.select(columns).iter_rows()), dtype=pl.String
    )


def frame_digest(frame: pl.DataFrame) -> str:
    """Return a digest of a frame's schema and values, independent of its memory layout."""
    digest = hashlib.sha256(repr(list(frame.schema.items())).encode())
    # JSON has no binary type, and writes NaN and infinity as null.
    plain = frame.with_columns(cs.float().cast(pl.String), cs.binary().bin.encode("hex"))
    # By slices, as the JSON of a whole frame of texts takes twice its memory.
    for rows in plain.iter_slices(SLICE):
        digest.update(rows.write_ndjson().encode())
    return digest.hexdigest()
