"""The answer: which judge to use; and the last lines: where everything is, what to do next."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.cli.printing.tables import print_line
from flows.cli.printing.terminal import plain
from tasks.conclusions.position_bias import POSITION
from tasks.gates.summaries import REASONS_SHOWN
from tasks.kit.command_line import with_warehouse
from tasks.kit.defaults import DETECTS_AT, Thresholds
from tasks.kit.printable import printable, wrapped
from tasks.reporting.advice import Advice, advice, not_measured, policy
from tasks.reporting.wording import marked
from warehouse.path_checks import near, option_for

OF_A_FILE = "`--only scorecard` has the gates, the policy, its limits, and what other gates need."
INDENT = 11
"""Width of what precedes the places of the last lines."""
CONTINUED = " \\"
"""How a line of a shell command ends that the next line continues."""
SURPRISING = ("biased", "overlooks", "rewards", "mixed")
"""Findings whose evidence is worth a look, the most surprising first."""


def show_advice(
    console: Console,
    recommended: pl.DataFrame,
    wave: str,
    thresholds: Thresholds,
    study: str = "",
    *,
    detects_at: float = DETECTS_AT,
    people: int | None = None,
    left: str = "",
) -> None:
    """Print whether to use each judge, and the policy.

    ``study`` is a study in the warehouse, ``people`` the number of people in a file;
    ``left`` says how many further questions there are.
    """
    # Whoever measures a file may have no mart to look up further reasons in.
    lines = advice(recommended, wave, REASONS_SHOWN if people is None else None)
    if not lines:
        return
    show_lines(console, "Which judge to use", lines)
    absent = not_measured(recommended, study, people)
    rule = policy(thresholds, recommended, detects_at)
    if people is not None:
        # A file can never have most gates, so what they are and take is left to the scorecard.
        absent, rule = absent.partition(". ")[0].removesuffix(".") + "." * bool(absent), OF_A_FILE
    for sentence in (left, absent, rule):
        if sentence:
            print_line(console, sentence, style="dim")
    print_line(console, "")


def show_lines(console: Console, title: str, lines: Sequence[Advice]) -> None:
    """Print the answer about each judge."""
    table = Table.grid(padding=(0, 1))
    for line in lines:
        judge = marked(line.judge, simulated=line.simulated)
        why = with_warehouse(plain(line.why))
        words = Text.assemble(f"{judge}: ", (line.recommendation, "bold"), f". {why}.")
        table.add_row(line.mark, words)
    console.print(Text(title, style="italic"))
    console.print(table)


def next_step(
    study: str,
    rows: Sequence[dict[str, Any]],
    at_hand: Mapping[str, Any],
    warehouse: Path,
    earlier: str = "",
) -> str:
    """Return the command that shows what a user should look at next.

    ``earlier`` is the wave of these results if there are newer ones, which a gate would ask for.

    ``at_hand`` is the row of :data:`flows.publishing.evidence.AT_HAND`. Invalid replies come
    first where a judge has too many of them, because its other results rest on the few that can be
    read; then a judge that has changed since its baseline; then the most surprising finding.
    """
    if at_hand["fails_validity"]:
        return show_command(study, warehouse, {"judge": at_hand["fails_validity"]}, "invalid")
    if at_hand["has_changed"]:
        return show_command(study, warehouse, {"judge": at_hand["has_changed"]}, "changed")
    found = sorted(
        (row for row in rows if row["kind"] != POSITION and row["finding"] in SURPRISING),
        key=lambda row: SURPRISING.index(row["finding"]),
    )
    if found:
        names = {name: found[0][name] for name in ("judge", "perturbation")}
        # The unit of a grade's shift is its standard deviation.
        what = "moved" if found[0]["unit"] == "sd" else "flipped"
        return show_command(study, warehouse, names, what)
    for what in ("flipped", "moved", "invalid"):
        if at_hand[what]:
            return show_command(study, warehouse, {}, what)
    words = ["voirdire", "gate", study, *(["--wave", earlier] if earlier else [])]
    return shlex.join(map(printable, [*words, *option_for(warehouse)]))


def show_command(
    study: str, warehouse: Path, filters: Mapping[str, str | None], what: str = "flipped"
) -> str:
    """Return the command that shows the evidence ``what`` of a study, to be typed here."""
    words = ["voirdire", "show", study]
    for name, value in filters.items():
        words += [] if value is None else [f"--{name}", value]
    # Flipped pairs are the default.
    words += [] if what == "flipped" else [f"--{what}"]
    return shlex.join(map(printable, [*words, *option_for(warehouse)]))


def show_places(console: Console, report: Path, warehouse: Path, following: str) -> None:
    """Print where the report and the warehouse are, and what to do next: the last three lines."""
    written = near(report) if report.is_file() else "not written"
    print_line(console, "")
    for what, where in (
        ("report:", written),
        ("warehouse:", near(warehouse)),
        ("next:", following),
    ):
        text = printable(str(where))
        # Elsewhere than on a terminal, it is a line for programs.
        if console.is_terminal and what == "next:":
            text = _folded(text, console.width)
        console.print(f"{what:<{INDENT}}{text}", markup=False, soft_wrap=True)


def _folded(following: str, width: int) -> str:
    """Break a sentence or a command at spaces; a command so that it can be copied as a whole."""
    if not following.startswith("voirdire "):
        return f"\n{'':{INDENT}}".join(wrapped(following, width - INDENT).split("\n"))
    # The spaces of a name stay, as it is in quotes.
    words = (shlex.quote(word).replace(" ", "\0") for word in shlex.split(following))
    lines = wrapped(" ".join(words), width - INDENT - len(CONTINUED)).split("\n")
    return f"{CONTINUED}\n{'':{INDENT}}".join(lines).replace("\0", " ")
