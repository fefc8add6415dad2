"""Bounded readers of text files: strict UTF-8, size limits, no coercion, all problems listed."""

import csv
import gzip
import json
import re
import reprlib
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, NamedTuple, NoReturn, ParamSpec, TypeVar

from tasks.kit.printable import is_binary, joined_few, renamed
from tasks.validation.unknown_names import no_such_file

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_TEXT = 100_000
"""Maximum number of characters of a text."""
MAX_LINE = 10_000_000
"""Maximum size of a row in bytes: eight texts of maximum length with every character escaped."""
MAX_FILE = 256_000_000
"""Maximum size of a file in bytes; all of it is held in memory."""
MAX_ROWS = 1_000_000
"""Maximum number of lines of a file."""
SEPARATORS = (",", ";", "\t")
"""What may separate the columns of a CSV file."""
LONGEST_HEADER = 100_000
SHOWN = 5
"""Maximum number of problems in a message."""
ENOUGH = 100
"""Number of problems after which reading stops."""
BOM = b"\xef\xbb\xbf"
GZIP_START, GZIP_SUFFIXES = b"\x1f\x8b", {".gz", ".gzip"}
EXPORT_AGAIN = "Copy or export it again."
MOST_GZIP_RATIO = 100
"""Maximum size of a large file over its size compressed; JSON shrinks to a tenth or less."""
P = ParamSpec("P")
R = TypeVar("R")
SURROGATE = re.compile("[\ud800-\udfff]")
TYPES = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
SPLIT = "Split it into several files."
RESAVE = "Save it as UTF-8 (in Excel as CSV UTF-8) and try again."
SHORTEN = "Shorten the text or leave the question out."
QUOTES = "Quote texts with double quotes and double the quotes inside them."
UNCLOSED = "a double quote that opens here is never closed"
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


class FileLimits(NamedTuple):
    """Maximum size of a file."""

    size: int = MAX_FILE
    """Maximum size in bytes."""
    rows: int = MAX_ROWS
    """Maximum number of lines."""
    todo: str = SPLIT
    """Next step for a file that is too large."""


LIMITS = FileLimits()
OF_LOGS = FileLimits(size=8 << 30, rows=20_000_000)
"""Limits of logs and of votes, which may be far longer than questions."""


class FileRow(NamedTuple):
    """One row of a file: its place and its fields."""

    where: str
    fields: dict[str, Any]


class Table(NamedTuple):
    """A file being read: its columns (None if each row has its own), and its rows."""

    columns: list[str] | None
    rows: Iterator[FileRow]


class Fault(NamedTuple):
    """What is wrong with a value and what to do about it."""

    what: str
    todo: str


class Problems:
    """Problems of one file, raised as one error; ``hint`` is the last sentence of the message."""

    def __init__(self, file: str, hint: str = "", limits: FileLimits = LIMITS) -> None:
        self.file = file
        self.limits = limits
        self._hint = f" {hint}" if hint else ""
        self._places: dict[tuple[str, str], list[str]] = {}
        """Places of each problem, by problem and next step."""
        self._count = 0

    @property
    def full(self) -> bool:
        """Whether there are so many problems that reading can stop."""
        return self._count >= ENOUGH

    def add(self, where: str, what: str, todo: str) -> None:
        """Add a problem: its place, what is wrong, and the next step."""
        self._count += 1
        self._places.setdefault((what, todo), []).append(where)

    def check(self) -> None:
        """Raise an error if there are problems.

        A ValueError gives the first problems; a problem that several lines share is listed once.
        """
        if self._count:
            raise self._error()

    def refuse(self, where: str, what: str, todo: str) -> NoReturn:
        """Add a problem, and raise a ValueError with the first problems of the file."""
        self.add(where, what, todo)
        raise self._error()

    def _error(self) -> ValueError:
        lines = [self._line(*problem) for problem in list(self._places)[:SHOWN]]
        if len(self._places) == 1:
            return ValueError(lines[0] + self._hint)
        number = f"{ENOUGH} or more" if self.full else self._count
        first = f" The first {SHOWN}:" if len(self._places) > SHOWN else ""
        listed = "\n  ".join(lines)
        return ValueError(f"{self.file} has {number} problems.{first}\n  {listed}{self._hint}")

    def _line(self, what: str, todo: str) -> str:
        where = joined_few(self._places[what, todo], 1)
        place = f"{self.file}, {where}:" if where else self.file
        # Most problems of a whole file continue the sentence.
        place += "" if where or what.startswith(("is ", "has ")) else ":"
        return f"{place} {what if what.endswith('?') else what.rstrip('.') + '.'} {todo}"


def clip(value: object) -> str:
    """Return a short, printable form of ``value``."""
    return _short.repr(value)


