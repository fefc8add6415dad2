"""Terminal output: tables, lines and progress bars."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from tasks.conclusions.position_bias import EFFECT, GAP, POSITION
from tasks.kit.printable import printable
from tasks.reporting.summary import detected, favoured
from tasks.reporting.wording import listing, p_value

COLOURS = {
    **dict.fromkeys(("biased", "overlooks", "rewards"), "red"),
    **dict.fromkeys(("no relevant bias", "detects"), "green"),
}


def number(value: float | None, *, signed: bool = False) -> str:
    """Format a rate or shift: ``.21``, ``+.21``, or a dash for null."""
    if value is None:
        return "-"
    value = round(value, 2) + 0.0  # no minus before a zero
    # Nor a plus: which side of 0 it is on is beyond these digits.
    text = f"{value:+.2f}" if signed and value else f"{value:.2f}"
    return text.replace("0.", ".", 1)


PLAIN = str.maketrans({"\N{NO-BREAK SPACE}": " ", "\N{MINUS SIGN}": "-"})
SHIFTS = ("shift", "over control", "sham")
"""Columns of numbers that have a sign."""

ASKED = ("dataset", "prompt", "wave")
"""What a judge was asked under; told where it differs."""

RATES = {
    "shift": ("shift", "low", "high"),
    "over control": ("control", "control_low", "control_high"),
    "sham": ("sham_shift", "sham_shift_low", "sham_shift_high"),
    "ASR": ("asr", "asr_low", "asr_high"),
    "floor": ("sham_floor", "sham_floor_low", "sham_floor_high"),
    "PC": ("position_consistency", "position_consistency_low", "position_consistency_high"),
}
"""Name in the table -> columns of ``mart.bias``: a number and the ends of its 95 % interval."""


def result_table(rows: Sequence[dict[str, Any]], title: str, console: Console) -> RenderableType:
    """Lay out rows of ``mart.bias``, those of a judge below its name, each rate with its interval.

    An interval stands beside its number if the terminal is wide enough, else below it; where even
    that does not fit, each row of the mart has lines of its own.
    """
    wide = console.options.update(width=10_000)
    for between in (" ", "\n"):
        table = _result_table(rows, title, between)
        if console.measure(table, options=wide).maximum <= console.width:
            return table
    return Group(*_result_lines(rows, title, console.width))


def _rates(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the rates to show: without shams there is no shift of theirs."""
    shammed = any(row["sham_shift"] is not None for row in rows)
    return [name for name in RATES if shammed or name != "sham"]


def _result_table(rows: Sequence[dict[str, Any]], title: str, between: str) -> Table:
    table = Table(
        title=escape(title), title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    rates = _rates(rows)
    for column in ("perturbation", "n", *rates, "finding"):
        text = column in {"perturbation", "finding"}
        table.add_column(
            column,
            justify="left" if text else "right",
            no_wrap=not text,
            max_width=20 if column == "finding" else 40 if text else None,
        )
    for row, who in _with_names(rows, "\n"):
        if who:
            table.add_row(who)
        table.add_row(
            f"  {escape(_name(row))}",
            _shown(row["n"]) or "-",
            *(_bounded(row, name, between) for name in rates),
            _finding(row, "\n"),
        )
    return table


def _result_lines(
    rows: Sequence[dict[str, Any]], title: str, width: int
) -> Iterator[RenderableType]:
    yield Text(title, style="italic")
    for row, who in _with_names(rows, " "):
        if who:
            yield Text.from_markup(who)
        told = [f"{name} {_bounded(row, name, ' ')}" for name in _rates(rows)]
        name, size = escape(_name(row)), _shown(row["n"]) or "-"
        head = f"{name}, n {size}: {_finding(row, ' ')}"
        yield Padding(Text.from_markup(head), (0, 0, 0, 2), expand=False)
        for line in _filled(told, width - 4):
            yield Padding(Text.from_markup(line), (0, 0, 0, 4), expand=False)


def _filled(parts: Sequence[str], width: int) -> list[str]:
    """Put parts beside each other on as few lines as hold them unbroken."""
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]}, {part}"
        if Text.from_markup(longer).cell_len <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _name(row: dict[str, Any]) -> str:
    """Return what a row is about: a perturbation, or the position of answers."""
    return _clip(POSITION if row["perturbation"] is None else row["perturbation"])


