"""Read text columns of millions of rows from DuckDB dictionary-encoded, in half the time."""

from collections.abc import Iterable
from typing import NamedTuple

import duckdb
import polars as pl

from schemas.arrow import fetch


class DictionaryEncoding(NamedTuple):
    """Distinct values of text columns, sorted; valid while the connection is open."""

    connection: duckdb.DuckDBPyConnection
    names: dict[str, pl.Enum]

    @classmethod
    def of(
        cls, connection: duckdb.DuckDBPyConnection, rows: str, columns: Iterable[str]
    ) -> "DictionaryEncoding":
        """Encode the values in ``columns`` of ``rows`` (SQL written in this project)."""
        names = {}
        for column in columns:
            texts = f"select distinct {column} from {rows} and {column} is not null"  # noqa: S608
            connection.execute(
                f"create or replace temp type {column}_names as enum ({texts} order by all)"
            )
            found = fetch(connection, f"select unnest(enum_range(null::{column}_names)) as name")
            names[column] = pl.Enum(found["name"].cast(pl.String))
        return cls(connection, names)

    def fetch(self, sql: str) -> pl.DataFrame:
        """Run a query; encoded columns in its result have the type ``pl.Enum``."""
        present = self.connection.sql(sql).columns
        names = {column: names for column, names in self.names.items() if column in present}
        codes = ", ".join(f"enum_code({each}::{each}_names) as {each}" for each in names)
        found = fetch(self.connection, f"select * replace ({codes}) from ({sql})")  # noqa: S608
        return found.with_columns(pl.col(each).cat.to(kind) for each, kind in names.items())
