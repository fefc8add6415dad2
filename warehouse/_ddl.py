"""Tables and views of the warehouse, made from the schemas and the mart files."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import duckdb

from schemas import calibration, conclusions, curation, judging, results, runs
from schemas.frame import Fact, Frame, Result

FRAMES: tuple[type[Frame], ...] = tuple(
    frame
    for module in (curation, judging, runs, calibration, results, conclusions)
    for frame in vars(module).values()
    if isinstance(frame, type)
    and issubclass(frame, Frame)
    and frame.__module__ == module.__name__
    and frame.place().table
)
"""The frames that have a table."""
MARTS = Path(__file__).parent / "marts"
MART = re.compile(r"\bmart\.(\w+)")
TYPES = {"String": "varchar", "Int64": "bigint", "Float64": "double", "Boolean": "boolean"}
ADDED = {
    "study": ("varchar", "name of the study whose results these are"),
    "run": ("varchar", "id of the run that saved it"),
    "saved_at": ("timestamptz", "when it was saved"),
}


def added_columns(frame: type[Frame]) -> tuple[str, ...]:
    """Return the columns that the warehouse adds to a frame's own."""
    if issubclass(frame, Fact):
        return ("run", "saved_at")
    return ("study", "run", "saved_at") if issubclass(frame, Result) else ()


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every table."""
    connection.execute("; ".join(map(_table, FRAMES)))


def comment(connection: duckdb.DuckDBPyConnection) -> None:
    """Write the descriptions of the schemas beside every table and column."""
    connection.execute("; ".join(text for frame in FRAMES for text in _comments(frame)))


def create_marts(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path] | None = None
) -> None:
    """Make the schema ``mart`` anew: the views of ``files``, by default of all marts."""
    connection.execute("drop schema if exists mart cascade")
    connection.execute("create schema mart")
    waiting = mart_files() if files is None else [*files]
    while waiting:
        failures = {file: _create_mart(connection, file) for file in waiting}
        left = [file for file, failure in failures.items() if failure]
        if left == waiting:
            reasons = "; ".join(f"{file.name}: {failures[file]}" for file in left)
            raise ValueError(f"marts that cannot be made: {reasons}")
        waiting = left


def marts_digest() -> str:
    """Return a digest of all mart files."""
    return _digest_of(tuple((file, file.stat().st_mtime_ns) for file in mart_files()))


@cache
def _digest_of(files: tuple[tuple[Path, int], ...]) -> str:
    """Digest files, each given with the time of its last change; each visit asks for it."""
    digest = hashlib.sha256()
    for file, _ in files:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def marts_are_ours(connection: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether the schema ``mart`` holds the views of ``marts/`` as this version words them.

    A file from elsewhere may hold others, which show what they like. DuckDB keeps the text of a
    view as its parser prints it, so ours are printed by the same parser; none is run for it.
    """
    found = connection.execute(
        "select view_name, sql from duckdb_views() where schema_name = 'mart' "
        "union all select table_name, '' from duckdb_tables() where schema_name = 'mart'"
    ).fetchall()
    ours = {
        file.stem: f"CREATE VIEW mart.{file.stem} AS "
        f"{_printed(connection, file.read_text(encoding='utf-8'))};"
        for file in mart_files()
    }
    # Words that mean something to DuckDB are quoted as names.
    plain = {
        name: text.replace(f'VIEW mart."{name}" AS', f"VIEW mart.{name} AS", 1)
        for name, text in found
    }
    return plain == ours and len(found) == len(ours)


_printed_queries: dict[str, str] = {}
"""Queries of marts, each as DuckDB's parser prints it: the same in every file."""


def _printed(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """Return a query as DuckDB's parser prints it, which takes 2 ms for each mart."""
    if query not in _printed_queries:
        ((text,),) = connection.execute(
            "select json_deserialize_sql(json_serialize_sql($query))", {"query": query}
        ).fetchall()
        _printed_queries[query] = text.rstrip(";")
    return _printed_queries[query]


SHADOWING = """
    select 'view ' || view_name from duckdb_views()
    where not internal and schema_name = 'main' and lower(view_name) in (select unnest($tables))
    union all
    select 'macro ' || any_value(function_name) filter (not internal) from duckdb_functions()
    group by lower(function_name) having bool_or(internal) and not bool_and(internal)
    union all
    select distinct 'type ' || t.type_name
    from duckdb_types() as t semi join duckdb_types() as o
    on lower(t.type_name) = lower(o.type_name) and o.internal
    where not t.internal
"""
"""Views, macros and types that shadow our tables, or functions and types of DuckDB."""


def shadowing_definitions(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the definitions in a file that shadow our tables, or DuckDB's functions and types."""
    tables = ["meta", *(frame.place().table for frame in FRAMES)]
    return [name for (name,) in connection.execute(SHADOWING, {"tables": tables}).fetchall()]


def mart_files() -> list[Path]:
    """Return the files of all marts, by name."""
    return sorted(MARTS.glob("*.sql"))


def marts_behind(query: str) -> list[Path]:
    """Return the files of the marts that a query reads, and of those that these read."""
    found: dict[str, Path] = {}
    names = {*MART.findall(query)}
    while names:
        name = names.pop()
        found[name] = MARTS / f"{name}.sql"
        names |= {*MART.findall(found[name].read_text(encoding="utf-8"))} - found.keys()
    return sorted(found.values())


def _create_mart(connection: duckdb.DuckDBPyConnection, file: Path) -> str:
    """Create one view; return the error if that fails, perhaps because another mart is missing."""
    text = file.read_text(encoding="utf-8")
    comment = f"comment on view mart.{file.stem} is {_quote(mart_grain(text))}"
    try:
        connection.execute(f"create view mart.{file.stem} as {text};\n{comment}")
    except duckdb.Error as error:
        return str(error)
    return ""


def mart_grain(text: str) -> str:
    """Return what a row of a mart is: the first line of its file."""
    return text.split("\n", maxsplit=1)[0].removeprefix("-- ")


def _table(frame: type[Frame]) -> str:
    required = frame.required()
    columns = [
        f"{column} {TYPES.get(str(dtype), 'timestamptz')}" + " not null" * (column in required)
        for column, dtype in frame.dtypes().items()
    ]
    columns += [f"{column} {ADDED[column][0]} not null" for column in added_columns(frame)]
    return f"create table {frame.place().table} ({', '.join(columns)})"


def _comments(frame: type[Frame]) -> Iterator[str]:
    table = frame.place().table
    yield f"comment on table {table} is {_quote(frame.grain())}"
    added = {column: ADDED[column][1] for column in added_columns(frame)}
    for column, text in {**frame.descriptions(), **added}.items():
        yield f"comment on column {table}.{column} is {_quote(text)}"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
