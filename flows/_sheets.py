"""CSV that spreadsheets may open: no cell of it is computed."""

import polars as pl

FORMULA = r"^[=+\-@\t\r]"
"""How a cell begins that spreadsheets would compute."""


def guarded(rows: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would compute, or that begin with one."""
    texts = [name for name, kind in rows.schema.items() if kind == pl.String]
    return rows.with_columns(
        pl.when(pl.col(name).str.contains(FORMULA) | pl.col(name).str.starts_with("'"))
        .then("'" + pl.col(name))
        .otherwise(name)
        .alias(name)
        for name in texts
    )
