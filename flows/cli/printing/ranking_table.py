"""Tables of a study: judges and people by rank, beside a random judge; prompts and categories."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console
from rich.markup import escape

from flows.cli.printing.answer import show_advice
from flows.cli.printing.live import Printer
from flows.cli.printing.tables import RowLines, print_line, print_rows, shown, table_or_lines
from flows.cli.printing.terminal import OF_PAIRS, bounded, compares, interval, number, plain
from flows.publishing.gate import RECOMMENDED
from flows.publishing.pages import run_of_results, thresholds_of
from flows.results.up_to_date import outdated_line
from flows.studies import Study
from schemas.conclusions import CategoryShifts
from schemas.keys import PEOPLE, unit_name
from schemas.results import Contrasts, Estimates, Findings
from tasks.kit.command_line import print_notice
from tasks.kit.printable import several
from tasks.pointwise.endpoints import labelled
from tasks.prompts import prompt_of
from tasks.reporting.comparison_rows import (
    by_category,
    by_criterion,
    difference,
    primary_contrasts,
)
from tasks.reporting.juries_and_models import Reworded, reworded
from tasks.reporting.wording import clean, clip, differing, listing, p_value, tagged
from warehouse.store import Warehouse

CELL = ("dataset", "wave", "perturbation", "quantity")
ROWS = """
    select
        coalesce(r.quantity, '') as quantity,
        b.dataset, b.prompt, b.wave, b.perturbation, b.kind, b.judge, b.simulated, b.n, b.shift,
        b.low, b.high, b.unit, b.control, b.sham_shift, b.asr, b.sham_floor,
        b.votes_per_pair, b.finding, b.reason,
        r.rank, r.low as rank_low, r.high as rank_high, r.tier,
        r.reason as unranked,
    from mart.bias as b
    left join mart.ranking as r
        using (study, dataset, judge, prompt, wave, mode, perturbation)
    where b.study = ? and b.kind <> 'position'
    order by b.dataset, b.wave, b.kind desc, b.perturbation, quantity,
        r.rank nulls last, b.judge, b.prompt
"""
RANDOM = """
    select dataset, wave, perturbation, estimate as asr,
        list_sort(list(distinct votes_per_pair)) as votes,
    from estimates where study = ? and statistic = 'random_baseline' and estimate is not null
    group by all order by all
"""
LEGEND = (
    "rank: 1 is the judge that the perturbation moves least (for a flaw: that moves furthest away "
    "from the flawed answer). tier: judges that share a letter do not differ significantly; "
    "letters can be out of order, as judges moved equally far in opposite directions can differ. "
    "Ranks and tiers use the samples that all ranked judges share (for a person, those shared with "
    "all models); the other columns use all samples of the judge. Brackets: 95 % intervals."
)
AT_RANDOM = "at random"
OF_BASELINE = (
    " at random: exact ASR of a judge that votes at random, with this many votes per pair; its "
    "shift is 0."
)

BIAS = """
    select * from mart.bias where study = $study
    order by judge, dataset, prompt, wave, kind = 'position', kind desc, perturbation
