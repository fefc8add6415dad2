"""Looking at what is there: SQL, reports and catalogues."""

import inspect
import json
from pathlib import Path
from typing import cast

import click
import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows._pages import report_path, stored_page, write_page
from flows._sheets import guarded
from flows._terminal import plain_table, print_rows
from flows.studies import STUDIES
from schemas.judging import Shifts
from schemas.keys import PEOPLE
from tasks._beside import BESIDE
from tasks._catalogue import unknown
from tasks.datasets import DATASETS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, provider_of
from tasks.scorecard import acceptability, least_margins
from tasks.scorings import SCORINGS
from tasks.statistics import STATISTICS
from warehouse.peek import default_path, require_file
from warehouse.store import Warehouse

SHOWN = 200


def show_query(query: str, form: str, warehouse: Path | None) -> None:
    """Print the rows of a query; CSV is guarded against spreadsheets, JSON is as it is."""
    path = Path(warehouse or default_path())
    require_file(path, "Run `voirdire audit` first.")
    try:
        rows = Warehouse(path).query(query)
    except pl.exceptions.ComputeError as error:
        raise ValueError(
            f"a column has a type that cannot be shown: {str(error).splitlines()[0]} "
            "Cast it, as in `interval::varchar`."
        ) from error
    if form == "json":
        numbers = rows.with_columns(pl.selectors.float().fill_nan(None))  # JSON has no NaN
        click.echo(json.dumps(numbers.to_dicts(), indent=1, default=str))
    elif form == "csv":
        click.echo(guarded(_flat(rows)).write_csv(), nl=False)
    else:
        print_rows(Console(), rows.columns, rows.head(SHOWN).rows())
        if rows.is_empty():
            click.echo("no rows", err=True)
        if rows.height > SHOWN:
            click.echo(f"{SHOWN} of {rows.height} rows; --format csv shows all.", err=True)


def _flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Write lists and structs, which CSV lacks, as JSON."""
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    return rows.with_columns(
        pl.Series(
            name,
            [
                None if value is None else json.dumps(value, default=str)
                for value in rows.select(name).to_dict(as_series=False)[name]
            ],
            dtype=pl.String,
        )
        for name in nested
    )


def rewrite_report(
    study: str, out: Path | None, warehouse: Path | None, *, number: bool = False
) -> None:
    """Write a study's report from the results that are in the warehouse."""
    path = Path(warehouse or default_path()).absolute()
    require_file(path, f"Run `voirdire audit {study}` first.")
    target = out or report_path(path, study)
    from flows._calibration_page import stored_calibration

    store = Warehouse(path)
    calibrated = stored_calibration(store, study)
    write_page(calibrated or stored_page(store, study), target)
    click.echo(target)
    if number and not calibrated:
        show_numbers(store, study)


def show_numbers(warehouse: Warehouse, study: str) -> None:
    """Print one number per judge, in two ways, and why neither is in the report."""
    results = pl.DataFrame({"study": [study]})
    gates = warehouse.query("select * from mart.scorecard where study = $study", {"study": study})
    # People, who may have judged few samples, would narrow what models are compared on.
    models = warehouse.read(Shifts, among=results).filter(
        ~pl.col("judge").str.starts_with(f"{PEOPLE}/")
    )
    chances = acceptability(cast("DataFrame[Shifts]", models))
    both = (
        least_margins(gates)
        .join(chances, on=["dataset", "prompt", "wave", "judge"], how="left", suffix="_unranked")
        .sort("dataset", "prompt", "wave", "judge")
    )
    shown = (
        both.select(
            pl.col("judge")
            + pl.when("simulated").then(pl.lit(" (simulated)")).otherwise(pl.lit("")),
            "wave",
            pl.col("margin").round(2).alias("least margin"),
            pl.col("gate").alias("of"),
            pl.col("first").round(2).alias("chance of rank 1"),
        )
    )  # fmt: skip
    print_rows(Console(), shown.columns, shown.rows())
    for what, reason in (("least margin", "reason"), ("chance of rank 1", "reason_unranked")):
        for (why,), rows in both.drop_nulls(reason).group_by(reason, maintain_order=True):
            whom = ", ".join(rows["judge"].unique(maintain_order=True))
            click.echo(f"No {what} of {whom}: {why}.")
    click.echo(
        "least margin: what is left of the tolerance at the worse end of the interval of the worst "
        "gate (1 all, 0 none, below 0 beyond); none if a gate cannot be told. chance of rank 1: "
        "share of 10,000 draws of weights (Dirichlet) and questions in which the perturbations "
        "move a judge least. Both hide what the scorecard shows: weights decide who wins."
    )


def explain(name: str) -> None:
    """Print what a statistic, or the one that makes a row of that name, measures and how.

    Likewise of what is told beside estimates.
    """
    if beside := BESIDE.get(name):
        click.echo(f"{name}: {beside.about}\n")
        click.echo(inspect.getdoc(beside.made_by))
        return
    makers = {row: entry for entry in STATISTICS.values() for row in entry.gives}
    found = {**makers, **STATISTICS}
    if name not in found:
        raise unknown("statistic", name, sorted([*found, *BESIDE]))
    entry = found[name]
    click.echo(f"{entry.name}: gives {', '.join(entry.gives)}; source {entry.source}\n")
    click.echo(inspect.getdoc(entry.measure))


def show_catalogues() -> None:
    """Print every name that an option takes."""
    console = Console()
    shelves = {
        "datasets": [(name, entry.summary) for name, entry in DATASETS.items()],
        "perturbations": [
            (name, f"{entry.kind}, {entry.bias}: {entry.summary}")
            for name, entry in PERTURBATIONS.items()
        ],
        "judges": [
            (name, ("simulated: " if provider_of(name).simulated else "") + judge.about)
            for name, judge in JUDGES.items()
        ],
        "judge prompts": [(name, prompt.source) for name, prompt in PROMPTS.items()],
        "statistics": [(name, entry.summary) for name, entry in STATISTICS.items()],
        "beside estimates": [(name, entry.about) for name, entry in BESIDE.items()],
        "metrics": [(name, entry.summary) for name, entry in SCORINGS.items()],
        "studies": [(name, file.about) for name, file in STUDIES.items()],
    }
    for title, rows in shelves.items():
        console.print(plain_table(("name", "about"), rows, title))
        console.print()
