"""Frames to and from DuckDB as Arrow streams, without pyarrow (30 MB and a slow import)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import duckdb
import polars as pl


class _Stream:
    """A frame as a plain Arrow stream: for a Polars frame, DuckDB would require pyarrow."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def lend(connection: duckdb.DuckDBPyConnection, name: str, frame: pl.DataFrame) -> None:
    """Register a frame with DuckDB under ``name``, replacing any earlier one.

    If pyarrow is installed, DuckDB filters streams with it, which fails for text columns; then the
    frame is copied.
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
    """Run one statement and return its rows; a frame without columns if it returns none.

    Raise ValueError if two columns have the same name, which a frame cannot have.
    """
    relation = connection.sql(sql, params=parameters)
    if relation is None:
        return pl.DataFrame()
    names = Counter(relation.columns)
    if several := [name for name, count in names.items() if count > 1]:
        raise ValueError(
            f"more than one column of the result has the name {several[0]!r:.200}. Give each "
            "another name, as in `column as name`."
        )
    return pl.DataFrame(relation)
