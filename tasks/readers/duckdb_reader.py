"""Read named fields of a large table (JSON, CSV or Parquet) with DuckDB, within limits."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, Literal

import polars as pl

from schemas.arrow import fetch
from tasks.kit.printable import cause
from tasks.readers.bounded import (
    MAX_FILE,
    MAX_LINE,
    OF_LOGS,
    Problems,
    existing_file,
    not_utf8,
    require_text,
    separator_of,
    unpacked,
)
from tasks.readers.bounded import (
    RESAVE as SAVE_AS_UTF8,
)
from tasks.readers.parquet import as_pattern, without_file

MOST_SECONDS = 600
"""Time after which reading one file is given up: a small file can unpack to terabytes."""
HEAD = 4096
ANSWER = {"data", "meta"}
"""Fields of an answer of a web service, whose rows are in ``data``."""
BOUNDS: dict[str, str | bool | int | float | list[str]] = {"memory_limit": "4GB"}
PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]')
NUMBER = r"-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false"
ContentKind = Literal["rows", "object", "archive"]
TEXT, RAW, TYPE = "json_extract_string", "json_extract", "json_type"
"""Functions of DuckDB that take what is asked of a field from JSON."""
LONG_ROW = f"has a row of more than {MAX_LINE // 1_000_000} MB"
RESAVE = "Export the log again."


@dataclass(frozen=True)
class Source:
    """A file that may be a log: what it is, and the names of its fields."""

    path: Path
    """The file to read: a copy if the original is compressed."""
    name: str
    """Name of the user's file."""
    kind: ContentKind
    """A table of rows, one JSON object, or a ZIP archive."""
    format: Literal["json", "csv", "parquet", "zip"]
    header: tuple[str, ...]
    """Fields of the first row or of the object, in order."""
    problems: Problems
    is_cut: bool = False
    """Whether the first object of a JSON file is longer than a row may be."""
    separator: str = ","
    """What separates the columns of a CSV file."""

    @property
    def columns(self) -> frozenset[str]:
        """Return the names of the fields."""
        return frozenset(self.header)

    def fields(
        self,
        text: Mapping[str, str] | None = None,
        raw: Mapping[str, str] | None = None,
        digests: Mapping[str, str] | None = None,
        present: Mapping[str, str] | None = None,
        lengths: Mapping[str, str] | None = None,
    ) -> pl.DataFrame:
        """Return fields of all rows, each as text.

        Parameters
        ----------
        text
            Name of a column -> dotted path of the field, whose value is returned as plain text.
        raw
            The same for fields of any type, returned as JSON.
        digests
            The same for long texts, whose MD5 digest is returned.
        present
            The same for fields of which only their presence is returned.
        lengths
            The same for texts whose number of characters is returned.

        Raises
        ------
        ValueError
            If the file is damaged or exceeds a limit.
        """
        texts = {**(text or {}), **(digests or {}), **(lengths or {})}
        asked = {TEXT: texts, RAW: raw or {}, TYPE: present or {}}
        named = [(n, path, kind) for kind, paths in asked.items() for n, path in paths.items()]
        tops = {path.split(".")[0] for _, path, _ in named}
        parsed = {path.split(".")[0] for _, path, kind in named if kind == RAW or "." in path}
        if self.format != "json":
            tops &= self.columns
        inner: dict[tuple[str, str], list[str]] = {}
        found = {n: self._field(path, kind, tops, parsed, inner) for n, path, kind in named}
        found |= {name: f"md5({found[name]})" for name in digests or {}}
        found |= {name: f"length({found[name]})" for name in lengths or {}}
        shown = [f"{field} as {quoted(name)}" for name, field in found.items()]
        rows = self._rows(tops, parsed)
        if inner:
            # Each call parses the JSON again, so it takes all paths at once.
            values = [
                f"{kind}({self._as_json(top)}, [{', '.join(paths)}]) as {quoted(f'{kind}.{top}')}"
                for (kind, top), paths in inner.items()
            ]
            rows = f"(select {', '.join([*map(quoted, sorted(tops)), *values])} from {rows})"  # noqa: S608
        query = f"select {', '.join(shown)} from {rows} limit {OF_LOGS.rows + 1}"  # noqa: S608
        with reported(self.problems, self.path if self.format != "parquet" else None):
            table = run_query(query)
        if table.height > OF_LOGS.rows:
            what = f"the file has more than {OF_LOGS.rows} rows, the maximum"
            self.problems.add("", what, OF_LOGS.todo)
        self.problems.check()
        return table

    def object(self) -> dict[str, Any]:
        """Return the one JSON object of the file; ``NaN`` is allowed, as in Python's JSON.

        Raise ValueError if it is damaged or larger than 256 MB.
        """
        if (size := self.path.stat().st_size) > MAX_FILE:
            what = f"has {size} bytes; at most {MAX_FILE} are allowed"
            self.problems.refuse("", what, "Split it.")
        try:
            found: Any = json.loads(self.path.read_bytes().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            self.problems.refuse("", f"is not JSON ({cause(error)})", RESAVE)
        return found if isinstance(found, dict) else {}

    def _rows(self, tops: set[str], parsed: set[str]) -> str:
        file = file_literal(self.path)
        if self.format == "parquet":
            return f"read_parquet({file})"
        if self.format == "csv":
            header = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.header)
            return (
                f"read_csv({file}, columns = {{{header}}}, header = true, auto_detect = false, "
                f"delim = {literal(self.separator)}, quote = '\"', escape = '\"', "
                f"max_line_size = {MAX_LINE})"
            )
        # A table needs a column. Text is read as it is, in three quarters of the time of JSON.
        types = ", ".join(
            f"{quoted(top)}: '{'JSON' if top in parsed else 'VARCHAR'}'"
            for top in sorted(tops or {"id"})
        )
        return (
            f"read_json({file}, columns = {{{types}}}, records = true, format = 'auto', "
            f"maximum_object_size = {MAX_LINE}, compression = 'uncompressed')"
        )

    def _field(
        self,
        path: str,
        kind: str,
        tops: set[str],
        parsed: set[str],
        inner: dict[tuple[str, str], list[str]],
    ) -> str:
        """Return the SQL of a field; add what must be extracted from JSON to ``inner``."""
        top, *steps = path.split(".")
        column = quoted(top) if top in tops else "null::varchar"
        if top in tops and not self._is_plain(top, kind, parsed, nested=bool(steps)):
            extracted = inner.setdefault((kind, top), [])
            found = "".join(f"[{step}]" if step.isdigit() else f'."{step}"' for step in steps)
            extracted.append(literal(f"${found}"))
            value = f"{quoted(f'{kind}.{top}')}[{len(extracted)}]"
            if kind == RAW:
                return f"nullif({value}::varchar, 'null')"
            return f"nullif({value}, 'NULL') is not null" if kind == TYPE else value
        if kind == TYPE:
            return f"{column} is not null"
        if kind == RAW and top in tops:  # of CSV
            is_number = f"regexp_full_match({column}, {literal(NUMBER)})"
            return f"case when {is_number} then {column} else to_json({column})::varchar end"
        return f"{column}::varchar" if self.format == "parquet" else column

    def _is_plain(self, top: str, kind: str, parsed: set[str], *, nested: bool) -> bool:
        """Tell whether a field is read without parsing JSON."""
        if self.format == "json":
            return top not in parsed
        return not nested and (self.format == "csv" or kind != RAW)

    def _as_json(self, top: str) -> str:
        column = quoted(top)
        casts = {"csv": f"try_cast({column} as json)", "parquet": f"to_json({column})"}
        return casts.get(self.format, column)


