"""Disable external access: queries reach no other file, extension, setting or network."""

from pathlib import Path

import duckdb

SETTINGS = (
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set python_enable_replacements = false",
)

REFUSED = (
    "a query must not use anything outside this warehouse: no file, folder, address, extension or "
    "setting. To write its rows to a file: voirdire sql QUERY --format parquet --output FILE; to "
    "write whole tables: voirdire export --output FOLDER."
)


def lock_down(
    connection: duckdb.DuckDBPyConnection, *, reading: bool = True, writes_in: Path | None = None
) -> None:
    """Close a connection to all that is outside its file, except the folder ``writes_in``.

    External access cannot be switched on again. One that reads, and so may run queries of users,
    has its other settings locked too, last of all; a migration needs some that DuckDB sets itself.
    """
    for setting in SETTINGS:
        connection.execute(setting)
    if writes_in is not None:
        folder = str(writes_in).replace("'", "''")
        connection.execute(f"set allowed_directories = ['{folder}/']")
    connection.execute("set enable_external_access = false")
    if reading:
        connection.execute("set lock_configuration = true")


def is_refusal(error: duckdb.Error) -> bool:
    """Tell whether a query failed because external access is disabled."""
    return isinstance(error, duckdb.PermissionException) or "configuration has been locked" in str(
        error
    )
