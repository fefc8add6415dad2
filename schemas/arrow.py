"""Frames in and out of DuckDB as Arrow streams: pyarrow would take 30 MB and import for long."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import duckdb
import polars as pl


class _Stream:
    """A frame of which DuckDB sees the stream alone; of a Polars frame it asks for pyarrow."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def lend(connection: duckdb.DuckDBPyConnection, name: str, frame: pl.DataFrame) -> None:
    """Let DuckDB read a frame as ``name``, in place of what was there.

    Where pyarrow is installed DuckDB has it filter streams, which it cannot by text: then the frame
    is copied.
    """
    if find_spec("pyarrow") is None:
        connection.register(name, _Stream(frame))
        return
    connection.register("stream", _Stream(frame))
    connection.execute(f"create or replace temp table {name} as from stream")
    connection.unregister("stream")


def fetch(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Run one statement and return its rows; no columns if it is one that returns none."""
    relation = connection.sql(sql, params=parameters)
    return pl.DataFrame() if relation is None else pl.DataFrame(relation)