@contextmanager
def opened(path: Path) -> Iterator[Source | None]:
    """Open a file as a source; None if it is neither JSON, CSV, Parquet nor ZIP.

    Raise ValueError if there is no such file, or it is empty or too large.
    """
    problems = Problems(path.name, limits=OF_LOGS)
    existing_file(path, problems)
    with TemporaryDirectory() as folder, unpacked(path, problems) as file:
        source = _source(file, path.name, problems)
        if source and source.columns == ANSWER:
            rows = Path(folder) / "rows"
            rows.write_text(json.dumps(source.object()["data"]), encoding="utf-8")
            source = _source(rows, path.name, problems)
        yield source


def _source(path: Path, name: str, problems: Problems) -> Source | None:
    with path.open("rb") as file:
        start = file.read(HEAD)
    if start.startswith(PARQUET):
        with reported(problems):
            query = f"describe from read_parquet({file_literal(path)})"
            found = tuple(run_query(query)["column_name"])
        return Source(path, name, "rows", "parquet", found, problems)
    if start.startswith(ZIP):
        return Source(path, name, "archive", "zip", (), problems)
    require_text(start, problems)
    text = start.decode("utf-8-sig", "replace").lstrip()
    if text.startswith(("{", "[")):
        keys, is_row, is_cut = _json_keys(path)
        return Source(path, name, "rows" if is_row else "object", "json", keys, problems, is_cut)
    separator = separator_of(start)
    header = next(csv.reader(text.splitlines()[:1], delimiter=separator), [])
    if any("\ufffd" in name for name in header) and _add_encoding_fault(path, problems):
        problems.check()
    if len(header) > 1 and len({*header}) == len(header) and "\0" not in text:
        return Source(path, name, "rows", "csv", tuple(header), problems, separator=separator)
    return None