def lost_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say of rows of ``mart.bias`` which lose other shares of votes for the perturbed answer."""
    for row in rows:
        if row["lost_finding"] is None:
            continue
        names = [*(_clip(row[column]) for column in _telling(rows)), _name(row)]
        apart = row["lost_difference"]
        bounds = ""
        if row["asr_at_least"] is not None:
            ends = (number(row[end]) for end in ("asr_at_least", "asr_at_most"))
            bounds = (
                "; whatever the unreadable votes would have said, the ASR of complete votes lies "
                f"within [{', '.join(ends)}]"
            )
        yield (
            f"Verdicts lost: {' / '.join(names)}: {number(abs(apart))} "
            f"{'more' if apart > 0 else 'fewer'} of the votes on the perturbed answer cannot be "
            f"read than on the {row['lost_over']} (p {p_value(row['lost_p'])}){bounds}."
        )


def _telling(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the judge, and what of its cell differs within the rows."""
    return ["judge", *(c for c in ASKED if len({row.get(c) for row in rows}) > 1)]


def _with_names(
    rows: Sequence[dict[str, Any]], between: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each row with who was asked, if that is another one than before."""
    told = _telling(rows)
    last = ""
    for row in rows:
        who = " / ".join(_clip(row[column]) for column in told)
        simulated = f"{between}[dim](simulated)[/dim]" if row["simulated"] else ""
        yield row, f"[bold]{escape(who)}[/bold]{simulated}" if who != last else ""
        last = who


def _bounded(row: dict[str, Any], name: str, between: str) -> str:
    """Write a number and its 95 % interval."""
    column, *ends = RATES[name]
    low, high = (row[end] for end in ends)
    text = number(row[column], signed=name in SHIFTS)
    if low is None or high is None:
        return text
    told = ", ".join(number(end, signed=name in SHIFTS) for end in (low, high))
    return f"{text}{between}[dim]\\[{told}][/dim]"


def _finding(row: dict[str, Any], between: str) -> str:
    """Return the finding, and what it means, what it rests on or why there is none."""
    colour = COLOURS.get(row["finding"], "yellow")
    share = detected(row).translate(PLAIN)
    below = "; ".join(filter(None, (favoured(row), share, row["reason"])))
    note = f"{between}[dim]({escape(_clip(below))})[/dim]" if below else ""
    return f"[{colour}]{row['finding'] or '-'}[/{colour}]{note}"


WHOLE = ("judge", "perturbation", "wave", "subgroup", "finding")
"""Columns of names, which are broken over lines last."""

FIGURES = ("estimate", "p", "p adj.")
"""Columns of numbers that are written out already."""

NARROWEST = {"name": 12, "text": 10}
MOST_LINES = 6
"""How narrow a column of texts gets, and how tall a cell, before rows stand one below the other."""

GAPS = (2, 1)

SHAM = "a meaning-free edit of equal size (sham)"
OVER = {
    (True, False): f"over {SHAM}",
    (False, True): "over the control",
    (True, True): f"over {SHAM}, or over the control where a judge has no shams or too few",
}
"""Whether shifts are over the sham, and whether over the control -> what they are over."""


def legend(rows: Sequence[dict[str, Any]]) -> str:
    """Explain the table of rows of ``mart.bias``; what a shift is over goes by their statistics."""
    sham = any(row["statistic"] == "mps_sham" for row in rows)
    over = OVER[sham, not sham or any(row["statistic"] == "mps" for row in rows)]
    floor = any(row["sham_floor"] is not None for row in rows)
    moved = ", and that of the sham itself" if "sham" in _rates(rows) else ""
    edit = f"{'the sham' if sham else SHAM}{'' if floor else ' (none here)'}"
    flaws = listing(sorted({_clip(r["perturbation"]) for r in rows if r["kind"] == "detract"}))
    return (
        (
            "Brackets: 95 % intervals. shift: mean preference shift (MPS) toward the changed "
            f"answer, {over}, in n samples; beside it that over the control{moved}. floor: the "
            f"attack success rate (ASR) of {edit}. PC: position consistency."
        )
        + (
            f" A flaw ({flaws}) should cost votes: DP is the share of flaws that is detected (1 "
            "less ASR over floor; D, the same of mean scores)."
            if flaws
            else ""
        )
        + _position_legend(rows)
    )


def _position_legend(rows: Sequence[dict[str, Any]]) -> str:
    if not any(row["kind"] == POSITION for row in rows):
        return ""
    shown = {row["statistic"] for row in rows if row["kind"] == POSITION}
    gap = "how far the share of first picks in n votes for a slot is from one half"
    alone = "where each pair was seen in one order, " if GAP in shown else ""
    effect = f"{alone}the pull of the first slot in logits"
    told = [text for statistic, text in ((GAP, gap), (EFFECT, effect)) if statistic in shown]
    return f" position, of unperturbed pairs: as the shift, {'; '.join(told)}."


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> Table:
    """Lay out rows of anything; nothing in them is read as markup."""
    table = Table(
        title=escape(title) or None,
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
    )
    for index, column in enumerate(columns):
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(
            escape(column),
            justify="right" if (numeric and rows) or column in FIGURES else "left",
            overflow="fold",
            no_wrap=column in WHOLE,
        )
    for row in rows:
        table.add_row(*(escape(_shown(value)) for value in row))
    return table


def _shown(value: Any) -> str:
    return "" if value is None else _clip(value)


def print_rows(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = ""
) -> None:
    """Print rows as a table, its texts folded as far as the terminal needs.

    Where even that is too wide, rows stand one below the other.
    """
    for gap in GAPS:
        widths = _widths(columns, rows, console.width - gap * (len(columns) - 1))
        if widths:
            table = plain_table(columns, rows, title)
            table.padding = (0, gap, 0, 0)
            for column, width in zip(table.columns, widths, strict=True):
                column.width, column.no_wrap, column.overflow = width, False, "fold"
                column.header = _header(str(column.header), width)
            console.print(table)
            return
    for number_of, row in enumerate(rows):
        told = title if number_of == 0 else ""
        console.print(plain_table(("", ""), list(zip(columns, row, strict=True)), told), "")


def fits(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> bool:
    """Tell whether rows fit without a fold."""
    full = [
        max(map(cell_len, [column, *(part for row in rows for part in _lines(row[index]))]))
        for index, column in enumerate(columns)
    ]
    return sum(full) + GAPS[0] * (len(full) - 1) <= width


def _lines(value: Any) -> list[str]:
    return _shown(value).split("\n")


def _header(name: str, width: int) -> str:
    """Break a name that is too wide after its spaces and underlines."""
    lines = [""]
    for part in re.findall(r"[^_ ]*[_ ]?", name):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[Any]], room: int) -> list[int] | None:
    """Share out the room among columns; None if they cannot be folded that far."""
    inside, full, least = [], [], []
    for index, column in enumerate(columns):
        content = max((cell_len(part) for row in rows for part in _lines(row[index])), default=0)
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        floor = NARROWEST["name" if column in WHOLE else "text"]
        needed = content if numeric else max(min(content, floor), -(-content // MOST_LINES))
        word = max(map(cell_len, _header(column, 0).split("\n")))
        least.append(max(needed, min(word, NARROWEST["name"])))
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


@contextmanager
def ballot_bars(console: Console) -> Iterator[Any]:
    """Show a bar per judge; yields the listener that moves them."""
    bars: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:

        def listen(judge: str, done: int, planned: int) -> None:
            if judge not in bars:
                bars[judge] = progress.add_task(escape(judge), total=planned)
            progress.update(bars[judge], completed=done)

        yield listen


def _clip(value: Any, width: int = 200) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    shown = printable(text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def echo_data(text: str) -> None:
    """Print data; on a terminal without control characters, which could command it."""
    # Click drops colours on the way to a file, and so would change the data.
    click.echo(printable(text) if sys.stdout.isatty() else text, nl=False, color=True)


def say(text: str, *, err: bool = False) -> None:
    """Print a line that may hold names and words from outside, without control characters."""
    click.echo(printable(text), err=err)
