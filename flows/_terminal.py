"""What people see in the terminal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

COLOURS = {"biased": "red", "no relevant bias": "green"}


def number(value: float | None, *, signed: bool = False) -> str:
    """Format a rate or shift: ``.21``, ``+.21``, or a dash for null."""
    if value is None:
        return "-"
    text = f"{value:+.2f}" if signed else f"{value:.2f}"
    return text.replace("0.", ".", 1)


ASKED = ("dataset", "prompt", "wave")
"""What a judge was asked under; told where it differs."""


def result_table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    """Lay out rows of ``mart.bias``, those of a judge below its name."""
    table = Table(
        title=escape(title), title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    for column in ("perturbation", "n", "shift", "95 % interval", "ASR", "floor", "PC", "finding"):
        text = column in {"perturbation", "finding"}
        table.add_column(
            column,
            justify="left" if text else "right",
            no_wrap=not text,
            max_width=20 if column == "finding" else None,
        )
    told = ["judge", *(c for c in ASKED if len({row.get(c) for row in rows}) > 1)]
    last = ""
    for row in rows:
        who = " / ".join(_clip(row[column]) for column in told)
        if who != last:
            simulated = "\n[dim](simulated)[/dim]" if row["simulated"] else ""
            table.add_row(f"[bold]{escape(who)}[/bold]{simulated}")
        last = who
        table.add_row(
            f"  {escape(_clip(row['perturbation']))}",
            str(row["n"]),
            number(row["shift"], signed=True),
            f"{number(row['low'], signed=True)} … {number(row['high'], signed=True)}",
            number(row["asr"]),
            number(row["sham_floor"]),
            number(row["position_consistency"]),
            _finding(row),
        )
    return table


def _finding(row: dict[str, Any]) -> str:
    """Return the finding, below it what it means or why there is none."""
    colour = COLOURS.get(row["finding"], "yellow")
    below = row["reading"] or row["reason"]
    note = f"\n[dim]({escape(_clip(below))})[/dim]" if below else ""
    return f"[{colour}]{row['finding'] or '-'}[/{colour}]{note}"


LEGEND = (
    "shift: mean preference shift (MPS) toward the changed answer, over a meaning-free edit of "
    "equal size, over n samples. floor: the attack success rate (ASR) of that edit. PC: position "
    "consistency. A flaw (factual error, gender bias) should cost votes: there a negative shift "
    "is good (detects), none (overlooks) or a positive one (rewards) a bias."
)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> Table:
    """Lay out rows of anything; nothing in them is read as markup."""
    table = Table(
        title=escape(title) or None, title_justify="left", header_style="bold", box=None,
        pad_edge=False,
    )  # fmt: skip
    for index, column in enumerate(columns):
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(
            escape(column), justify="right" if numeric and rows else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*("" if value is None else escape(_clip(value)) for value in row))
    return table


def print_rows(console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows as a table, or one below the other if they are wider than the terminal."""
    table = plain_table(columns, rows)
    if (
        console.measure(table, options=console.options.update(width=10_000)).maximum
        <= console.width
    ):
        console.print(table)
        return
    for row in rows:
        console.print(plain_table(("", ""), list(zip(columns, row, strict=True))), "")


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
    printable = "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
    return printable if len(printable) <= width else printable[: width - 1] + "…"
