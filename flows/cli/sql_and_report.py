"""`voirdire sql`, `voirdire snapshot` and `voirdire report`: read results from the warehouse."""

import io
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows.cli.printing.live import Printer
from flows.cli.printing.ranking_table import say_outdated
from flows.cli.printing.tables import as_queried, fits, fits_folded, leading, print_line, print_rows
from flows.cli.printing.terminal import echo_data, interval, number
from flows.cli.questions import ALL, asked, next_steps, questions, require_study
from flows.publishing.csv_escaping import csv_text
from flows.publishing.pages import (
    report_path,
    run_of_results,
    stored_page,
    thresholds_of,
    write_pictures,
)
from flows.publishing.report_files import write_report_file
from flows.results.vote_summary import PERSONS
from schemas.judging import Shifts
from tasks.conclusions.rules import written_count
from tasks.conclusions.summary_scores import acceptability, least_margins
from tasks.gates.summaries import ALL_REASONS
from tasks.kit.command_line import say
from tasks.kit.defaults import DEFAULTS, Thresholds, limited_by
from tasks.kit.printable import several
from tasks.reporting.wording import count, shorten
from warehouse.atomic_files import write_private
from warehouse.descriptions import grains
from warehouse.path_checks import existing_path
from warehouse.store import StatementError, Warehouse, WarehouseError

SHOWN = 200
AS_LISTS = 3
"""Most rows that are printed as lists on a terminal too narrow for their columns."""
COLUMNS_NAMED = 6
TEXT_LINES = (4, 2)
"""Lengths of texts of a named query that are too long for a table, in lines of the output."""
ABOUT = ("study", "prompt", "wave", "simulated", "criterion", "kind")
"""Columns that say what the rows of a named query are about."""
OTHERS = re.compile(rf"; \d+ more reasons? in {re.escape(ALL_REASONS)}")
"""How many reasons a recommendation has beside those that its summary shows."""
QUERIES = (
    "`voirdire sql` lists the marts and questions, "
    '`voirdire sql "describe {}"` the columns of a mart. A query can read, but change nothing.'
)
"""The next step where a query does not run."""


FORMS = {
    **{form: form for form in ("json", "csv", "parquet")},
    **dict.fromkeys(("", "txt", "md"), "table"),
}
"""Suffix of a file -> format of its rows."""


def _form_of(output: Path | None) -> str:
    """Return the format that the suffix of a file names; raise ValueError if it names none."""
    suffix = output.suffix.lower().removeprefix(".") if output else ""
    if suffix in FORMS:
        return FORMS[suffix]
    raise ValueError(
        f"--output {output} ends with no known format. Name a file that ends with .csv, .json, "
        ".parquet or .txt, or give --format."
    )


def show_query(
    query: str | None,
    form: str | None,
    warehouse: Path | None,
    output: Path | None = None,
    *,
    ask: str | None = None,
    values: Sequence[str] = (),
) -> None:
    """Print the rows of a query or of a named question, or write them to a file.

    CSV is escaped against formula injection; on a terminal, control characters are replaced; JSON
    is unchanged. The file's suffix decides the default format, else it is a table. Without a query
    and a question, print what can be queried.
    """
    if query is not None and ask is not None:
        raise ValueError(f"--ask {ask!r:.200} cannot be given beside a query. Give one of them.")
    if values and ask is None:
        raise ValueError(
            f"--set {values[0]!r:.200} gives a value to a question. Name one with --ask QUESTION."
        )
    if query is None and ask is None:
        show_marts()
        return
    text, parameters = (query or "", {}) if ask is None else asked(ask, values)
    path = existing_path(warehouse)
    form = form or _form_of(output)
    if form == "parquet" and output is None:
        raise ValueError(
            "--format parquet cannot be printed. Name a file, as in --output rows.parquet."
        )
    try:
        require_study(Warehouse(path), parameters.get("study"))
        rows = Warehouse(path).query(text, parameters, marts=True)
    except WarehouseError as error:
        # In a line, without the mark that DuckDB puts below the query.
        lines = (" ".join(line.split()) for line in str(error).splitlines())
        said = " ".join(line for line in lines if line.strip("^"))
        if isinstance(error, StatementError):
            said += (
                f"{'' if said.endswith(('.', '!', '?')) else '.'} {QUERIES.format(_mart_of(text))}"
            )
        raise WarehouseError(said) from error
    except pl.exceptions.ComputeError as error:
        raise ValueError(
            f"a column has a type that cannot be shown: {str(error).splitlines()[0]} "
            "Cast it to text, as in `column::varchar`."
        ) from error
    say_outdated(Warehouse(path))
    if output is not None:
        write_private(output, _content(rows, form))
        say(f"Wrote {several(rows.height, 'row')} to {output}", err=True)
    elif form == "table":
        study = parameters.get("study")
        _print_table(Printer(), rows, study, named=ask is not None)
        if ask and rows.is_empty():
            say(f"{ask}: {questions()[ask].about}", err=True)
            for step in next_steps(Warehouse(path), ask, study):
                say(step, err=True)
    else:
        echo_data(_content(rows, form).decode())