def _json_keys(path: Path) -> tuple[tuple[str, ...], bool, bool]:
    """Return the keys of the first object, whether it is one of several (a row), and if it is cut.

    It is cut if it does not end within the length of a row.
    """
    with path.open("rb") as file:
        text = file.read(MAX_LINE).decode("utf-8-sig", "replace")
    keys: list[str] = []
    depth, last = 0, ""
    is_list = text.lstrip().startswith("[")
    for token in TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == is_list:
                return tuple(dict.fromkeys(keys)), is_list or _is_line(text, token.end()), False
        elif mark == ":" and depth == 1 + is_list:
            keys.append(last)
        else:
            last = mark.strip('"')
    return tuple(dict.fromkeys(keys)), is_list, path.stat().st_size > MAX_LINE


def _is_line(text: str, end: int) -> bool:
    """Tell whether an object that ends here is a line of a table: alone on it, or with others."""
    rest = text[end:].lstrip()
    return rest.startswith("{") or "\n" not in text[:end].strip()


@contextmanager
def reported(problems: Problems, text: Path | None = None) -> Iterator[None]:
    """Report errors of DuckDB as problems of the file, which may be a ``text`` file."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        what = f"could not be read within {MOST_SECONDS} seconds"
        problems.add("", what, "Split it into several files.")
    except (duckdb.Error, UnicodeDecodeError) as error:
        said = without_file(error)
        first = said.split("\n", maxsplit=1)[0]
        where, what = "", f"cannot be read ({cause(first)})"
        if "maximum_object_size" in first or "Maximum line size" in said:
            what = LONG_ROW
        elif text and _add_encoding_fault(text, problems):
            problems.check()
        elif text and "Malformed JSON" in first:
            where, what = _damaged(text) or (where, what)
        problems.add(where, what, RESAVE)
    problems.check()


def _add_encoding_fault(path: Path, problems: Problems) -> bool:
    """Add the first line of a file that is not UTF-8 to its problems; tell whether there is one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                problems.add(f"line {number}", not_utf8(line, error), SAVE_AS_UTF8)
                return True
    return False


def _damaged(rows: Path) -> tuple[str, str] | None:
    """Return the first line that is not JSON, and why; none of a list over several lines."""
    with rows.open("rb") as file:
        for at, line in enumerate(file, 1):
            if line.strip():
                try:
                    json.loads(line.decode("utf-8-sig").rstrip())
                except json.JSONDecodeError as error:
                    listed = at == 1 and line.lstrip().startswith(b"[")
                    what = f"is not JSON ({error.msg}, column {error.colno})"
                    return None if listed else (f"line {at}", what)
                except (ValueError, RecursionError):
                    return None
    return None


def run_query(query: str) -> pl.DataFrame:
    """Run a query within limits of memory and time."""
    import duckdb

    with duckdb.connect(config=BOUNDS) as connection:
        timer = Timer(MOST_SECONDS, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return fetch(connection, query)
        finally:
            timer.cancel()


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def file_literal(path: Path) -> str:
    """Return a path as an SQL literal that DuckDB does not take for a pattern."""
    return literal(as_pattern(path))
