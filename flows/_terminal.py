"""What people see in the terminal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

COLOURS = {
    "biased": "red", "rewards": "red", "overlooks": "red",
    "no relevant bias": "green", "detects": "green",
}  # fmt: skip


def number(value: float | None, *, signed: bool = False) -> str:
    """Format a rate or shift: ``.21``, ``+.21``, or a dash for null."""
    if value is None:
        return "-"
    text = f"{value:+.2f}" if signed else f"{value:.2f}"
    return text.replace("0.", ".", 1)


def result_table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    """Lay out rows of ``mart.bias``."""
    table = Table(title=escape(title), title_justify="left", header_style="bold", box=None)
    for column in (
        "judge",
        "perturbation",
        "shift",
        "95 % interval",
        "ASR",
        "floor",
        "consistency",
    ):
        numeric = column not in {"judge", "perturbation"}
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric)
    table.add_column("finding")
    last = None
    for row in rows:
        judge = escape(row["judge"]) + (" [dim](simulated)[/dim]" if row["simulated"] else "")
        colour = COLOURS.get(row["finding"], "yellow")
        table.add_row(
            judge if row["judge"] != last else "",
            escape(row["perturbation"]),
            number(row["shift"], signed=True),
            f"{number(row['low'], signed=True)} … {number(row['high'], signed=True)}",
            number(row["asr"]),
            number(row["sham_floor"]),
            number(row["position_consistency"]) if row["judge"] != last else "",
            f"[{colour}]{row['finding']}[/{colour}]",
        )
        last = row["judge"]
    return table


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> Table:
    """Lay out rows of anything; nothing in them is read as markup."""
    table = Table(title=escape(title) or None, title_justify="left", header_style="bold", box=None)
    for column in columns:
        table.add_column(escape(column))
    for row in rows:
        table.add_row(*("" if value is None else escape(_clip(value)) for value in row))
    return table


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
