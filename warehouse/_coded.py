"""Texts of millions of rows leave DuckDB as numbers of names, which takes half the time."""

from collections.abc import Iterable
from typing import NamedTuple

import duckdb
import polars as pl

from schemas.arrow import fetch


class Coded(NamedTuple):
    """Names of the text columns of a table, in order; as long as the connection is open."""

    connection: duckdb.DuckDBPyConnection
    names: dict[str, pl.Enum]

    @classmethod
    def of(
        cls, connection: duckdb.DuckDBPyConnection, rows: str, columns: Iterable[str]
    ) -> "Coded":
        """Give numbers to what the columns of ``rows`` (SQL of our own) hold."""
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
        """Run a query whose result has some of these columns; they are ``pl.Enum`` in it."""
        there = self.connection.sql(sql).columns
        names = {column: names for column, names in self.names.items() if column in there}
        codes = ", ".join(f"enum_code({each}::{each}_names) as {each}" for each in names)
        found = fetch(self.connection, f"select * replace ({codes}) from ({sql})")  # noqa: S608
        return found.with_columns(pl.col(each).cat.to(kind) for each, kind in names.items())
