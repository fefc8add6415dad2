"""The last three lines of an audit: report, warehouse, and what to do next."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from flows.cli.printing.terminal import print_line
from tasks.conclusions.position_bias import POSITION
from tasks.kit.printable import printable
from warehouse.peek import default_path

SURPRISING = ("biased", "overlooks", "rewards", "mixed")
"""Findings whose evidence is worth a look, the most surprising first."""


def next_step(study: str, rows: Sequence[dict[str, Any]], warehouse: Path) -> str:
    """Return the command that shows the evidence of the most surprising finding."""
    shifted = [row for row in rows if row["kind"] != POSITION]
    found = sorted(
        (row for row in shifted if row["finding"] in SURPRISING),
        key=lambda row: SURPRISING.index(row["finding"]),
    )
    # Without perturbations nothing can flip.
    words = ["voirdire", "show" if shifted else "gate", study]
    if found:
        words += ["--judge", found[0]["judge"], "--perturbation", found[0]["perturbation"]]
    if warehouse != default_path().absolute():
        words += ["--warehouse", str(_near(warehouse))]
    return shlex.join(map(printable, words))


def show_places(console: Console, report: Path, warehouse: Path, following: str) -> None:
    """Print where the report and the warehouse are, and what to do next: the last three lines."""
    written = _near(report) if report.is_file() else "not written"
    print_line(console, "")
    for what, where in (
        ("report:", written),
        ("warehouse:", _near(warehouse)),
        ("next:", following),
    ):
        text = printable(f"{what:<10} {where}")
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def _near(path: Path) -> Path:
    """Return a path as one would type it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
