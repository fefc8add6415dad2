"""Estimates of votes collected elsewhere; no server, no model, and no file unless asked for."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows._drift import drift_in
from flows._keep import Measures, keep_measures, require_free
from flows._row import CODE_VERSION
from flows._terminal import LEGEND, print_rows, result_table
from schemas.judging import VoteLog
from schemas.results import Drifts, Estimates, Findings
from tasks._catalogue import unknown
from tasks._words import with_who
from tasks.aggregate import count_votes, match_groups, match_models, measure_all, tally_votes
from tasks.annotate import annotate
from tasks.conclude import conclude
from tasks.drift import fresh_votes
from tasks.read_votes import read_votes
from tasks.statistics import STATISTICS
from tasks.statistics._beta import share_interval
from warehouse.store import Saving, Warehouse

KEY = list(Estimates.place().key)
TESTED = ("p_value", "p_adjusted", "finding")
ADDED = (
    "p_adjusted", "adjustment", "finding", "excluded", "votes", "invalid_rate", "design", "floor",
    "epoch", "seed", "code_version",
)  # fmt: skip
"""Columns of ``mart.numbers`` that a row of JSON or CSV has besides those of an estimate."""


def estimates_of(vote_log: DataFrame[VoteLog], mode: str) -> DataFrame[Estimates]:
    """Apply every statistic of the catalogue to a vote log; drift is of fresh votes only."""
    return measures_of(vote_log, mode).estimates


def measures_of(vote_log: DataFrame[VoteLog], mode: str) -> Measures:
    """Return the estimates of a vote log with the frames that they come from."""
    tallies = count_votes(vote_log)
    verdicts = tally_votes(tallies, mode)
    shifts = match_groups(verdicts)
    annotations = annotate(tallies)
    estimates = measure_all(
        tallies=tallies, shifts=shifts, contests=match_models(tallies), annotations=annotations
    )
    return Measures(verdicts, shifts, annotations, _with_fresh_drift(estimates, vote_log, mode))


def _with_fresh_drift(
    estimates: DataFrame[Estimates], vote_log: DataFrame[VoteLog], mode: str
) -> DataFrame[Estimates]:
    fresh = fresh_votes(vote_log)
    if fresh["choice"].null_count() == vote_log["choice"].null_count():
        return estimates
    drift = STATISTICS["drift"]
    others = estimates.filter(~pl.col("statistic").is_in(drift.gives))
    new = count_votes(fresh)
    changed = drift(tallies=new, shifts=match_groups(tally_votes(new, mode)))
    return Estimates.of(pl.concat([others, changed]))


def show_measures(
    votes: Path,
    mode: str,
    form: str,
    only: Sequence[str],
    warehouse: Path | None = None,
    *,
    interval: str = "wilson",
) -> None:
    """Print the estimates of a file of votes, after saving all that follows from it if asked to."""
    rows = _rows_of(only)
    log = read_votes(votes)
    if warehouse:
        require_free(votes, warehouse)
    with share_interval(interval):
        measures = measures_of(log, mode)
    estimates = measures.estimates
    if warehouse:
        study = keep_measures(votes, mode, log, measures, warehouse)
        click.echo(
            f"{log.height} votes and all results saved as study {study} in {warehouse}. "
            f"The report: `voirdire report {study} --warehouse {warehouse}`.",
            err=True,
        )
    bare = form == "table" and not only and estimates["perturbation"].count()
    shelf = _shelved(log, measures, mode, tables=bool(bare))
    if bare:
        console = Console()
        console.print(result_table(shelf.to_dicts(), f"{votes.name}, mode {mode}", console))
        click.echo(f"{LEGEND} `--only NAME` shows one statistic, `--format json` all of them.")
        return
    told = estimates.join(
        shelf.select(*KEY, *ADDED), on=KEY, how="left", nulls_equal=True, maintain_order="left"
    )
    chosen = told.filter(pl.col("statistic").is_in(rows)) if only else told
    if form == "json":
        click.echo(json.dumps(chosen.to_dicts(), indent=1))
    elif form == "csv":
        click.echo(chosen.write_csv(), nl=False)
    else:
        shown = with_who(chosen).select(
            "statistic",
            pl.col("who").alias("judge"),
            "simulated",
            "subgroup",
            "perturbation",
            "estimate",
            "low",
            "high",
            *(c for c in TESTED if chosen[c].count()),
            "n",
            "clusters",
            "reason",
        )
        print_rows(Console(), shown.columns, shown.rows())


def _rows_of(names: Sequence[str]) -> list[str]:
    """Return the rows that statistics make, each named by its own name or its statistic's."""
    gives = {name: entry.gives for name, entry in STATISTICS.items()}
    single = {row: (row,) for rows in gives.values() for row in rows}
    known = {**single, **gives}
    for name in names:
        if name not in known:
            raise unknown("statistic", name, sorted(known))
    return [row for name in names for row in {*known[name], *single.get(name, ())}]


def _shelved(
    log: DataFrame[VoteLog], measures: Measures, mode: str, *, tables: bool
) -> pl.DataFrame:
    """Read a mart off a warehouse that is thrown away: what an audit ends with, or all numbers."""
    findings = conclude(measures.estimates)
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(Path(folder) / "measure.duckdb")
        savings = [Saving(Estimates, measures.estimates), Saving(Findings, findings)]
        if not tables:
            savings += [Saving(Drifts, drift_in(log, mode)), Saving(VoteLog, log)]
        warehouse.save(savings, run="measure", study="measure")
        if tables:
            return warehouse.query(
                "select * from mart.bias "
                "order by judge, dataset, prompt, wave, kind desc, perturbation"
            )
        return warehouse.query(
            "select * replace (coalesce(subgroup, '') as subgroup, $code as code_version) "
            "from mart.numbers",
            {"code": CODE_VERSION},
        )
