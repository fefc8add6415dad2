"""`voirdire measure`: compute and print the statistics of a file of votes."""

import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click
import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows.cli.measure_tables import missing, show_gates, show_rows, show_summary
from flows.cli.terminal import echo_data, say
from flows.publishing.csv_escaping import csv_text
from flows.results.drift import drift_in
from flows.results.saved_votes import require_free, save_file
from flows.running.run_row import CODE_VERSION
from schemas.frame import Frame
from schemas.judging import VoteLog
from schemas.results import Drifts, Estimates
from tasks.conclusions.derived_columns import COLUMNS, SCORECARD
from tasks.conclusions.scorecard import scorecard
from tasks.inference.intervals import share_interval
from tasks.kit.catalogue import unknown
from tasks.readers.votes import read_votes
from tasks.reporting.summary import marks_of
from tasks.results import Results, results_of_file
from tasks.statistics import STATISTICS
from warehouse.store import Saving, Warehouse

KEY = list(Estimates.place().key)
ADDED = (
    "p_adjusted",
    "adjustment",
    "finding",
    "p_holm",
    "p_by",
    "e_rejected",
    "shrunk",
    "shrunk_error",
    "votes",
    "invalid_rate",
    "design",
    "epoch",
    "code_version",
)
"""Columns of ``mart.numbers`` that a row of JSON or CSV has besides those of an estimate."""


def show_measures(
    votes: Path,
    mode: str,
    form: str,
    only: Sequence[str],
    warehouse: Path | None = None,
    *,
    interval: str = "wilson",
) -> None:
    """Print the estimates of a file of votes; with a warehouse, save them there first."""
    gates = SCORECARD in only
    if gates and set(only) != {SCORECARD}:
        raise ValueError(
            f"--only {SCORECARD} shows gates, not estimates, and cannot be combined with other "
            "names. Run the command once for each."
        )
    rows = [] if gates else _rows_of(only)
    log = read_votes(votes)
    if warehouse:
        require_free(votes, warehouse)
    with share_interval(interval):
        results = results_of_file(log, mode)
    estimates = results.estimates
    if warehouse:
        study = save_file(votes, mode, log, results, warehouse)
        click.echo(
            f"{log.height} votes and all results saved as study {study} in {warehouse}. "
            f"`voirdire report {study} --warehouse {warehouse}` writes the report.",
            err=True,
        )
    bare = form == "table" and not only
    if bare:
        title = f"{votes.name}, mode {mode}"
        show_summary(Console(), title, estimates, _bias(results), drift_in(log, mode))
        return
    if gates:
        found = scorecard(estimates, results.findings, drift_in(log, mode))
        _show(found, form, show_gates)
        return
    rows_with_derived = estimates.join(
        _numbers(log, results, mode), on=KEY, how="left", nulls_equal=True, maintain_order="left"
    )
    chosen = (
        rows_with_derived.filter(pl.col("statistic").is_in(rows)) if only else rows_with_derived
    )
    persons = set(log.filter("human")["judge"].cast(pl.String))
    _show(chosen, form, partial(show_rows, marks=marks_of(estimates, persons)))
    present = set(chosen["statistic"])
    for name, statistic in _asked(only):
        if present.isdisjoint(_rows_of([name])):
            say(f"{name}: no rows, because {missing(log, statistic)}.", err=True)


def _show(
    rows: pl.DataFrame, form: str, show_table: Callable[[Console, pl.DataFrame], None]
) -> None:
    if form == "json":
        echo_data(json.dumps(rows.to_dicts(), indent=1) + "\n")
    elif form == "csv":
        echo_data(csv_text(rows))
    else:
        show_table(Console(), rows)


def _rows_of(names: Sequence[str]) -> list[str]:
    """Return the row names that each given name stands for: a statistic or one of its rows."""
    gives = {name: entry.gives for name, entry in STATISTICS.items()}
    single = {row: (row,) for rows in gives.values() for row in rows}
    known = {**single, **gives}
    for name in names:
        if name in COLUMNS:
            raise ValueError(
                f"{name!r} is a derived column, not a statistic. `--format json` or `--format csv` "
                f"prints it, and `voirdire list {name}` explains it."
            )
        if name not in known:
            raise unknown("statistic", name, sorted([*known, SCORECARD]))
    return [row for name in names for row in {*known[name], *single.get(name, ())}]


def _asked(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each name with the statistic that computes it."""
    makers = {row: name for name, entry in STATISTICS.items() for row in entry.gives}
    return [(name, name if name in STATISTICS else makers[name]) for name in names]


def _bias(results: Results) -> pl.DataFrame:
    """Return what an audit ends with: the rows of ``mart.bias``."""
    return _query_temporary(
        results.concluded(Drifts.empty()),
        "select * from mart.bias "
        "order by judge, dataset, prompt, wave, kind = 'position', kind desc, perturbation",
    )


def _numbers(log: DataFrame[VoteLog], results: Results, mode: str) -> pl.DataFrame:
    """Return what ``mart.numbers`` adds to each estimate."""
    found = _query_temporary(
        results.concluded(drift_in(log, mode)),
        "select * replace (coalesce(subgroup, '') as subgroup) from mart.numbers",
    )
    return found.with_columns(code_version=pl.lit(CODE_VERSION)).select(*KEY, *ADDED)


def _query_temporary(
    frames: Sequence[tuple[type[Frame], pl.DataFrame]], query: str
) -> pl.DataFrame:
    """Query results in a temporary warehouse."""
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(Path(folder) / "measure.duckdb")
        warehouse.save([Saving(*each) for each in frames], run="measure", study="measure")
        return warehouse.query(query)