"""
"""What an audit and ``measure`` end with."""


def show_ranked(study: str, warehouse: Path | None, parameters: Study) -> None:
    """Print recommendations, a table per perturbation of judges and people, and the wordings."""
    store = Warehouse(warehouse)
    say_outdated(store)
    console = Printer()
    recommended = store.query(RECOMMENDED, [study])
    if recommended.height:
        thresholds = thresholds_of(run_of_results(store, study))
        show_advice(console, recommended, "", thresholds, study, detects_at=parameters.detects_at)
    rows = store.query(ROWS, [study]).to_dicts()
    prompts = [row["prompt"] for row in rows if not _is_person(row)]
    for row in rows:
        if not _is_person(row):
            row["judge"] = unit_name(row["judge"], row["prompt"], prompts)
    lines = store.query(RANDOM, [study]).to_dicts()
    differing = [
        name for name in CELL if name != "perturbation" and len({row[name] for row in rows}) > 1
    ]
    for cell in dict.fromkeys(_cell(row) for row in rows):
        here = [row for row in rows if _cell(row) == cell]
        first = here[0]
        where = "".join(
            f", {first[name]}" if name == "quantity" else f", {name} {first[name]}"
            for name in differing
        )
        title = f"{first['perturbation']} ({first['kind']}){where}"
        body = [_row(row) for row in here]
        names = [name for name in body[0] if compares(here) or name not in OF_PAIRS]
        body += [
            dict.fromkeys(body[0], "")
            | {"judge": f"{AT_RANDOM}, {_votes(line['votes'])}", "ASR": number(line["asr"])}
            for line in lines
            if _cell({**line, "quantity": cell[-1]}) == cell and compares(here)
        ]
        cells = [[row[name] for name in names] for row in body]
        narrow = (_row_lines(row, names) for row in body)
        console.print(table_or_lines(console, names, cells, narrow, title))
        for line in _notes(here):
            print_line(console, line)
        console.print()
    if rows:
        print_line(console, LEGEND + (OF_BASELINE if lines else ""), style="dim")
    show_wordings(console, parameters, store)


def say_outdated(warehouse: Warehouse) -> None:
    """Say on stderr which studies must be measured again after an upgrade of the file."""
    if line := outdated_line(warehouse):
        print_notice(line)


def _row_lines(row: dict[str, str], columns: Sequence[str]) -> RowLines:
    """Return a row as lines, without the numbers that it lacks."""
    if not row["n"]:
        return RowLines("", f"{escape(row['judge'])} per pair: ASR {row['ASR']}", [])
    known = {name: "" if text == "-" else text for name, text in row.items()}
    size = f", n {known['n']}" if known["n"] else ""
    judge = f"{row['judge']} ({row['is a']}{size}): {known['finding'] or 'no finding'}"
    rank = f"{known['rank']} {known['95 %']}" if known["rank"] else "no rank"
    head = "  ".join(filter(None, (rank, row["tier"], judge)))
    known["shift"] = f"{known['shift']} {known['95 % ']}".strip()
    rates = ("shift", "over control", "sham", *(name for name in OF_PAIRS if name in columns))
    parts = [f"{name} {known[name]}" for name in rates if known[name]]
    return RowLines("", escape(head), [escape(part) for part in parts or ["no shift"]])


def _votes(numbers: Sequence[int]) -> str:
    words = listing([str(each) for each in numbers], "or")
    return f"{words} vote{'' if [*numbers] == [1] else 's'}"


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    """Say who has no rank or no finding and why, and what limits a finding: one per reason."""
    # For people without a finding, the next line says what they still have to vote on.
    unranked = [
        row for row in rows if row["rank"] is None and (row["finding"] or not _is_person(row))
    ]
    without = [row for row in rows if row["finding"] is None]
    concluded = [row for row in rows if row["finding"] is not None]
    return [
        *_by_reason("No rank for", unranked, "unranked"),
        *_by_reason("No finding for", without, "reason"),
        *_by_reason("Note on the finding about", concluded, "reason"),
    ]


def _by_reason(what: str, rows: list[dict[str, Any]], column: str) -> list[str]:
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        if row[column]:
            names.setdefault(row[column], {})[row["judge"]] = None
    return [f"{what} {listing([*judges])}: {why}." for why, judges in names.items()]


def split_people_without_results(
    rows: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[str]]:
    """Leave out rows of ``mart.bias`` of people who have no result, and say why they have none."""
    parts: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for row in rows:
        parts[_is_person(row) and row["finding"] is None and row["shift"] is None].append(row)
    position = [row for row in parts[True] if row["perturbation"] is None]
    others = [row for row in parts[True] if row["perturbation"] is not None]
    return parts[False], [
        *_by_reason("No result about position for", position, "reason"),
        *_by_reason("No result for", others, "reason"),
    ]


def _is_person(row: dict[str, Any]) -> bool:
    return str(row["judge"]).startswith(f"{PEOPLE}/")


def _cell(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in CELL)


def _row(row: dict[str, Any]) -> dict[str, str]:
    kind = "person" if _is_person(row) else "simulated" if row["simulated"] else "model"
    ranks = (number(row[name], 1) for name in ("rank", "rank_low", "rank_high"))
    rank, low, high = (each.removesuffix(".0") for each in ranks)
    return {
        "rank": rank,
        "95 %": f"[{low}, {high}]" if row["rank_low"] is not None else "-",
        "tier": row["tier"] or "",
        "judge": row["judge"],
        "is a": kind,
        "n": shown(row["n"]) or "-",
        "shift": number(row["shift"]),
        "95 % ": interval(row["low"], row["high"]),
        "over control": number(row["control"]),
        "sham": number(row["sham_shift"]),
        "ASR": number(row["asr"]),
        "floor": number(row["sham_floor"]),
        "finding": row["finding"] or "-",
    }


COMPARED = ("prompt", "other prompt", "questions", "difference", "p, Holm", "finding")
COMPARISON = (
    "difference: the judge's shift with the prompt minus that with the other, with its 95 % "
    "interval; above 0, the perturbation moves the judge further in favour of the changed answer "
    "with the first prompt. questions: those that both prompts have shifts of. "
    "biased: the two shifts differ; the prompt whose shift is closer to 0 is the less biased one."
)


def show_splits(console: Console, study: Study, warehouse: Warehouse) -> None:
    """Print shifts by criterion, by category, and what prompts change, where there are such."""
    if any(prompt_of(name).criteria or prompt_of(name).labels for name in study.prompts):
        show_criteria(console, study.name, warehouse)
    if study.category_column:
        shifts = warehouse.read(CategoryShifts, pl.DataFrame({"study": [study.name]}))
        more = "the report, and the table mart.categories of `voirdire sql`"
        show_categories(console, shifts, more, study.category_column)
    show_wordings(console, study, warehouse)


def show_wordings(console: Console, study: Study, warehouse: Warehouse) -> None:
    """Print what rewording changes, and how a judge's prompts differ, if the study asked."""
    if not study.reworded and len(study.prompts) < 2:
        return
    mine = pl.DataFrame({"study": [study.name]})
    estimates, contrasts = warehouse.read(Estimates, mine), warehouse.read(Contrasts, mine)
    for row in reworded(estimates) if study.reworded else ():
        print_line(console, _reworded_line(row))
    _show_prompts(console, contrasts.filter(pl.col("other") == pl.col("judge")), estimates)


