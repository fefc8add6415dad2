"""Disable external access: queries reach no other file, extension, setting or network."""

from pathlib import Path

import duckdb

SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}

REFUSED = (
    "a query must not use anything outside this warehouse: no file, folder, address, extension or "
    "setting. To write its rows to a file: voirdire sql QUERY --format parquet --output FILE; to "
    "write whole tables: voirdire export --output FOLDER."
)


def connect(
    path: Path, *, reading: bool = True, writes_in: Path | None = None, **settings: str | int
) -> duckdb.DuckDBPyConnection:
    """Open a file with a connection closed to everything else, except the folder ``writes_in``.

    External access cannot be switched on again. One that reads, and so may run queries of users,
    has its other settings locked too, last of all; a migration needs some that DuckDB sets itself.
    """
    # Settings that are given here cost nothing; each statement takes a third of a millisecond.
    closed = {} if writes_in else {"enable_external_access": False}
    connection = duckdb.connect(
        str(path), read_only=reading, config={**SETTINGS, **closed, **settings}
    )
    statements = ["set global timezone = 'UTC'"]
    if writes_in is not None:
        folder = str(writes_in).replace("'", "''")
        statements.append(f"set allowed_directories = ['{folder}/']")
        statements.append("set enable_external_access = false")
    if reading:
        statements.append("set lock_configuration = true")
    connection.execute("; ".join(statements))
    return connection


def is_refusal(error: duckdb.Error) -> bool:
    """Tell whether a query failed because external access is disabled."""
    return isinstance(error, duckdb.PermissionException) or "configuration has been locked" in str(
        error
    )
