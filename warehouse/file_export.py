"""Export tables and queries to Parquet, CSV or JSON files, and copy the whole database file."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import duckdb

from warehouse._saving import WarehouseError
from warehouse.atomic_files import naming
from warehouse.path_checks import is_of_another_kind

FORMULA = r"^[=+\-@\t\r'']"
"""How a cell begins that spreadsheets would compute, or that must be distinguished from one that is
guarded (the rule of ``flows/publishing/csv_escaping.py``); as a literal of SQL."""


class Copy(NamedTuple):
    """One file to write."""

    name: str
    sql: str
    of_study: bool = False
    """Keep only the rows of the study; write nothing if there is no such column."""


def write_copy(
    connection: duckdb.DuckDBPyConnection, copy: Copy, folder: Path, form: str
) -> int | None:
    """Write one file of mode 0600; return its number of rows, or null if none was written."""
    columns: Mapping[str, str] = {
        name: kind
        for name, kind, *_ in connection.execute(f"describe {_select(copy.sql)}").fetchall()
    }
    where = ""
    if copy.of_study:
        if "study" not in columns:
            return None
        where = " where study = getvariable('study')"
    shown = ", ".join(_cell(name, kind, form) for name, kind in columns.items())
    target = folder / f"{copy.name}.{form}"
    target.touch(mode=0o600)
    literal = str(target).replace("'", "''")
    how = {"csv": ", header", "json": ", array true"}.get(form, "")
    ((rows,),) = connection.execute(
        f"copy (select {shown} from ({_select(copy.sql)}){where}) to '{literal}' "
        f"(format {form}{how})"
    ).fetchall()
    target.chmod(0o600)
    return int(rows)


def _select(sql: str) -> str:
    return f"select * {sql}" if sql.lstrip().startswith("from ") else sql


def _cell(name: str, kind: str, form: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if form != "csv":
        return quoted
    if kind == "VARCHAR":
        guarded = f"regexp_matches({quoted}, '{FORMULA}')"
        return f"case when {guarded} then '''' || {quoted} else {quoted} end as {quoted}"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP")):
        return f"to_json({quoted})::varchar as {quoted}"
    return quoted


def require_target(source: Path, target: Path) -> None:
    """Refuse a target that a copy must not replace.

    A WarehouseError gives the path and the next step.
    """
    if target.is_dir():
        raise WarehouseError(f"{target} is a folder. Name a file for the copy.")
    if target.exists() and target.samefile(source):
        raise WarehouseError(f"{target} is the warehouse itself. Name another file for the copy.")
    if target.exists() and is_of_another_kind(target):
        raise WarehouseError(f"{target} is not a DuckDB file. Name another file for the copy.")
    if log_of(target).exists():
        raise WarehouseError(
            f"{log_of(target)} is there: a program writes to {target}, or was killed while it did. "
            "Name another file for the copy."
        )


def log_of(path: Path) -> Path:
    """Return the path of DuckDB's write-ahead log."""
    return path.with_name(f"{path.name}.wal")


def copy_file(connection: duckdb.DuckDBPyConnection, source: Path, target: Path) -> None:
    """Copy a file that nobody writes to; programs with an earlier copy open keep it.

    All of it is read first through ``connection``, because DuckDB notices a damaged part when it
    reads it: a damaged file replaces no earlier copy. The folder of the copy is created if it is
    missing.

    Raise duckdb.Error if a part is damaged.
    """
    names = "select table_name from duckdb_tables() where schema_name = 'main' and not internal"
    for (name,) in connection.execute(names).fetchall():
        quoted = name.replace('"', '""')
        connection.execute(f'select bit_xor(hash(t)) from main."{quoted}" as t').fetchall()
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with naming(target):
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "wb") as copy, source.open("rb") as file:
                shutil.copyfileobj(file, copy, 2**20)
                copy.flush()
                os.fsync(copy.fileno())
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
