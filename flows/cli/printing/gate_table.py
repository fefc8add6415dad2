"""The gates of a study, as `voirdire gate` prints them."""

from collections.abc import Collection, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape

from flows.cli.printing.live import Printer, block_lines
from flows.cli.printing.terminal import fits, print_line, print_rows
from flows.publishing.gate import EXIT_CODES, Check, gate_of, junit, markdown
from tasks.reporting.wording import clean
from warehouse.peek import existing_path
from warehouse.private import write_private
from warehouse.store import Warehouse

COLUMNS = ("judge", "gate", "verdict", "value")


def show_gate(
    study: str,
    warehouse: Path | None,
    *,
    wave: str | None,
    judges: Collection[str],
    gates: Collection[str],
    junit_file: Path | None,
    markdown_file: Path | None,
) -> int:
    """Print the gates that do not pass, recommendations, outcome and exit code; return this code.

    Gates that are chosen decide instead of the recommendations, which are then not printed.
    """
    path = existing_path(warehouse, study)
    gated = gate_of(Warehouse(path), study, wave, judges, gates)
    for file, text in ((junit_file, junit), (markdown_file, markdown)):
        if file:
            write_private(file, text(gated).encode())
    open_ = [check for check in gated.checks if check.verdict != "pass"]
    console = Printer(highlight=False)
    if open_:
        _print_gates(console, [Check(*map(clean, check)) for check in open_])
        print_line(console, "")
    if said := gated.recommended():
        for line in gated.advised:
            print_line(console, line.text())
        print_line(console, "")
        print_line(console, said)
    print_line(console, gated.summary())
    print_line(console, gated.exit_line())
    return EXIT_CODES[gated.outcome]


def _print_gates(console: Console, checks: Sequence[Check]) -> None:
    """Print gates as a table, or as lines below their judge if the table does not fit."""
    if fits(COLUMNS, checks, console.width):
        print_rows(console, COLUMNS, checks)
        return
    last = ""
    for check in checks:
        who = f"[bold]{escape(check.judge)}[/bold]" if check.judge != last else ""
        head, last = f"{check.name}: {check.verdict}", check.judge
        whole = f"{head}, {check.said}" if check.said else head
        is_short = cell_len(whole) <= console.width - 2
        below = [] if is_short else [escape(check.said)]
        console.print(*block_lines(who, escape(whole if is_short else head), below), sep="\n")