def _mart_of(query: str) -> str:
    """Return the first mart that a query names; else one that every study has."""
    marts = {name for name, _ in grains()}
    named = re.findall(r"\b(?:from|join)\s+(?:mart\.)?(\w+)", query, re.IGNORECASE)
    return next((each for each in named if each in marts), "bias")


def _print_table(console: Console, rows: pl.DataFrame, study: str | None, *, named: bool) -> None:
    """Print rows, and on stderr their number and what is not shown.

    A few rows too wide for the width are printed as lists. If there are more, a terminal shows the
    first columns, and other output all columns, as lists with a line per value. If the rows of a
    named query are too wide, values that are the same in all rows are printed once, and only the
    first columns are shown.
    """
    shown, same, cut = rows.head(SHOWN), "", False
    if named:
        shown = _joined(shown)
    if named and rows.height > 1 and not fits(shown.columns, as_queried(shown), console.width):
        shown, same = _without_repeated(shown)
        shown, cut = _shortened(shown, console)
    different = shown.columns
    many = rows.height > AS_LISTS
    if many and (named or console.is_terminal):
        shown = shown[:, : _leading(shown, console) or None]
    if many and not fits_folded(shown.columns, as_queried(shown), console.width):
        shown, cut = _cut(shown, console.width - max(map(len, shown.columns)) - 2)
    print_rows(console, shown.columns, as_queried(shown))
    if same:
        print_line(console, f"In all rows: {same}.")
    notes = [count(rows.height, "row") if rows.height else "no rows"]
    if study == ALL:
        notes.append(f"{ALL} (--set study=NAME: one)")
    elif study:
        notes.append(f"study {study}")
    if rows.height > SHOWN:
        notes.append(f"the first {SHOWN} are shown, --format csv prints all")
    if cut:
        notes.append("long texts are cut, --format csv prints them whole")
    if hidden := different[shown.width :]:
        names = ", ".join(hidden[:COLUMNS_NAMED])
        more = ", ..." if len(hidden) > COLUMNS_NAMED else ""
        left = f"without {names}{more}: "
        if not named:
            left = f"{count(shown.width, 'column')} of {rows.width} shown, {left}select columns by "
            left += "name, or "
        notes.append(f"{left}use --format csv")
    say("; ".join(notes), err=True)


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Join columns that are read together, if they are neighbours.

    An estimate and the ends of its interval, and a number of questions and what it decides.
    """
    names = rows.columns
    for name, low, high in zip(names, names[1:], names[2:], strict=False):
        if (low, high) in ((f"{name}_low", f"{name}_high"), ("low", "high")):
            texts = [
                None if each is None else f"{number(each)} {interval(*ends)}".removesuffix(" -")
                for each, *ends in rows.select(name, low, high).iter_rows()
            ]
            rows = rows.with_columns(pl.Series(name, texts, pl.String)).drop(low, high)
    if "more_decide" in names:
        decides = written_count(pl.col("more_questions")) + " (" + pl.col("more_decide") + ")"
        rows = rows.with_columns(more_questions=decides).drop("more_decide")
    return rows


def _leading(rows: pl.DataFrame, console: Console) -> int:
    return leading(rows.columns, as_queried(rows), console.width)


def _shortened(rows: pl.DataFrame, console: Console) -> tuple[pl.DataFrame, bool]:
    """Cut texts until all columns fit, or to the fewest lines; return whether one was cut."""
    short, cut = rows, False
    for lines in TEXT_LINES:
        if _leading(short, console) < rows.width:
            short, cut = _cut(rows, lines * console.width)
    return short, cut


def _cut(rows: pl.DataFrame, width: int) -> tuple[pl.DataFrame, bool]:
    """Return rows in which each text is a line of at most this width, and whether one was cut."""
    texts = pl.col(pl.String).str.split("\n").list.join(" ")
    short = rows.with_columns(texts.map_elements(partial(_short, width=width), pl.String))
    return short, not short.equals(rows)


def _short(text: str, width: int) -> str:
    """Cut a text, but keep how many other reasons there are."""
    count_of = OTHERS.search(text)
    if not count_of or len(text) <= width:
        return shorten(text, width=width)
    tail = count_of.group()
    return shorten(text.replace(tail, "", 1), width=width - len(tail)) + tail


def _without_repeated(rows: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Leave out columns without values, and columns of ``ABOUT`` that are the same in all rows.

    Return the others, and the latter as a text.
    """
    values = {each.name: each.unique().to_list() for each in rows}
    empty = [name for name, found in values.items() if {*map(str, found)} <= {"None", ""}]
    same = {
        name: found[0]
        for name, found in values.items()
        if name in ABOUT and name not in empty and len(found) == 1
    }
    words = {True: "{0}", False: "not {0}"}
    texts = [words.get(value, "{0} {1}").format(name, value) for name, value in same.items()]
    return rows.drop(*empty, *same), ", ".join(texts)


