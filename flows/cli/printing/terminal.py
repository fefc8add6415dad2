"""Terminal output: tables and lines."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from flows.cli.meanings import FLAWS_DETECTED, FLOOR, SAMPLES, SHIFT, explained
from flows.cli.printing.tables import RowLines, as_lines, bare_table, clipped, shown
from schemas.keys import CONDITIONS
from tasks.conclusions.position_bias import EFFECT, GAP, POSITION
from tasks.gates.scorecard import FAILS, PASSES
from tasks.kit.printable import decimal, printable
from tasks.reporting import wording
from tasks.reporting.summary import detected, favoured, not_recognised
from tasks.reporting.wording import PLAIN, listing, p_value

COLOURS = dict.fromkeys(FAILS, "red") | dict.fromkeys(PASSES, "green")


def plain(text: str) -> str:
    """Replace the typographic minus signs and spaces of a page by those of a keyboard."""
    return text.translate(PLAIN)


def number(value: float | None, digits: int = 2) -> str:
    """Format a number as the report does, in ASCII: ``.21``, or a dash for null."""
    return "-" if value is None else decimal(value, digits)


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Format an interval: ``[.03, .24]``, or a dash if an end is null."""
    if low is None or high is None:
        return "-"
    return f"[{decimal(low, digits)}, {decimal(high, digits)}]"


def bounded(row: Mapping[str, Any] | None, between: str = " ", of: str = "estimate") -> str:
    """Write the number of a row with its interval, if it has one; empty without a row."""
    if row is None:
        return ""
    ends = "" if row.get("low") is None else f"{between}{interval(row['low'], row['high'])}"
    return f"{number(row[of])}{ends}"


SHIFTS = ("shift", "over control", "sham")
"""Columns of shifts; shifts of ratings have a unit."""

OF_RATINGS = {"sd": " sd", "share": " pass rate", "labels": " share of labels"}
"""Unit of a shift of ratings -> what follows its number where units differ."""

RATES = {
    "shift": ("shift", "low", "high"),
    "over control": ("control", "control_low", "control_high"),
    "sham": ("sham_shift", "sham_shift_low", "sham_shift_high"),
    "ASR": ("asr", "asr_low", "asr_high"),
    "floor": ("sham_floor", "sham_floor_low", "sham_floor_high"),
    "PC": ("position_consistency", "position_consistency_low", "position_consistency_high"),
}
"""Name in the table -> columns of ``mart.bias``: a number and the ends of its 95 % interval."""
OF_PAIRS = ("ASR", "floor", "PC")
"""Rates that single answers do not have."""


def result_table(rows: Sequence[dict[str, Any]], title: str, console: Console) -> RenderableType:
    """Lay out rows of ``mart.bias`` by judge, each rate with its interval.

    The interval follows its number if the terminal is wide enough, else it is on the next line. In
    a still narrower terminal each row becomes a few lines of text.
    """
    wide = console.options.update(width=10_000)
    for between in (" ", "\n"):
        table = _result_table(rows, title, between)
        if console.measure(table, options=wide).maximum <= console.width:
            return table
    return as_lines(_lines(rows), console.width, title)


def _rates(rows: Sequence[dict[str, Any]]) -> list[str]:
    shammed = any(row["sham_shift"] is not None for row in rows)
    left_out = {*(() if shammed else ("sham",)), *(() if compares(rows) else OF_PAIRS)}
    return [name for name in RATES if name not in left_out]


def compares(rows: Sequence[dict[str, Any]]) -> bool:
    """Tell whether any row of ``mart.bias`` is of a judge of pairs."""
    return not rows or any(_unit(row) not in OF_RATINGS for row in rows)


def _result_table(rows: Sequence[dict[str, Any]], title: str, between: str) -> Table:
    table = bare_table(title)
    rates, units = _rates(rows), _units(rows)
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
            shown(row["n"]) or "-",
            *(_bounded(row, name, between, units) for name in rates),
            _finding(row, "\n"),
        )
    return table


def _lines(rows: Sequence[dict[str, Any]]) -> Iterator[RowLines]:
    units = _units(rows)
    for row, who in _with_names(rows, " "):
        known = [name for name in _rates(rows) if row[RATES[name][0]] is not None]
        rates = [f"{name} {_bounded(row, name, ' ', units)}" for name in known or _rates(rows)]
        size = f"{shown(row['n']) or '-'}{' votes' if row['kind'] == POSITION else ''}"
        yield RowLines(who, f"{escape(_name(row))}, n {size}: {_finding(row, ' ')}", rates)


def _name(row: dict[str, Any]) -> str:
    """Return what a row is about: a perturbation, or the position of answers."""
    return clipped(POSITION if row["perturbation"] is None else row["perturbation"])


def lost_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say in which rows of ``mart.bias`` the perturbation changes the share of invalid votes."""
    for row in rows:
        if row["lost_finding"] is None:
            continue
        names = [*(clipped(row[column]) for column in _cell_columns(rows)), _name(row)]
        difference = row["lost_difference"]
        bounds = ""
        if row["asr_at_least"] is not None:
            ends = (number(row[end]) for end in ("asr_at_least", "asr_at_most"))
            bounds = f"; had all votes been valid, the ASR would lie between {' and '.join(ends)}"
        yield (
            f"Verdicts lost: {' / '.join(names)}: the share of invalid votes is "
            f"{number(abs(difference))} {'higher' if difference > 0 else 'lower'} on the perturbed "
            f"answer than on the {row['lost_over']} (p {p_value(row['lost_p'])}){bounds}."
        )


def _cell_columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the columns that identify a cell: the judge, and conditions that differ."""
    return ["judge", *(c for c in CONDITIONS if len({row.get(c) for row in rows}) > 1)]


