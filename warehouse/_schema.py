"""Check the schema version of a file and its definitions, and migrate it to this version."""

from pathlib import Path

import duckdb

from warehouse._ddl import (
    comment,
    create,
    create_marts,
    marts_are_ours,
    marts_digest,
    shadowing_definitions,
)
from warehouse._saving import WarehouseError
from warehouse.path_checks import VARIABLE, damage

VERSION = 48
"""Increased with each file in ``migrations/``, which is named after the resulting version."""

OLDEST = 32
"""Oldest schema that can be migrated; earlier ones were never released."""

EMPTY = (0, "")
"""Schema version and digest of the marts of a file without tables."""

MIGRATIONS = Path(__file__).parent / "migrations"
_examined: set[tuple[str, int, int]] = set()
"""Files (path, device, inode) that this process has checked for shadowing definitions."""


def is_current(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
    """Tell whether a file has this version's tables and marts.

    Raise WarehouseError if it is not a warehouse, was written by a newer version, or has
    definitions that shadow our tables or DuckDB's own functions.
    """
    state = _state(connection, path)
    # An empty file has no definitions to examine.
    return state != EMPTY and _is_ours(connection, path) and state == (VERSION, marts_digest())


def _is_ours(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
    """Tell whether a file has this version's marts; checked once per process and file."""
    if _identity(path) in _examined:
        return True
    if shadowing := shadowing_definitions(connection):
        raise WarehouseError(
            f"{path} has definitions that voirdire did not write and that could falsify results: "
            f"{', '.join(sorted(shadowing)[:3])}. Nothing was read. Drop them with DuckDB's own "
            f"client, or choose another file with --warehouse or {VARIABLE}."
        )
    if not marts_are_ours(connection):
        return False
    _examined.add(_identity(path))
    return True


def _identity(path: Path) -> tuple[str, int, int]:
    there = path.stat()
    return str(path), there.st_dev, there.st_ino


def _state(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[int, str]:
    """Return the schema version and the digest of the marts."""
    try:
        ((version, marts),) = connection.execute(
            "select schema_version, marts from meta"
        ).fetchall()
    except (duckdb.Error, ValueError) as error:
        if damaged := damage(path, error):
            raise WarehouseError(damaged) from error
        names = "select table_name from duckdb_tables() union select view_name from duckdb_views()"
        there = {t for (t,) in connection.execute(f"{names} where not internal").fetchall()}
        if not there:
            return EMPTY
        raise WarehouseError(
            f"{path} is not a warehouse of voirdire: it has other tables "
            f"({', '.join(sorted(there)[:3])}). Choose another file with --warehouse or "
            f"{VARIABLE}."
        ) from error
    if version > VERSION:
        raise WarehouseError(
            f"{path} was written by a newer voirdire (schema {version}, this one knows {VERSION}). "
            "Update voirdire, or choose another file with --warehouse."
        )
    if version < OLDEST:
        raise WarehouseError(
            f"{path} was written by a voirdire from before its first release (schema {version}, "
            f"this one reads {OLDEST} and later). Copy what you need from it with DuckDB, and "
            f"choose another file with --warehouse or {VARIABLE}."
        )
    return version, marts


def _migrations(connection: duckdb.DuckDBPyConnection, version: int) -> list[duckdb.Statement]:
    """Return the statements that bring a file from a version to this one, updates of rows last.

    DuckDB commits no transaction that alters a table after an update of its rows.
    """
    files = [next(MIGRATIONS.glob(f"{n:03}_*.sql")) for n in range(version + 1, VERSION + 1)]
    texts = (file.read_text(encoding="utf-8") for file in files)
    statements = [each for text in texts for each in connection.extract_statements(text)]
    return sorted(statements, key=lambda each: each.type == duckdb.StatementType.UPDATE)


def build(connection: duckdb.DuckDBPyConnection, path: Path, place: Path | None = None) -> None:
    """Create the schema in a new file, or migrate an earlier one, in one transaction.

    The file will be linked to ``place``, where it need not be examined again.

    Raise WarehouseError if that cannot be done.
    """
    connection.execute("begin transaction")
    try:
        version, _ = _state(connection, path)
        if version == 0:
            connection.execute(
                "create table meta (schema_version integer, marts varchar, upgraded_at timestamptz)"
            )
            connection.execute("insert into meta values (0, '', null)")
            create(connection)
        else:
            for statement in _migrations(connection, version):
                connection.execute(statement)
        if version < VERSION:
            comment(connection)
        create_marts(connection)
        connection.execute(
            "update meta set schema_version = ?, marts = ?, "
            # Results saved before may lack rows and values until they are computed again.
            "upgraded_at = if(schema_version in (0, ?), upgraded_at, now())",
            [VERSION, marts_digest(), VERSION],
        )
    except BaseException as error:
        connection.execute("rollback")
        if not isinstance(error, duckdb.Error):
            raise
        raise WarehouseError(
            f"{path} could not be migrated to schema {VERSION} and is unchanged. {error}"
        ) from error
    connection.execute("commit")
    _examined.add((str(place or path), *_identity(path)[1:]))
