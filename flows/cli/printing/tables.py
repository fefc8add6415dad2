"""Tables on the terminal: columns folded to fit or, where it is too narrow, rows as lines."""

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import polars as pl
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from flows.cli.printing.live import filled
from tasks.kit.command_line import with_warehouse
from tasks.kit.printable import printable, thousands, wrapped

WHOLE = ("judge", "perturbation", "wave", "subgroup")
"""Columns of names, which are folded only if folding other columns does not suffice."""

FIGURES = ("estimate", "p", "p adj.")
"""Columns of numbers that are already formatted as text."""

NARROWEST = {"name": 12, "text": 10}
WIDEST = 14
MOST_LINES = 6
"""Minimum width of a column (at most WIDEST for its longest word) and maximum height of a cell.

Beyond them rows become lists."""

PARTS = re.compile(r"(?<=[^\W_][_/-])(?=[^\W_])")
"""Where a word may be broken: not after the minus of a number."""
INTERVAL = re.compile(r"\[[^\s\[\],]+, [^\s\[\],]+\]\S*")
PLAIN_WORD = re.compile(r"\S+")
WORD = re.compile(rf"{INTERVAL.pattern}|{PLAIN_WORD.pattern}")
"""What stays on a line if there is room: an interval, though it has a space, and other words."""
NO_BREAK = "\N{NO-BREAK SPACE}"

GAPS = (2, 1)
FEWER = 2


def bare_table(title: str) -> Table:
    """Return a table without lines, columns and rows."""
    head = escape(printable(title)) or None
    return Table(title=head, title_justify="left", header_style="bold", box=None, pad_edge=False)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> Table:
    """Lay out rows as a table, without interpreting markup in them."""
    table = bare_table(title)
    for index, column in enumerate(columns):
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(
            escape(clipped(column)),
            justify="right" if (numeric and rows) or column in FIGURES else "left",
            overflow="fold",
            no_wrap=column in WHOLE,
        )
    for row in rows:
        table.add_row(*(escape(shown(value)) for value in row))
    return table


class Exact(int):
    """A whole number of a query, which may be an identifier or a year: written without groups."""


