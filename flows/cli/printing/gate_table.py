"""The gates of a study, as `voirdire gate` prints them."""

from collections.abc import Collection
from pathlib import Path

from flows.cli.printing.live import Printer
from flows.cli.printing.terminal import print_line, print_rows
from flows.publishing.gate import EXIT_CODES, gate_of, junit, markdown
from tasks.reporting.wording import clean
from warehouse.peek import existing_path
from warehouse.private import write_private
from warehouse.store import Warehouse


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
    """Print the gates that do not pass, and the outcome; return its exit code."""
    path = existing_path(warehouse, study)
    gated = gate_of(Warehouse(path), study, wave, judges, gates)
    for file, text in ((junit_file, junit), (markdown_file, markdown)):
        if file:
            write_private(file, text(gated).encode())
    open_ = [check for check in gated.checks if check.verdict != "pass"]
    console = Printer(highlight=False)
    if open_:
        rows = [[clean(text) for text in check] for check in open_]
        print_rows(console, ("judge", "gate", "verdict", "value"), rows)
        print_line(console, "")
    if said := gated.recommended():
        print_line(console, said)
    print_line(console, gated.summary())
    return EXIT_CODES[gated.outcome]
