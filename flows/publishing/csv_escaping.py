"""CSV escaping against formula injection in spreadsheets."""

import json

import polars as pl

FORMULA = r"^[=+\-@\t\r']"
"""How a cell begins that spreadsheets would compute, or that looks like one that is guarded."""


def csv_text(rows: pl.DataFrame) -> str:
    """Write rows as CSV: null is empty, a list or struct is JSON, and no cell is computed."""
    return guarded(_flat(rows)).write_csv()


def guarded(rows: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would compute, or that begin with one."""
    texts = [name for name, kind in rows.schema.items() if kind == pl.String]
    return rows.with_columns(
        pl.when(pl.col(name).str.contains(FORMULA))
        .then("'" + pl.col(name))
        .otherwise(name)
        .alias(name)
        for name in texts
    )


def _flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Write lists and structs, which CSV lacks, as JSON."""
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    return rows.with_columns(
        pl.Series(
            name,
            [v if v is None else json.dumps(v, default=str) for v in rows[name].to_list()],
            dtype=pl.String,
        )
        for name in nested
    )