def text_fault(value: object, limit: int = MAX_TEXT) -> Fault | None:
    """Return why ``value`` is not a text that a judge can be shown; None if it is."""
    if not isinstance(value, str):
        kind = TYPES.get(type(value), type(value).__name__)
        return Fault(f"is {clip(value)}, which is {kind}; it must be text", "Write it as text.")
    if len(value) > limit:
        return Fault(
            f"is {clip(value)} of {len(value)} characters; at most {limit} are allowed", SHORTEN
        )
    if "\0" in value:
        place = value.index("\0") + 1
        return Fault(
            f"is {clip(value)} with a NUL character at position {place}; none is allowed",
            "Remove it.",
        )
    if found := SURROGATE.search(value):
        return Fault(
            f"is {clip(value)} with an unpaired surrogate (U+{ord(found[0]):04X}) at position "
            f"{found.start() + 1}; only complete characters are allowed",
            "Remove it or write the complete character.",
        )
    if not value.strip():
        return Fault(f"is {clip(value)}; it must not be empty", "Write the text.")
    return None


Reader = Callable[[Path, Problems], Table]


def open_table(path: Path, problems: Problems, readers: Mapping[str, Reader]) -> Table:
    """Open a file with the reader of its suffix.

    Raise ValueError if it is no file, of an unknown kind, empty or too large.
    """
    reader = readers[known_suffix(path, problems, readers)]
    if reader in (csv_table, json_lines):
        with path.open("rb") as file:
            require_text(file.read(LONGEST_HEADER), problems)
    return reader(path, problems)


def require_text(start: bytes, problems: Problems) -> None:
    """Refuse a file that begins with ``start`` if it is binary."""
    if is_binary(start):
        what = "is not text, and no file in a known format (`voirdire list formats`)"
        problems.refuse("", what, "Name a log, or a table in CSV, JSON Lines or Parquet.")


def known_suffix(path: Path, problems: Problems, suffixes: Collection[str]) -> str:
    """Return the suffix of a file that can be read, in lower case."""
    suffix = path.suffix.lower()
    if suffix not in suffixes and not path.is_dir():
        what = f"the file type {suffix!r} is not supported; allowed are {', '.join(suffixes)}"
        problems.refuse("", what, "Convert the file or correct its name.")
    existing_file(path, problems)
    return suffix


def existing_file(path: Path, problems: Problems) -> Path:
    """Return ``path`` if it is a file of a size that can be read."""
    if path.is_dir():
        problems.refuse("", "is a folder, not a file", "Give the path of a file in it.")
    if not path.is_file():
        problems.refuse("", *no_such_file(path, problems.file))
    if (size := path.stat().st_size) == 0:
        problems.refuse("", "is empty", "Write at least one row.")
    if size > (limits := problems.limits).size:
        problems.refuse("", f"has {size} bytes; at most {limits.size} are allowed", limits.todo)
    return path


def reads_gzip(
    limits: FileLimits = LIMITS,
) -> Callable[[Callable[Concatenate[Path, P], R]], Callable[Concatenate[Path, P], R]]:
    """Let a reader of a file also read one that is compressed with gzip, within these limits."""

    def decorated(read: Callable[Concatenate[Path, P], R]) -> Callable[Concatenate[Path, P], R]:
        @wraps(read)
        def unpacking(path: Path, /, *args: P.args, **more: P.kwargs) -> R:
            with unpacked(path, Problems(path.name, limits=limits)) as file:
                return read(file, *args, **more)

        return unpacking

    return decorated


@contextmanager
def unpacked(path: Path, problems: Problems) -> Iterator[Path]:
    """Yield the file, or while this lasts a copy of it that is not compressed (``votes.csv``)."""
    if not path.is_file() or not _is_gzip(path):
        yield path
        return
    name = without_gz(existing_file(path, problems)).name
    with TemporaryDirectory() as folder, renamed(name, path.name):
        file, size = Path(folder) / name, 0
        most = min(problems.limits.size, max(MAX_FILE, MOST_GZIP_RATIO * path.stat().st_size))
        try:
            with gzip.open(path) as packed, file.open("wb") as to:
                while part := packed.read(1 << 20):
                    size += len(part)
                    if size > most:
                        what = f"unpacks to more than {most} bytes, the maximum"
                        problems.refuse("", what, problems.limits.todo)
                    to.write(part)
        except EOFError:
            problems.refuse("", "is gzip that is cut off: its end is missing", EXPORT_AGAIN)
        except (OSError, zlib.error) as error:
            problems.refuse("", f"is damaged gzip ({error!s:.200})", EXPORT_AGAIN)
        yield file


def without_gz(path: Path) -> Path:
    """Return the path of a file without the suffix of gzip."""
    return path.with_suffix("") if path.suffix.lower() in GZIP_SUFFIXES else path


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(GZIP_START)) == GZIP_START


def json_lines(path: Path, problems: Problems) -> Table:
    """Open a JSON Lines file with one object per line."""
    return Table(None, _json_rows(path, problems))


def _json_rows(path: Path, problems: Problems) -> Iterator[FileRow]:
    for number, line in _lines(path, problems):
        if line.strip():
            fields = _json_object(line, f"line {number}", problems)
            if fields is not None:
                yield FileRow(f"line {number}", fields)


