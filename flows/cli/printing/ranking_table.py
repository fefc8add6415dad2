"""Tables of a study: judges and people by rank, beside a random judge; prompts and categories."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape

from flows.cli.printing.answer import show_advice
from flows.cli.printing.live import Printer
from flows.cli.printing.tables import RowLines, print_line, print_rows, table_or_lines
from flows.cli.printing.terminal import OF_PAIRS, OF_RATINGS, compares, interval, number, say
from flows.publishing.gate import RECOMMENDED
from flows.publishing.pages import run_of_results, thresholds_of
from flows.results.up_to_date import outdated_line
from flows.studies import Study
from schemas.keys import PEOPLE, unit_name
from tasks.kit.printable import several
from tasks.reporting.comparison_rows import PRIMARY, RATED
from tasks.reporting.wording import clean, clip, p_value, rated_unit, tagged, with_who
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
        array_to_string(list_sort(list(distinct votes_per_pair)), ', ') as votes,
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
AT_RANDOM = (
    " at random (N): exact ASR of a judge that votes at random, with N votes per pair; its shift "
    "is 0."
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
    console = Printer(highlight=False)
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
        shown = [name for name in body[0] if compares(here) or name not in OF_PAIRS]
        body += [
            dict.fromkeys(body[0], "")
            | {"judge": f"at random ({line['votes']})", "ASR": number(line["asr"])}
            for line in lines
            if _cell({**line, "quantity": cell[-1]}) == cell and compares(here)
        ]
        cells = [[row[name] for name in shown] for row in body]
        narrow = (_row_lines(row, shown) for row in body)
        console.print(table_or_lines(console, shown, cells, narrow, title))
        for line in _notes(here):
            console.print(line, markup=False)
        console.print()
    if rows:
        explained = LEGEND + (AT_RANDOM if lines else "")
        console.print(explained, style="dim", markup=False)
    show_wordings(console, parameters, store)


def say_outdated(warehouse: Warehouse) -> None:
    """Say on stderr which studies must be measured again after an upgrade of the file."""
    if line := outdated_line(warehouse):
        say(line, err=True)


def _row_lines(row: dict[str, str], columns: Sequence[str]) -> RowLines:
    if not row["n"]:
        return RowLines("", escape(row["judge"]), [f"ASR {row['ASR']}"])
    judge = f"{row['judge']} ({row['is a']}, n {row['n']}): {row['finding']}"
    rank = "-" if row["rank"] == "-" else f"{row['rank']} {row['95 %']}"
    head = "  ".join(filter(None, (rank, row["tier"], judge)))
    shift = f"shift {row['shift']} {row['95 % ']}"
    others = ("over control", "sham", *(name for name in OF_PAIRS if name in columns))
    rates = [shift, *(f"{name} {row[name]}" for name in others)]
    return RowLines("", escape(head), [escape(rate) for rate in rates])


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    """Say who has no rank or no finding and why, and what limits a finding: a line per reason."""
    # For people without a finding, the next line says what they still have to vote on.
    unranked = [
        row for row in rows if row["rank"] is None and (row["finding"] or not _is_person(row))
    ]
    without = [row for row in rows if row["finding"] is None]
    concluded = [row for row in rows if row["finding"] is not None]
    names: dict[tuple[str, str], list[str]] = {}
    for what, some, column in (
        ("no rank", unranked, "unranked"),
        ("no finding", without, "reason"),
        ("shift", concluded, "reason"),
    ):
        for row in some:
            if row[column]:
                names.setdefault((what, row[column]), []).append(row["judge"])
    return [f"{what}: {', '.join(each)} ({why})" for (what, why), each in names.items()]


def _is_person(row: dict[str, Any]) -> bool:
    return str(row["judge"]).startswith(f"{PEOPLE}/")


def _cell(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in CELL)


def _row(row: dict[str, Any]) -> dict[str, str]:
    """Return what a table shows of a row, by column."""
    kind = "person" if _is_person(row) else "simulated" if row["simulated"] else "model"
    ranks = (number(row[name], 1) for name in ("rank", "rank_low", "rank_high"))
    rank, low, high = (each.removesuffix(".0") for each in ranks)
    return {
        "rank": rank,
        "95 %": f"[{low}, {high}]" if row["rank_low"] is not None else "-",
        "tier": row["tier"] or "",
        "judge": row["judge"],
        "is a": kind,
        "n": "-" if row["n"] is None else str(row["n"]),
        "shift": number(row["shift"]),
        "95 % ": interval(row["low"], row["high"]),
        "over control": number(row["control"]),
        "sham": number(row["sham_shift"]),
        "ASR": number(row["asr"]),
        "floor": number(row["sham_floor"]),
        "finding": row["finding"] or "-",
    }


PAIRS = """
    select judge, perturbation, prompt, other_prompt, statistic, clusters, contrast, low, high,
        p_holm, finding, reason, asked.kind as prompt_kind
    from mart.contrasts left join (select prompt, kind from prompts) as asked using (prompt)
    where study = $study and other = judge and statistic in $primary
    order by judge, contrasts.kind desc, perturbation, prompt, other_prompt, statistic desc
"""
COMPARED = (
    "judge",
    "perturbation",
    "prompt",
    "other prompt",
    "questions",
    "difference",
    "p, Holm",
    "finding",
)
COMPARISON = (
    "difference: the judge's shift with the prompt minus that with the other, with its 95 % "
    "interval; above 0, the perturbation moves the judge further in favour of the changed answer "
    "with the first prompt. questions: those that both prompts have shifts of. "
    "biased: the two shifts differ; the prompt whose shift is closer to 0 is the less biased one."
)


def show_wordings(console: Console, study: Study, warehouse: Warehouse) -> None:
    """Print what rewording changes, and how a judge's prompts differ, if the study asked."""
    if study.reworded:
        for line in rewording_lines(study.name, study.prompts, warehouse):
            print_line(console, line)
    if len(study.prompts) > 1:
        _show_prompts(console, study.name, warehouse)


