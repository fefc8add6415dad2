"""Read Parquet a few rows at a time, text columns only."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import polars as pl

from tasks.kit.printable import cause
from tasks.readers.bounded import (
    MAX_FILE,
    MAX_ROWS,
    MAX_TEXT,
    RESAVE,
    SHORTEN,
    SPLIT,
    FileRow,
    Problems,
    Table,
    clip,
)

BATCH = 64
SLACK = 1_000_000
"""Bytes of a column chunk that are not text: page headers, levels, lengths."""

COLUMNS = "select column_name, column_type from (describe from read_parquet($file))"
NULLS = "select name from parquet_schema($file) where logical_type like 'NullType%'"
CHUNKS = """
    select path_in_schema, row_group_num_rows, total_uncompressed_size
    from parquet_metadata($file)
"""
NUMBERS = ("DOUBLE", "FLOAT", "BIGINT", "INTEGER")
COUNT = "select coalesce(sum(num_rows), 0) from parquet_file_metadata($file)"
ROWS = "from read_parquet($file)"
FILE = re.compile(r"""( at end of|in|while reading) file (?:"[^"]*"|'[^']*'),? ?""")
BOUNDS: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "memory_limit": "2GB"}


def as_pattern(path: Path) -> str:
    """Return a path as a pattern of DuckDB that only this file matches."""
    return re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))


def without_file(error: Exception) -> str:
    """Return what DuckDB says, without the name of the file, which may be a copy of the user's."""
    return FILE.sub("", str(error).strip())


def parquet_table(
    path: Path,
    problems: Problems,
    numbers: Collection[str] = (),
    prefixes: tuple[str, ...] = (),
    used: Callable[[str], bool] = lambda _: True,
) -> Table:
    """Open a Parquet file whose columns are all text; a null is a missing value.

    ``numbers`` are columns that may hold numbers instead, and ``prefixes`` begin their names.
    Columns that are not ``used`` are named, but not read, and may have any type.

    DuckDB reads it: a broken file ends in its errors, where Polars' reader ends the process.
    """
    import duckdb

    file = {"file": as_pattern(path)}
    with closing(duckdb.connect(config=BOUNDS)) as connection:
        try:
            columns = connection.execute(COLUMNS, file).fetchall()
            nulls = {name for (name,) in connection.execute(NULLS, file).fetchall()}
            ((number,),) = connection.execute(COUNT, file).fetchall()
            chunks = connection.execute(CHUNKS, file).fetchall()
        except (duckdb.Error, UnicodeDecodeError) as error:
            problems.add("", f"is not Parquet ({_cause(error)})", "Write the file again.")
            return Table([], iter(()))
    _check_sizes(number, chunks, problems)
    numeric = [name in numbers or name.startswith(prefixes) for name, _ in columns]
    others = [
        (name, kind)
        for (name, kind), may in zip(columns, numeric, strict=True)
        if kind != "VARCHAR" and used(name) and name not in nulls and not (may and kind in NUMBERS)
    ]
    for name, kind in others:
        what = f"has the type {clip(kind)}; it must be text (VARCHAR)"
        problems.add(f"column {clip(name)}", what, "Cast it to text or drop it.")
    names = [name for name, _ in columns]
    read = [name for name in names if used(name)]
    return Table(names, iter(()) if others else _rows(file, read, problems))


def parquet_frame(path: Path, columns: Sequence[str] = (), most: int | None = None) -> pl.DataFrame:
    """Read a Parquet file as a frame, or some columns and at most so many rows of it.

    DuckDB reads it: a broken file ends in its errors, where Polars' reader panics. A column that
    was written without a type has the type Null.

    Raise ValueError if the file cannot be read: the cause.
    """
    import duckdb

    file = {"file": as_pattern(path)}
    try:
        with closing(duckdb.connect()) as connection:
            nulls = {name for (name,) in connection.execute(NULLS, file).fetchall()}
            rows = connection.sql(ROWS, params=file)
            if columns:
                rows = rows.select(*map(duckdb.ColumnExpression, columns))
            frame = pl.DataFrame(rows if most is None else rows.limit(most))
    except (duckdb.Error, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise ValueError(_cause(error)) from error
    empty = [pl.lit(None).alias(name) for name in frame.columns if name in nulls]
    return frame.with_columns(empty)


def require_parquet(
    path: Path, like: str, columns: Sequence[str] = (), most: int | None = None
) -> pl.DataFrame:
    """Read as :func:`parquet_frame` does; its error names the file and says ``like``."""
    try:
        return parquet_frame(path, columns, most)
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read as Parquet: {error}. {like}") from error


def _check_sizes(number: int, chunks: list[tuple[str, int, int]], problems: Problems) -> None:
    if number > MAX_ROWS:
        problems.add("", f"has {number} rows; at most {MAX_ROWS} are allowed", SPLIT)
    for column, rows, size in chunks:
        if size > SLACK + 4 * MAX_TEXT * rows:
            what = f"has a text of more than {MAX_TEXT} characters, the maximum"
            problems.add(f"column {clip(column)}", what, SHORTEN)
    size = sum(size for _, _, size in chunks)
    if size > MAX_FILE:
        problems.add("", f"has {size} bytes unpacked; at most {MAX_FILE} are allowed", SPLIT)


def _rows(file: dict[str, str], names: list[str], problems: Problems) -> Iterator[FileRow]:
    import duckdb

    number, size = 0, 0
    try:
        with closing(duckdb.connect(config=BOUNDS)) as connection:
            chosen = map(duckdb.ColumnExpression, names)
            found = connection.sql(ROWS, params=file).select(*chosen)
            while batch := found.fetchmany(BATCH):
                for values in batch:
                    number += 1
                    size += sum(len(value) for value in values if isinstance(value, str))
                    fields = zip(names, values, strict=True)
                    yield FileRow(f"row {number}", {k: v for k, v in fields if v is not None})
                if size > MAX_FILE:
                    what = f"the texts up to here have more than {MAX_FILE} characters, the maximum"
                    problems.add(f"row {number}", what, SPLIT)
                    return
    except (duckdb.Error, UnicodeDecodeError) as error:
        where, text = f"after row {number}", _cause(error)
        if "utf" in str(error).lower():
            problems.add(where, f"a text is not UTF-8 ({text})", RESAVE)
        else:
            problems.add(where, f"cannot be read ({text})", "Write the file again.")


def _cause(error: Exception) -> str:
    return cause(without_file(error))