def _with_names(
    rows: Sequence[dict[str, Any]], between: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each row with the name of its judge, which is empty if it repeats the last one."""
    columns = _cell_columns(rows)
    last = ""
    for row in rows:
        who = " / ".join(clipped(row[column]) for column in columns)
        simulated = f"{between}[dim](simulated)[/dim]" if row["simulated"] else ""
        yield row, f"[bold]{escape(who)}[/bold]{simulated}" if who != last else ""
        last = who


def _bounded(row: dict[str, Any], name: str, between: str, units: Mapping[str, str]) -> str:
    column, *ends = RATES[name]
    low, high = (row[end] for end in ends)
    text = number(row[column])
    if name in SHIFTS and row[column] is not None:
        text += units.get(_unit(row), "")
    if low is None or high is None:
        return text
    return f"{text}{between}[dim]{escape(interval(low, high))}[/dim]"


def _units(rows: Sequence[dict[str, Any]]) -> Mapping[str, str]:
    """Return what follows the numbers of each unit; nothing where all have the same unit."""
    return OF_RATINGS if len({_unit(row) for row in rows}) > 1 else {}


def _unit(row: dict[str, Any]) -> str:
    """Return the unit of a row about ratings; empty for the others."""
    labels = row.get("prompt_kind") == "labels"
    return "" if row["kind"] == POSITION else wording.rated_unit(row.get("unit"), labels=labels)


def _finding(row: dict[str, Any], between: str) -> str:
    """Return the finding with a note: its direction, the share detected, or the reason."""
    colour = COLOURS.get(row["finding"], "yellow")
    below = "; ".join(filter(None, (favoured(row), plain(detected(row)), row["reason"])))
    note = f"{between}[dim]({escape(clipped(below))})[/dim]" if below else ""
    return f"[{colour}]{row['finding'] or '-'}[/{colour}]{note}"


SHAM = "a meaning-free edit of the same size (sham)"
COMPARED_WITH = {
    (True, False): SHAM,
    (False, True): "the unchanged answer (control)",
    (True, True): f"{SHAM}, or with the control where a judge has too few shams",
}
"""Whether shifts are over the sham, and whether over the control -> what the legend says."""


BY_MEAN_SCORES = re.compile(r"\bD -?[.\d]")
"""A share of flaws detected by mean scores, in the note of a finding."""


def legend(rows: Sequence[dict[str, Any]]) -> str:
    """Explain the columns of a table of rows of ``mart.bias``."""
    cells = [row for row in rows if row["kind"] != POSITION]
    over_sham = any("sham" in row["statistic"] for row in cells)
    over_control = not over_sham or any("sham" not in row["statistic"] for row in cells)
    sham = "the sham" if over_sham else SHAM
    units, compared = {_unit(row) for row in cells}, compares(rows)
    what = [
        *([SHIFT] if compared else []),
        *(["change of the rating in standard deviations (sd) of control"] if "sd" in units else []),
        *(["change of the pass rate"] if "share" in units else []),
        *(["change of the share of labels chosen"] if "labels" in units else []),
    ]
    in_control = ", and in control" if "sd" in units else ""
    of_votes = " (position: of votes)" if any(row["kind"] == POSITION for row in rows) else ""
    sentences = [
        "Brackets: 95 % confidence intervals.",
        f"n: {SAMPLES}{in_control}{of_votes}.",
        f"shift: {' or '.join(what)}, compared with {COMPARED_WITH[over_sham, over_control]}.",
    ]
    if over_sham:
        sentences.append(explained(["over control"]))
    if "sham" in _rates(rows):
        sentences.append(explained(["sham"]))
    floor = "" if any(row["sham_floor"] is not None for row in rows) else " (not measured here)"
    if compared:
        sentences.append(f"{explained(['ASR'])[:-1]}; floor: {FLOOR.format(sham)}{floor}.")
        sentences.append(explained(["PC"]))
    flaws = sorted({clipped(row["perturbation"]) for row in rows if row["kind"] == "detract"})
    if flaws and not compared:
        sentences.append(
            f"A flaw ({listing(flaws)}) should lower the rating: D is the share of flaws that do, "
            "noise deducted."
        )
    elif flaws:
        by_scores = any(
            BY_MEAN_SCORES.search(f"{detected(row)} {row['reason'] or ''}") for row in cells
        )
        also = "; D is the same share computed from mean scores" if by_scores else ""
        sentences.append(
            f"A flaw ({listing(flaws)}) should cost votes: DP (detection power) is the "
            f"{FLAWS_DETECTED}{also}."
        )
    if own := not_recognised(row["perturbation"] for row in cells if row["simulated"]):
        sentences.append(f"{own}.")
    return " ".join([*sentences, *_position_legend(rows)])


def _position_legend(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    shown = {row["statistic"] for row in rows if row["kind"] == POSITION}
    gap = "the position gap (share of first picks among n votes for a slot, minus one half)"
    where = ", or where each pair was shown in one order only, " if GAP in shown else ""
    effect = f"{where}the effect of the first slot in logits"
    parts = [text for statistic, text in ((GAP, gap), (EFFECT, effect)) if statistic in shown]
    if parts:
        yield f"position (unperturbed pairs): its shift is {''.join(parts)}."


def echo_data(text: str) -> None:
    """Print data; on a terminal, replace control characters, which could control it."""
    # Click strips colour codes when writing to a file, which would change the data.
    click.echo(printable(text) if sys.stdout.isatty() else text, nl=False, color=True)


def echo_json(found: object) -> None:
    """Print data as JSON; what JSON has no form for, such as a time, as text."""
    echo_data(json.dumps(found, indent=1, default=str) + "\n")