def _json_object(line: str, where: str, problems: Problems) -> dict[str, Any] | None:
    try:
        value = json.loads(line, object_pairs_hook=_unique_fields, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        # The parser's line number is always 1.
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg} at character {error.pos + 1}"
        what = f"{clip(line.strip())} is not JSON ({reason})"
        problems.add(where, what, "Write one complete JSON object on each line.")
        return None
    if not isinstance(value, dict):
        kind = TYPES.get(type(value), "text")
        what = f"{clip(value)} is {kind}; it must be an object"
        problems.add(where, what, 'Write {"field": "text"}.')
        return None
    return value


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"field {clip(repeated)} occurs twice")
    return fields


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def separator_of(start: bytes) -> str:
    """Return what separates the columns of a CSV file, given its first line or more.

    Spreadsheets write semicolons where numbers have a decimal comma.
    """
    header = start.removeprefix(BOM).splitlines()[:1]
    line = header[0][:LONGEST_HEADER].decode("utf-8", "replace") if header else ""
    return max(SEPARATORS, key=lambda mark: len(next(csv.reader([line], delimiter=mark), [])))


def csv_table(path: Path, problems: Problems) -> Table:
    """Open a CSV file with a header; an empty cell is a missing value."""
    with path.open("rb") as file:
        delimiter = separator_of(file.readline(MAX_LINE))
    source = _Lines(path, problems)
    reader = csv.reader(source, strict=True, delimiter=delimiter)
    header = next(_records(reader, source, problems), (0, []))[1]
    return Table(header, _csv_rows(header, _records(reader, source, problems), problems))


def _csv_rows(
    header: list[str], records: Iterator[tuple[int, list[str]]], problems: Problems
) -> Iterator[FileRow]:
    for number, cells in records:
        if len(cells) != len(header):
            problems.add(
                f"line {number}",
                f"has {len(cells)} cells {clip(cells)}; the header has {len(header)}",
                "Put texts with commas, quotes or line breaks in double quotes.",
            )
        else:
            filled = zip(header, cells, strict=True)
            yield FileRow(f"line {number}", {key: cell for key, cell in filled if cell})


def _records(reader: Any, source: "_Lines", problems: Problems) -> Iterator[tuple[int, list[str]]]:
    while True:
        number = reader.line_num + 1
        source.record = 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault, todo = str(error), QUOTES
            if fault == "unexpected end of data":
                fault = UNCLOSED
            elif fault.startswith("field larger than field limit"):
                most = f"a cell has more than {csv.field_size_limit()} characters"
                fault = f"{most}, unless a double quote that opens here is never closed"
                todo = "Shorten it, close the quote, or write JSON Lines or Parquet."
            problems.add(f"line {number}", f"is not CSV ({fault})", todo)
            return
        if cells:
            yield number, cells


def repeated_columns(columns: list[str], problems: Problems) -> None:
    """Report columns of a header that occur more than once."""
    for column in [name for name, many in Counter(columns).items() if many > 1][:SHOWN]:
        what = f"column {clip(column)} occurs more than once"
        problems.add("header", what, "Rename or remove one of them.")


class _Lines:
    """Lines of a file for the CSV parser; a record longer than a row may be is an error."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self._lines = _lines(path, problems)
        self.record = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)[1]
        self.record += len(line)
        if self.record > MAX_LINE:
            raise csv.Error(f"one row has more than {MAX_LINE} characters")
        return line


def _lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        if file.read(len(BOM)) != BOM:
            file.seek(0)
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            text = _decode(line, number, problems)
            if text is None or problems.full:
                return
            yield number, text


def not_utf8(line: bytes, error: UnicodeDecodeError) -> str:
    """Say which byte of a line is not UTF-8."""
    return f"byte 0x{line[error.start]:02x} at position {error.start + 1} is not UTF-8"


def _decode(line: bytes, number: int, problems: Problems) -> str | None:
    where = f"line {number}"
    if number > problems.limits.rows:
        what = f"the file has more than {problems.limits.rows} lines, the maximum"
        problems.add(where, what, problems.limits.todo)
        return None
    if len(line) > MAX_LINE:
        start = clip(line[:200].decode("utf-8", "replace"))
        problems.add(where, f"{start} has more than {MAX_LINE} bytes, the maximum", SHORTEN)
        return None
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.add(where, not_utf8(line, error), RESAVE)
        return None


def line_fault(value: str) -> Fault | None:
    """Return what keeps a text from being a name on one line; None if nothing does."""
    if value == value.strip() and not CONTROL.search(value):
        return None
    what = f"is {clip(value)}; it must be one line without leading or trailing spaces"
    return Fault(what, "Remove line breaks, control characters, and leading and trailing spaces.")


def with_columns(table: Table) -> tuple[Table, list[str]]:
    """Return a table and its columns; in JSON, the fields that some row has."""
    if table.columns is not None:
        return table, table.columns
    rows = list(table.rows)
    return Table(None, iter(rows)), list(dict.fromkeys(name for row in rows for name in row.fields))