def _show_prompts(console: Console, contrasts: pl.DataFrame, estimates: pl.DataFrame) -> None:
    """Print how far each judge's shifts differ between two prompts; nothing if none has two."""
    order = ("judge", pl.col("kind") != "promote", "perturbation", "prompt", "other_prompt")
    pairs = primary_contrasts(contrasts).sort(*order, maintain_order=True)
    if pairs.is_empty():
        return
    named = ("judge", *differing(pairs, ("dataset", "wave")), "perturbation")
    labels = labelled(estimates)
    rows = [
        (
            *(row[name] for name in (*named, "prompt", "other_prompt")),
            shown(row["clusters"]),
            "-" if row["contrast"] is None else plain(" ".join(difference(row, labels))),
            p_value(row["p_holm"]),
            row["finding"] or row["reason"] or "-",
        )
        for row in pairs.to_dicts()
    ]
    lines = (
        RowLines(
            "",
            escape(f"{', '.join([*whose, prompt])} - {other}: {finding}"),
            [f"difference {escape(shift)}", f"p (Holm) {p}", f"questions {questions}"],
        )
        for *whose, prompt, other, questions, shift, p, finding in rows
    )
    console.print()
    columns = (*named, *COMPARED)
    console.print(table_or_lines(console, columns, rows, lines, "Prompts compared"))
    print_line(console, COMPARISON)


def _reworded_line(row: Reworded) -> str:
    """Say how many verdicts, or how far ratings, of a judge change in other words of a prompt."""
    if row.missing:
        return f"Rewording {row.judge}: {row.missing}."
    changed, again = bounded(row.changed), number(row.again["estimate"])
    what = f"{changed} of the verdicts on control pairs change"
    if row.unit:
        what, again = f"a rating changes by {changed}{row.unit}", f"by {again}"
    return (
        f"Rewording {row.judge}: with the prompt in other words, {what}; asked again in the same "
        f"words, {again}. Due to the wording: {bounded(row.excess)}."
    )


TOGETHER = "adjusted p: all of these shifts of the study together (Benjamini-Hochberg)."
MOST_HEADING = 30
"""Most characters of a heading that the user's data name."""
MOST_CATEGORIES = 5
"""Most shifts by category that are listed."""


def show_categories(
    console: Console,
    shifts: DataFrame[CategoryShifts],
    more: str,
    column: str = "category",
) -> None:
    """Print the largest shifts by category; ``more`` is the command that prints all.

    ``column`` is what the user's data call the category.

    Nothing is printed if there are fewer than two categories.
    """
    known = by_category(shifts).drop_nulls("estimate")
    if known.is_empty():
        return
    heading = clip(clean(column), MOST_HEADING)
    _show_largest(
        console, known, "category", heading, most=MOST_CATEGORIES, more=more, adjusted=True
    )
    print_line(console, TOGETHER, style="dim")


OF_PARTS = (
    "The statistic and its base are those of the whole rating above; intervals are not adjusted. "
    "No finding is about one {of}; whether they differ from one another is tested as a part of the "
    "findings (mixed)."
)
MOST_CRITERIA = 10
"""Most shifts of criteria that are listed."""


def show_criteria(console: Console, study: str, warehouse: Warehouse) -> None:
    """Print the largest shifts of the criteria, or labels, of a judge prompt; nothing without."""
    mine = pl.DataFrame({"study": [study]})
    found = by_criterion(warehouse.read(Estimates, mine), warehouse.read(Findings, mine))
    known = found.drop_nulls("estimate")
    if known.is_empty():
        return
    of = " or ".join(known["of"].unique().sort())
    _show_largest(console, known, "subgroup", of, most=MOST_CRITERIA, more="the report")
    print_line(console, OF_PARTS.format(of=of), style="dim")


def _show_largest(
    console: Console,
    shifts: pl.DataFrame,
    column: str,
    heading: str,
    *,
    most: int,
    more: str,
    adjusted: bool = False,
) -> None:
    """Print the largest shifts by what ``column`` has; ``more`` says where all are.

    ``adjusted``: with their adjusted p-values.
    """
    largest = shifts.sort(
        pl.col("estimate").abs(), column, descending=[True, False], maintain_order=True
    )
    rows = [
        (
            tagged(row),
            row["perturbation"],
            row[column],
            row["clusters"],
            number(row["estimate"]),
            interval(row["low"], row["high"]) if row["low"] is not None else "",
            *([p_value(row["p_adjusted"])] if adjusted else []),
        )
        for row in largest.head(most).to_dicts()
    ]
    columns = ["judge", "perturbation", heading, "questions", "shift", "95 %"]
    columns += ["adjusted p"] * adjusted
    print_rows(console, columns, rows, f"Shifts by {heading}, the largest first")
    if left := shifts.height - len(rows):
        print_line(console, f"{several(left, 'other shift')} by {heading}: {more}.")