def _show_prompts(console: Console, study: str, warehouse: Warehouse) -> None:
    """Print how far each judge's shifts differ between two prompts; nothing if none has two."""
    pairs = warehouse.query(PAIRS, {"study": study, "primary": [*PRIMARY]}).to_dicts()
    if not pairs:
        return
    rows = [
        (
            *(row[name] for name in ("judge", "perturbation", "prompt", "other_prompt")),
            str(row["clusters"]),
            "-"
            if row["contrast"] is None
            else f"{number(row['contrast'])}{_unit(row)} {interval(row['low'], row['high'])}",
            p_value(row["p_holm"]),
            row["finding"] or row["reason"] or "-",
        )
        for row in pairs
    ]
    lines = (
        RowLines(
            "",
            escape(f"{judge}, {perturbation}, {prompt} - {other}: {finding}"),
            [f"difference {escape(difference)}", f"p (Holm) {p}", f"questions {questions}"],
        )
        for judge, perturbation, prompt, other, questions, difference, p, finding in rows
    )
    console.print()
    console.print(table_or_lines(console, COMPARED, rows, lines, "Prompts compared"))
    print_line(console, COMPARISON)


def _unit(row: dict[str, Any]) -> str:
    """Return what follows the number of a contrast."""
    labels = row["prompt_kind"] == "labels"
    return OF_RATINGS.get(rated_unit(RATED.get(row["statistic"]), labels=labels), "")


REWORDED = """
    select judge, prompt, kind as prompt_kind,
        changed, changed_low, changed_high, again_changed, excess, low, high,
        rating_change, rating_change_low, rating_change_high, again_rating_change, rating_unit,
        rating_excess, rating_excess_low, rating_excess_high,
        reason
    from mart.rewording left join (select prompt, kind from prompts) using (prompt)
    where study = ? and variant is null order by judge, dataset, prompt, wave
"""


def rewording_lines(study: str, prompts: Sequence[str], warehouse: Warehouse) -> list[str]:
    """Say of each judge how many of its verdicts change when a prompt is worded otherwise."""
    rows = warehouse.query(REWORDED, [study]).to_dicts()
    lines = []
    for row in rows:
        judge = unit_name(row["judge"], row["prompt"], prompts)
        if row["rating_change"] is not None and row["again_rating_change"] is not None:
            lines.append(_rating_line(judge, row))
            continue
        if row["changed"] is None or row["again_changed"] is None:
            lines.append(f"Rewording {judge}: {row['reason']}.")
            continue
        bounds = interval(row["changed_low"], row["changed_high"])
        excess = f"{number(row['excess'])} {interval(row['low'], row['high'])}"
        lines.append(
            f"Rewording {judge}: with the prompt in other words, {number(row['changed'])} {bounds} "
            f"of the verdicts on control pairs change; asked again in the same words, "
            f"{number(row['again_changed'])}. Due to the wording: {excess}."
        )
    return lines


def _rating_line(judge: str, row: dict[str, Any]) -> str:
    """Say how far a judge's ratings of answers change when a prompt is worded otherwise."""
    share = "share of labels chosen" if row["prompt_kind"] == "labels" else "pass rate"
    unit = "points" if row["rating_unit"] == "points" else f"in the {share}"
    bounds = interval(row["rating_change_low"], row["rating_change_high"])
    excess = interval(row["rating_excess_low"], row["rating_excess_high"])
    return (
        f"Rewording {judge}: with the prompt in other words, a rating changes by "
        f"{number(row['rating_change'])} {bounds} {unit}; asked again in the same words, by "
        f"{number(row['again_rating_change'])}. Due to the wording: "
        f"{number(row['rating_excess'])} {excess}."
    )


SHIFTS = "select * rename (category_shift as estimate) from mart.categories where study = $study"
TOGETHER = "adjusted p: all of these shifts of the study together (Benjamini-Hochberg)."
MOST_HEADING = 30
"""Most characters of a heading that the user's data name."""
MOST_CATEGORIES = 5
"""Most shifts by category that are listed."""


def show_categories(
    console: Console, shifts: pl.DataFrame, more: str, column: str = "category"
) -> None:
    """Print the largest shifts by category; ``more`` is the command that prints all.

    ``column`` is what the user's data call the category.

    Nothing is printed if there are fewer than two categories.
    """
    known = with_who(shifts.drop_nulls("estimate"))
    if known["category"].n_unique() < 2:
        return
    largest = known.sort(
        pl.col("estimate").abs(), "category", descending=[True, False], maintain_order=True
    )
    rows = [
        (
            tagged(row),
            row["perturbation"],
            row["category"],
            row["clusters"],
            number(row["estimate"]),
            interval(row["low"], row["high"]) if row["low"] is not None else "",
            p_value(row["p_adjusted"]),
        )
        for row in largest.head(MOST_CATEGORIES).to_dicts()
    ]
    column = clip(clean(column), MOST_HEADING)
    columns = ("judge", "perturbation", column, "questions", "shift", "95 %", "adjusted p")
    print_rows(console, columns, rows, f"Shifts by {column}, the largest first")
    if left := known.height - len(rows):
        print_line(console, f"{several(left, 'other shift')} by {column}: {more}.")
    print_line(console, TOGETHER, style="dim")