def show_marts() -> None:
    """List all marts and all questions, each with a line that says what it holds."""
    found = [(name, each.about) for name, each in questions().items()]
    print_rows(Printer(), ("question (--ask)", "answer"), found)
    click.echo()
    print_rows(Printer(), ("mart", "rows"), grains())
    say(
        '\nTry: voirdire sql "from bias", voirdire sql "describe bias", '
        "voirdire sql --ask which_judge --set study=quick"
    )


def _plain(value: Any) -> int | float | str:
    """Return what JSON has no form for: decimals, as of `sum` of integers, and times."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def _content(rows: pl.DataFrame, form: str) -> bytes:
    """Return rows as the content of a file."""
    if form == "parquet":
        buffer = io.BytesIO()
        rows.write_parquet(buffer)
        return buffer.getvalue()
    if form == "csv":
        return csv_text(rows).encode()
    if form == "json":
        numbers = rows.with_columns(pl.selectors.float().fill_nan(None))  # JSON has no NaN
        return (json.dumps(numbers.to_dicts(), indent=1, default=_plain) + "\n").encode()
    page = io.StringIO()
    print_rows(Printer(file=page, width=200), rows.columns, as_queried(rows))
    return page.getvalue().encode()


def write_snapshot(output: Path | None, warehouse: Path | None) -> None:
    """Copy the warehouse for tools that keep a file open, and print where the copy is."""
    path = existing_path(warehouse)
    target = (output or path.with_name(f"{path.stem}.snapshot{path.suffix}")).absolute()
    Warehouse(path).snapshot(target)
    click.echo(target)


def rewrite_report(
    study: str,
    out: Path | None,
    warehouse: Path | None,
    *,
    number: bool = False,
    pictures: Path | None = None,
) -> None:
    """Write a study's report, and its charts, from the results that are in the warehouse."""
    path = existing_path(warehouse, study)
    target = out or report_path(path, study)
    from flows.publishing.calibration_page import stored_calibration

    store = Warehouse(path)
    say_outdated(store)
    calibrated = stored_calibration(store, study)
    stored = calibrated or stored_page(store, study)
    write_report_file(target, stored.page)
    click.echo(target)
    if pictures:
        say(f"{len(write_pictures(stored.drawn, pictures))} pictures in {pictures}.", err=True)
    if number and not calibrated:
        show_numbers(store, study, thresholds_of(run_of_results(store, study)))


def show_numbers(warehouse: Warehouse, study: str, thresholds: Thresholds = DEFAULTS) -> None:
    """Print two summary scores per judge, and why the report has neither."""
    results = pl.DataFrame({"study": [study]})
    gates = warehouse.query("select * from mart.scorecard where study = $study", {"study": study})
    # People may have judged few samples, which would leave few for comparing models.
    persons = warehouse.query(PERSONS, [study])["judge"]
    models = warehouse.read(Shifts, among=results).filter(~pl.col("judge").is_in(persons.implode()))
    with limited_by(thresholds):
        chances = acceptability(cast("DataFrame[Shifts]", models))
    both = (
        least_margins(gates)
        .join(chances, on=["dataset", "prompt", "wave", "judge"], how="left", suffix="_unranked")
        .sort("dataset", "prompt", "wave", "judge")
    )
    shown = both.select(
        pl.col("judge") + pl.when("simulated").then(pl.lit(" (simulated)")).otherwise(pl.lit("")),
        "wave",
        pl.col("margin").map_elements(number, pl.String).alias("least margin"),
        pl.col("gate").alias("of"),
        pl.col("first").map_elements(number, pl.String).alias("chance of rank 1"),
    )
    print_rows(Printer(), shown.columns, shown.rows())
    for what, reason in (("least margin", "reason"), ("chance of rank 1", "reason_unranked")):
        for (why,), rows in both.drop_nulls(reason).group_by(reason, maintain_order=True):
            judges = ", ".join(rows["judge"].unique(maintain_order=True))
            say(f"No {what} for {judges}: {why}.")
    say(
        "least margin: margin of the worst gate, which is the share of its tolerance left at the "
        "worse end of the interval (1: all of it, 0: none, below 0: tolerance exceeded); empty if "
        "a gate has no margin, or too few questions. chance of rank 1: share of 10,000 random "
        "draws of weights (Dirichlet) and questions in which the perturbations move the judge "
        "least. Prefer the scorecard: a single score depends on the weights of the biases."
    )
