"""The gates of a study, as `voirdire gate` prints them."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from rich.markup import escape

from flows.cli.printing.live import Printer
from flows.cli.printing.tables import RowLines, print_line, table_or_lines
from flows.publishing.gate import EXIT_CODES, GateCheck, gate_of, junit, markdown
from tasks.reporting.wording import clean
from warehouse.atomic_files import write_private
from warehouse.path_checks import existing_path
from warehouse.store import Warehouse

COLUMNS = ("judge", "gate", "verdict", "value")


def show_gate(
    study: str,
    warehouse: Path | None,
    *,
    wave: str | None,
    judges: Collection[str],
    prompts: Collection[str],
    gates: Collection[str],
    junit_file: Path | None,
    markdown_file: Path | None,
) -> int:
    """Print the gates that do not pass, recommendations, outcome and exit code; return this code.

    Gates that are chosen decide instead of the recommendations, which are then not printed.
    """
    path = existing_path(warehouse, study)
    gated = gate_of(Warehouse(path), study, wave, {"judge": judges, "prompt": prompts}, gates)
    for file, text in ((junit_file, junit), (markdown_file, markdown)):
        if file:
            write_private(file, text(gated).encode())
    open_ = [check for check in gated.checks if check.verdict != "pass"]
    console = Printer()
    if open_:
        shown = [GateCheck(*map(clean, check)) for check in open_]
        console.print(table_or_lines(console, COLUMNS, shown, _lines(shown)))
        print_line(console, "")
    if said := gated.recommended():
        for line in gated.advised:
            print_line(console, line.text())
        print_line(console, "")
        print_line(console, said)
    print_line(console, gated.summary())
    print_line(console, gated.exit_line())
    return EXIT_CODES[gated.outcome]


def _lines(checks: Sequence[GateCheck]) -> Iterator[RowLines]:
    for check in checks:
        said = [escape(check.said)] if check.said else []
        head = escape(f"{check.name}: {check.verdict}")
        yield RowLines(f"[bold]{escape(check.judge)}[/bold]", head, said)