def as_queried(rows: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of a query, whose numbers are written as CSV has them."""
    return [
        tuple(Exact(value) if type(value) is int else value for value in row) for row in rows.rows()
    ]


def shown(value: Any) -> str:
    """Return a value of a table as text: counts in groups of three digits; null is empty."""
    if type(value) is int:
        return thousands(value)
    return "" if value is None else clipped(value)


def print_rows(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = ""
) -> None:
    """Print rows as a table, folding texts to fit the terminal; if too wide, one list per row."""
    # Rather a smaller gap than a broken interval, and rather either than a name in two lines.
    ways = [*product((WORD, PLAIN_WORD), GAPS)]
    for word, gap in ways:
        widths = _widths(columns, rows, console.width - gap * (len(columns) - 1), word)
        if widths and ((word, gap) == ways[-1] or not _cut(columns, rows, widths)):
            folded = [list(map(_folded, row, widths)) for row in rows]
            table = plain_table(columns, folded, title)
            table.padding = (0, gap, 0, 0)
            for column, width in zip(table.columns, widths, strict=True):
                column.width, column.no_wrap, column.overflow = width, False, "fold"
                column.header = _folded(str(column.header), width)
            console.print(table)
            return
    for number_of, row in enumerate(rows):
        # A cell without anything to say has no line; null is a value of a query.
        filled_cells = [each for each in zip(columns, row, strict=True) if each[1] != ""]
        table = plain_table(("", ""), filled_cells, "" if number_of else title)
        table.show_header = False
        console.print(*[""] * (number_of > 0), table, sep="\n")


def leading(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> int:
    """Return how many of the first columns fit side by side, folded where needed.

    Rather two columns fewer than a name in two lines.
    """
    most = whole = 0
    for number_of in range(1, len(columns) + 1):
        widths = _widths(columns[:number_of], rows, width - GAPS[-1] * (number_of - 1))
        if not widths:
            break
        most = number_of
        if not _cut(columns[:number_of], rows, widths):
            whole = number_of
    return whole if most - whole <= FEWER else most


def fits(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> bool:
    """Tell whether rows fit without folding."""
    full = [
        max(map(cell_len, [column, *(part for row in rows for part in _lines(row[index]))]))
        for index, column in enumerate(columns)
    ]
    return sum(full) + GAPS[0] * (len(full) - 1) <= width


def fits_folded(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> bool:
    """Tell whether rows fit side by side, folded where needed."""
    return _widths(columns, rows, width - GAPS[-1] * (len(columns) - 1)) is not None


def _lines(value: Any) -> list[str]:
    return shown(value).split("\n")


def _folded(value: Any, width: int) -> Any:
    """Break a text at spaces, but not in an interval, and wide words after ``_``, ``/``, ``-``."""
    if not isinstance(value, str):
        return value
    broken = WORD.sub(lambda word: _broken(word[0], width), value)
    if not INTERVAL.search(broken):
        return broken
    glued = INTERVAL.sub(lambda found: found[0].replace(" ", NO_BREAK), broken)
    return wrapped(glued, width).replace(NO_BREAK, " ")


def _broken(word: str, width: int) -> str:
    if cell_len(word) <= width:
        return word
    lines = [""]
    for part in PARTS.split(word):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _longest(text: str, word: re.Pattern[str] = PLAIN_WORD) -> int:
    """Return the width of the longest part of a text that is not broken."""
    parts = (part for each in word.findall(text) for part in _broken(each, 0).split("\n"))
    return max(map(cell_len, parts), default=0)


def _widths(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    room: int,
    word: re.Pattern[str] = PLAIN_WORD,
) -> list[int] | None:
    """Divide the width among columns; None if they do not fit even when folded between words."""
    inside, full, least = [], [], []
    for index, column in enumerate(columns):
        content = max((cell_len(part) for row in rows for part in _lines(row[index])), default=0)
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        floor = NARROWEST["name" if column in WHOLE or column.endswith("finding") else "text"]
        words = min(max((_longest(shown(row[index]), word) for row in rows), default=0), WIDEST)
        needed = content if numeric else max(min(content, floor), -(-content // MOST_LINES), words)
        least.append(max(needed, min(_longest(column), WIDEST)))
        inside.append(max(content, least[-1]))
        full.append(max(content, cell_len(column)))
    if sum(least) > room:
        return None
    names = [index for index, column in enumerate(columns) if column in WHOLE]
    for some, most in (
        (names, inside),
        (range(len(columns)), inside),
        (names, full),
        (range(len(columns)), full),
    ):
        while sum(least) < room and any(least[index] < most[index] for index in some):
            for index in some:
                least[index] += least[index] < most[index] and sum(least) < room
    return least


def _cut(columns: Sequence[str], rows: Sequence[Sequence[Any]], widths: Sequence[int]) -> bool:
    """Tell whether a name is folded in columns of these widths."""
    return any(
        cell_len(part) > width
        for index, (column, width) in enumerate(zip(columns, widths, strict=True))
        if column in WHOLE
        for row in rows
        for part in _lines(row[index])
    )


LARGE, EXACT = 1e3, 1e15
"""From here on, a number has more than three digits before the point; and more than are exact."""


def clipped(value: Any, width: int = 800) -> str:
    """Return a value as text of bounded length, control characters replaced."""
    shown = printable(_plain_number(value) if isinstance(value, float) else str(value))
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def _plain_number(value: float) -> str:
    """Write a number with four digits or, beyond 1000, with two after the point."""
    if LARGE <= abs(value) < EXACT:
        return f"{value:.2f}".rstrip("0").rstrip(".")
    # Adding 0 drops the minus of a zero.
    return f"{value + 0.0:.4g}"


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a text, broken at spaces to fit the terminal, without interpreting markup in it.

    Control characters are replaced.
    """
    lines = wrapped(printable(with_warehouse(text)), console.width)
    console.print(lines, style=style, markup=False, soft_wrap=True)


class RowLines(NamedTuple):
    """A row of a table as lines, in markup."""

    who: str
    """Whom the row is about; a line of its own, but not again in the next row."""
    head: str
    parts: Sequence[str]
    """What follows the heading: on the same line if everything fits there."""


def as_lines(rows: Iterable[RowLines], width: int, title: str = "") -> RenderableType:
    """Lay out rows as lines: whom they are about, headings indented, parts indented further."""
    lines: list[RenderableType] = [Text(title, style="italic")] if title else []
    last = ""
    for row in rows:
        if row.who != last and row.who:
            lines.append(Text.from_markup(row.who))
        last = row.who or last
        whole = ", ".join([row.head, *row.parts])
        below = [] if _width(whole) <= width - 2 else filled(row.parts, width - 4, _width)
        lines.append(_indented(row.head if below else whole, 2))
        lines += [_indented(line, 4) for line in below]
    return Group(*lines)


def table_or_lines(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    lines: Iterable[RowLines],
    title: str = "",
) -> RenderableType:
    """Lay out rows as a table or, if the terminal is too narrow to show it unfolded, as lines."""
    if fits(columns, rows, console.width):
        return plain_table(columns, rows, title)
    return as_lines(lines, console.width, title)


def _indented(text: str, indent: int) -> Padding:
    return Padding(Text.from_markup(text), (0, 0, 0, indent), expand=False)


def _width(text: str) -> int:
    return Text.from_markup(text).cell_len
