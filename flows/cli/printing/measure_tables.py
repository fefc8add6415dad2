"""Terminal tables: effects, judges, single statistics, scorecard, drift."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
from rich.console import Console

from flows.cli.meanings import explained
from flows.cli.printing.answer import show_advice, show_command
from flows.cli.printing.tables import fits, print_line, print_rows
from flows.cli.printing.terminal import bounded, legend, lost_lines, number, plain, result_table
from flows.studies import Study
from schemas.judging import VoteLog
from schemas.results import CHANGED, MEASURES, Drifts, Gates
from tasks.conclusions.derived_columns import SCORECARD
from tasks.gates.recommendations import of_wave
from tasks.kit.defaults import DEFAULTS
from tasks.reporting.advice import did_change
from tasks.reporting.juries_and_models import rule
from tasks.reporting.rows import gate_verdict
from tasks.reporting.summary import REFUSED, favoured, with_mark
from tasks.reporting.wording import differing, listing, p_value
from tasks.results import Conclusions
from tasks.statistics import OWN_AUTHOR, STATISTICS, filled_columns, lacking
from warehouse.store import Warehouse

OF_JUDGES = {
    "valid": ("valid_rate", ""),
    "first slot": ("first_pick_share", ""),
    "logits": ("position_kappa", ""),
    "PC": ("position_consistency", ""),
    "ties": ("tie_rate", ""),
    "accuracy": ("accuracy", ""),
    "beyond chance": ("accuracy_beyond_chance", ""),
    "with people": ("s1_macro", "humans"),
}
"""Name in the table of judges -> statistic and subgroup."""

WITH_LABELS = ("accuracy", "beyond chance")
"""Columns of the table of judges that may rest on different items."""
GATES_LEGEND = (
    "margin: share of the tolerance left at the worse end of the 95 % interval (90 % for a promote "
    "bias); 1: all of it, 0: none, below 0: tolerance exceeded. agreement: the agreement lost "
    "against that among people or, where its reason says so, agreement beyond chance. `voirdire "
    "list scorecard` explains the gates."
)
Cells = tuple[list[str], list[list[Any]]]
"""Names of columns, and rows."""
MOST_COUNTS = 30
"""Maximum number of judges and people in the table of ratings."""
MOST_MODELS = 20
"""Most rows of models in the summary."""
WINS = "win_rate"
OF_MODELS = {
    WINS: (
        "win rate",
        "mean score for the model: 1 of a vote for it, .5 of a tie",
    ),
    "model_rating": ("mean rating", "of the model's answers, repeats of an answer as one"),
    "model_pass_rate": ("pass rate", "share of the model's answers that pass"),
}
"""Statistic of models -> its name in the summary, and what it is."""
TWO_JUDGES = ("contrast", "los_contrast", "ranking")
ARMS = "the file has no votes of an experimental arm; see the column `arm`"


def show_counts(console: Console, counts: pl.DataFrame) -> None:
    """Print how many grades and labels each judge and person gave, and their mean or shares."""
    if counts.is_empty():
        return
    by = differing(counts, ("dataset", "criterion"))
    by += differing(counts.filter(~pl.col("human")), ("prompt",))
    rows = [
        [
            *(row[c] or "" for c in by),
            f"{row['judge']}{' (person)' if row['human'] else ''}",
            row["ratings"],
            row["invalid"],
            bounded(row, of="mean"),
            row["labels"] or "",
        ]
        for row in counts.head(MOST_COUNTS).to_dicts()
    ]
    print_rows(console, [*by, "rated by", "n", "invalid", "mean", "labels"], rows, "Ratings")
    if counts.height > MOST_COUNTS:
        print_line(console, f"and {counts.height - MOST_COUNTS} more judges or people.")
    line = (
        "n: ratings. invalid: ratings without a value, not in the mean. In the mean, the ratings "
        "of an item that is repeated count as one."
    )
    if "low" in counts.columns:
        line += " Brackets: 95 % intervals."
    print_line(console, line, "dim")


def show_summary(
    console: Console, title: str, concluded: Conclusions, bias: pl.DataFrame, people: int | None
) -> None:
    """Print recommendations, effects (without perturbations: judges), drift and other numbers.

    Without ``people``, whose number it is, there are no recommendations.
    """
    effects, estimates = bias.to_dicts(), concluded.estimates
    if people is not None:
        show_advice(console, concluded.recommendations, "", DEFAULTS, people=people)
    attacked = any(row["perturbation"] is not None for row in effects)
    if attacked:
        console.print(result_table(effects, title, console))
        shown = {"mps", "mps_sham", "asr", "sham_floor", "position_consistency", "position_gap"}
        explanation = legend(effects)
    else:
        columns = _print_fitting(console, partial(_judges, estimates, effects), title)
        shown = {name for name, _ in OF_JUDGES.values()}
        shown_columns = [column for column in OF_JUDGES if column in columns]
        explanation = f"Brackets: 95 % confidence intervals. {explained(shown_columns)}"
    print_line(console, explanation, style="dim")
    for line in lost_lines(effects):
        print_line(console, line)
    if attacked:
        left_out = rule(concluded.exclusions)
        if left_out.limits:
            rates, who = "mean attack success rates", left_out.left_out
            none = f"No judge is excluded from {rates}."
            print_line(console, f"Excluded from {rates}: {who}." if who else none)
        if left_out.limits and left_out.undecided:
            line = f"Too little data to decide whether to exclude: {left_out.undecided}."
            print_line(console, line)
    show_drift(console, concluded.drifts, concluded.gates)
    for statistic in () if attacked else OF_MODELS:
        rows = estimates.filter(pl.col("statistic") == statistic)
        if statistic == WINS:
            rows = rows.filter(~pl.col("subgroup").str.contains(" vs ", literal=True))
        if not rows.is_empty():
            _show_models(console, rows)
            shown.add(statistic)
    if rest := _rest(estimates, shown):
        print_line(console, f"Also measured (number of rows): {rest}.")
        print_line(
            console,
            "`--only NAME` shows one of these, `--only scorecard` shows which gates a judge "
            "passes, and `--format json` or `--format csv` prints all numbers.",
        )


def _show_models(console: Console, found: pl.DataFrame) -> None:
    """Print win rates or ratings of models: a row per model, the best first by the first judge."""
    statistic = found["statistic"].cast(pl.String)[0]
    title, legend = OF_MODELS[statistic]
    asked = ["judge", *differing(found)]
    rows = found.sort(
        *asked, pl.col("estimate").fill_null(-1), descending=[False] * len(asked) + [True]
    )
    many = rows.height > MOST_MODELS
    table = [
        {
            **{name: _who(row) if name == "judge" else row[name] for name in asked},
            "model": row["subgroup"],
            title: bounded(row),
            "n": row["n"],
        }
        for row in rows.head(MOST_MODELS).to_dicts()
    ]
    print_rows(console, *_filled_columns(table), f"{title[:1].upper()}{title[1:]}s of models")
    line = f" The first {MOST_MODELS} of {rows.height} rows." if many else ""
    more = f" `--only {statistic}` also has pairs of models." if statistic == WINS else ""
    print_line(console, f"{title}: {legend}.{line}{more}", style="dim")


def show_rows(console: Console, estimates: pl.DataFrame, *, marks: Mapping[str, str]) -> None:
    """Print a table per statistic, followed by the reasons for missing numbers as footnotes.

    ``marks`` are appended to names of judges (``marks_of``).
    """
    for rows in estimates.partition_by("statistic", maintain_order=True):
        reasons = list(dict.fromkeys(rows["reason"].drop_nulls()))
        asked = differing(estimates, ("dataset", "prompt"))
        layout = partial(_cells, rows, reasons, asked, marks)
        _print_fitting(console, layout, rows["statistic"][0])
        _footnotes(console, reasons)
        console.print()


def show_gates(console: Console, gates: pl.DataFrame, about: Sequence[str] = ()) -> None:
    """Print a row per judge and gate of a scorecard; then footnotes and ``about``."""
    reasons = list(dict.fromkeys(gates["reason"].drop_nulls()))
    _print_fitting(console, partial(_gates, gates, reasons), SCORECARD)
    _footnotes(console, reasons)
    for line in (GATES_LEGEND, *filter(None, about)):
        print_line(console, line, style="dim")


def _print_fitting(console: Console, layout: Callable[[str], Cells], title: str) -> list[str]:
    """Print a table, with each interval beside its number or, in a narrow terminal, below it.

    Return the names of its columns.
    """
    columns, rows = layout(" ")
    if not fits(columns, rows, console.width):
        columns, rows = layout("\n")
    print_rows(console, columns, rows, title)
    return columns


def missing(log: pl.DataFrame, statistic: str) -> str:
    """Say why a file gives no row of a statistic, as far as its columns show."""
    if columns := lacking(filled_columns(log)).get(statistic):
        about = VoteLog.descriptions() | {OWN_AUTHOR: ""}
        named = (f"`{column}` ({about[column].split(';')[0]})" for column in columns)
        none = f"the file has no values in the column {listing(list(named))}"
        return "no author is named like a judge" if columns == (OWN_AUTHOR,) else none
    if (
        "contests" in STATISTICS[statistic].reads
        and not (log["anchor_author"] != log["target_author"]).any()
    ):
        return "all control pairs have two answers of one author"
    if statistic == "drift" and log["wave"].n_unique() < 2:
        return "all votes belong to one wave; see the column `wave`"
    if "shifts" in STATISTICS[statistic].reads and not log["perturbation"].count():
        return ARMS
    if statistic in TWO_JUDGES and log["judge"].n_unique() < 2:
        return "the file has one judge, and this statistic compares two"
    return f"the votes do not suffice; `voirdire list {statistic}` says what it needs"


def _judges(estimates: pl.DataFrame, effects: Sequence[dict[str, Any]], between: str) -> Cells:
    """Lay out a row per judge, each interval beside its number or below it.

    ``effects`` are the rows of ``mart.bias`` about position.
    """
    whole = estimates.filter(pl.col("perturbation").is_null())
    cell = ("judge", *differing(whole))

    def of(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in cell)

    found = {(row["statistic"], row["subgroup"], *of(row)): row for row in whole.to_dicts()}
    known = {place[:2] for place, row in found.items() if row["estimate"] is not None}
    if OF_JUDGES["PC"] in known:
        known.discard(OF_JUDGES["logits"])
    if OF_JUDGES["first slot"] in known:
        # With the columns of position, the table would be wider than 80 columns.
        known.discard(OF_JUDGES["beyond chance"])
    shown = {heading: place for heading, place in OF_JUDGES.items() if place in known}
    words = {}
    for row in effects:
        slot = favoured(row).removeprefix("toward the ")
        words[of(row)] = f"{row['finding'] or REFUSED}{f' ({slot})' if slot else ''}"
    judges = whole.filter(statistic="valid_rate").unique(cell, maintain_order=True).sort(cell)
    table = [
        {
            "judge": _who(row, between),
            **{name: row[name] for name in cell[1:]},
            "n": row["n"],
            **_measured(
                {heading: found.get((*at, *of(row))) for heading, at in shown.items()}, between
            ),
            "position": words.get(of(row), ""),
        }
        for row in judges.to_dicts()
    ]
    return _filled_columns(table, always=("judge", "n"))


def _measured(found: Mapping[str, dict[str, Any] | None], between: str) -> dict[str, str]:
    """Write the numbers of a judge, with the items behind those that rest on different ones."""
    sizes = {heading: row["n"] for heading in WITH_LABELS if (row := found.get(heading))}
    named = sizes if len({*sizes.values()}) > 1 else {}
    return {
        heading: bounded(row, between)
        + (f"{between}of {named[heading]}" if heading in named else "")
        for heading, row in found.items()
    }


def _cells(
    rows: pl.DataFrame,
    reasons: Sequence[str],
    asked: Sequence[str],
    marks: Mapping[str, str],
    between: str,
) -> Cells:
    # Counts have no intervals; a share may be whole.
    counts = (rows["estimate"].round() == rows["estimate"]).all() and rows["low"].is_null().all()
    digits = 0 if counts else 3
    levels = rows["level"].drop_nulls().unique()
    interval = f"{100 * levels[0]:.3g} %" if len(levels) == 1 else "interval"
    table = [
        {
            "judge": with_mark(row["judge"], marks, between),
            **{name: row[name] for name in (*asked, "wave")},
            "perturbation": row["perturbation"] or "",
            # The subgroup may be another judge. A row about two judges is simulated if either is,
            # so in other rows no mark is needed.
            "subgroup": with_mark(
                row["subgroup"] or "", marks if row["simulated"] else {}, between
            ),
            "estimate": _number(row["estimate"], digits),
            interval: ""
            if row["low"] is None or row["high"] is None
            else f"[{_number(row['low'], 3)}, {_number(row['high'], 3)}]",
            "p": _p(row["p_value"]),
            "p adj.": _p(row["p_adjusted"]),
            "finding": row["finding"] or "",
            "n": row["n"],
            "clusters": row["clusters"],
            "why": _mark(row, reasons),
        }
        for row in rows.to_dicts()
    ]
    if all(row["n"] == row["clusters"] for row in table):
        table = [{**row, "clusters": ""} for row in table]
    return _filled_columns(table, always=("judge", "estimate", "n"))


def _gates(gates: pl.DataFrame, reasons: Sequence[str], between: str) -> Cells:
    asked = differing(gates)
    table = [
        {
            "judge": _who(row, between),
            **{name: row[name] for name in asked},
            "gate": row["perturbation"] or row["gate"],
            "verdict": gate_verdict(row | {"value": row["estimate"]}),
            "margin": number(row["margin"]),
            "value": bounded(row, between),
            "tolerance": number(row["tolerance"]),
            "why": _mark(row, reasons),
        }
        for row in gates.rename({"value": "estimate"}).to_dicts()
    ]
    return _filled_columns(table)


def _filled_columns(table: Sequence[dict[str, Any]], always: Sequence[str] = ()) -> Cells:
    headings = table[0] if table else always
    columns = [c for c in headings if c in always or any(row[c] != "" for row in table)]
    return columns, [[row[c] for c in columns] for row in table]


def _mark(row: dict[str, Any], reasons: Sequence[str]) -> str:
    return f"({reasons.index(row['reason']) + 1})" if row["reason"] else ""


def _footnotes(console: Console, reasons: Sequence[str]) -> None:
    for mark, reason in enumerate(reasons, 1):
        print_line(console, f"({mark}) {reason}", style="dim")


def _who(row: dict[str, Any], between: str = " ") -> str:
    return f"{row['judge']}{between}(simulated)" if row["simulated"] else str(row["judge"])


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return ""
    return number(value, digits) if abs(value) < 1000 else f"{value:.4g}"


def _p(value: float | None) -> str:
    return "" if value is None else p_value(value)


def show_changes(console: Console, study: Study, warehouse: Warehouse) -> None:
    """Say what changed since the first named wave, in the word of the gate drift."""
    mine = pl.DataFrame({"study": [study.name]})
    drifts, gates = warehouse.read_all([Drifts, Gates], mine)
    if drifts.is_empty():
        print_line(
            console,
            "Drift cannot be measured yet, because no earlier named wave asked these judges the "
            "same questions. Audits without --wave are not compared.",
        )
    else:
        show_drift(console, drifts, of_wave(gates, study.wave))
        changed = drifts.filter(pl.col("state").is_in(CHANGED))["judge"].unique().to_list()
        if changed:
            filters = {"judge": changed[0] if len(changed) == 1 else None}
            command = show_command(study.name, warehouse.path, filters, "changed")
            print_line(console, f"Replies before and after: `{command}`.")


def show_drift(console: Console, drifts: pl.DataFrame, gates: pl.DataFrame) -> None:
    """Print suspected and confirmed drift, the verdict of the gate, and comparisons by state."""
    if drifts.is_empty():
        return
    console.print()
    print_line(console, plain(did_change(drifts, gates)))
    changed = drifts.filter(pl.col("state").is_in(CHANGED)).sort("wave_number", "judge", "measure")
    if changed.height:
        columns = ["judge", "from", "to", "perturbation", "measure", "change", "state"]
        rows = [
            [
                *(row[name] or "" for name in ("judge", "base", "wave", "perturbation")),
                MEASURES[row["measure"]],
                bounded(row),
                row["state"],
            ]
            for row in changed.to_dicts()
        ]
        print_rows(console, columns, rows, "Suspected and confirmed changes between waves")
    unmeasured = drifts.filter(pl.col("state") == "not measured")
    missing = unmeasured["reason"].drop_nulls().value_counts(sort=True)
    why = "; ".join(
        row["reason"] if missing.height == 1 else f"{row['count']} x {row['reason']}"
        for row in missing.to_dicts()
    )
    explained = {"quiet": "no alert", "not measured": why}
    counted = listing(
        [
            f"{row['count']} {row['state']}{f' ({said})' if said else ''}"
            for row in drifts["state"].value_counts(sort=True).to_dicts()
            for said in [explained.get(row["state"])]
        ]
    )
    print_line(console, f"Comparisons by judge, wave and measure: {counted}.")


def _rest(estimates: pl.DataFrame, shown: set[str]) -> str:
    """Count the rows of each statistic, except those that the table shows."""
    counts = dict(estimates["statistic"].value_counts().iter_rows())
    found = {
        name: sum(counts.get(row, 0) for row in entry.gives if row not in shown)
        for name, entry in STATISTICS.items()
    }
    return ", ".join(f"{name} {many}" for name, many in found.items() if many)
