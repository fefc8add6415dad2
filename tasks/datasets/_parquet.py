"""The Parquet reader: a few rows at a time, text columns only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.datasets._read import (
    MAX_FILE,
    MAX_ROWS,
    MAX_TEXT,
    RESAVE,
    SHORTEN,
    SPLIT,
    Problems,
    Row,
    Table,
    clip,
)

BATCH = 64
SLACK = 1_000_000
"""Bytes of a column chunk that are not text: page headers, levels, lengths."""


def parquet_table(path: Path, problems: Problems) -> Table:
    """Open a Parquet file whose columns are all text; a null is a missing value."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        problems.add("", f"is not Parquet ({_first_line(error)})", "Write the file again.")
        return Table([], iter(()))
    _check_sizes(file.metadata, problems)
    others = [field for field in file.schema_arrow if not _is_text(field.type)]
    for field in others:
        what = f"has the type {clip(str(field.type))}; it must be text (string)"
        problems.add(f"column {clip(field.name)}", what, "Cast it to text or drop it.")
    return Table(file.schema_arrow.names, iter(()) if others else _rows(file, problems))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return any(test(kind) for test in tests)


def _check_sizes(metadata: Any, problems: Problems) -> None:
    if metadata.num_rows > MAX_ROWS:
        problems.add("", f"has {metadata.num_rows} rows; at most {MAX_ROWS} are allowed", SPLIT)
    size = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            size += chunk.total_uncompressed_size
            if chunk.total_uncompressed_size > SLACK + 4 * MAX_TEXT * group.num_rows:
                where = f"column {clip(chunk.path_in_schema)}"
                what = f"has a text of more than {MAX_TEXT} characters; no more are allowed"
                problems.add(where, what, SHORTEN)
    if size > MAX_FILE:
        problems.add("", f"has {size} bytes unpacked; at most {MAX_FILE} are allowed", SPLIT)


def _rows(file: Any, problems: Problems) -> Iterator[Row]:
    import pyarrow as pa

    number, size = 0, 0
    try:
        for batch in file.iter_batches(batch_size=BATCH):
            for fields in batch.to_pylist():
                number += 1
                size += sum(len(value) for value in fields.values() if value)
                yield Row(f"row {number}", {k: v for k, v in fields.items() if v is not None})
            if size > MAX_FILE:
                what = f"more than {MAX_FILE} characters up to here; no more are allowed"
                problems.add(f"row {number}", what, SPLIT)
                return
    except UnicodeDecodeError as error:
        problems.add(_after(number), f"a text is not UTF-8 ({error.reason})", RESAVE)
    except (pa.ArrowException, OSError) as error:
        what = f"cannot be read ({_first_line(error)})"
        problems.add(_after(number), what, "Write the file again.")


def _after(number: int) -> str:
    return f"rows {number + 1} to {number + BATCH}"


def _first_line(error: Exception) -> str:
    return clip(str(error).strip().split("\n", maxsplit=1)[0])
