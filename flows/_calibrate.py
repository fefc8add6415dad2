"""Judges against human annotators, on the command line: no server, unless one is asked for."""

import json
from pathlib import Path

import click
import polars as pl
from rich.console import Console

from flows._calibration import (
    Calibrated,
    Calibration,
    calibrate_labels,
    in_words,
    keep_calibration,
    labels_of,
    make_calibration,
    newer_votes,
    require_free,
)
from flows._calibration_shown import as_objects, as_rows, show_table
from flows._terminal import echo_data, number, plain_table
from tasks._margins import Kind, Test
from tasks.plan_annotators import describe_people, plan_annotators
from tasks.read_labels import read_labels
from warehouse.store import Warehouse


def show_calibration(
    study: str | None,
    humans: Path | None,
    judges: Path | None,
    form: str,
    *,
    metric: str,
    epsilon: float,
    kind: Kind,
    test: Test,
    least: int,
    curve: bool,
    plan: bool,
    name: str | None = None,
    warehouse: Path | None = None,
    pictures: Path | None = None,
    save: bool = True,
) -> None:
    """Print which judges may replace people, or how many instances that takes to tell."""
    calibration = make_calibration(
        name=name or ("unsaved" if not save or plan else None), study=study,
        humans=humans and str(humans.resolve()), judges=judges and str(judges.resolve()),
        metric=metric,
        epsilon=epsilon, epsilon_kind=kind, test=test, min_instances=least,
    )  # fmt: skip
    place = Warehouse(warehouse)
    if plan:
        people = read_labels(humans) if humans else labels_of(calibration, place)[0].humans
        show_plan(people, metric, form, epsilon=epsilon, kind=kind, test=test)
        return
    if save:
        require_free(calibration, place, name_given=bool(name))
    found = calibrate_labels(calibration, place)
    if newer := newer_votes(calibration, place):
        click.echo(f"{newer}.", err=True)
    if form == "json":
        echo_data(json.dumps(as_objects(found, curve=curve), indent=1) + "\n")
    elif form == "csv":
        echo_data(as_rows(found, curve=curve).write_csv())
    else:
        show_table(calibration, found, curve=curve)
    if save:
        _keep(calibration, found, place)
    if pictures:
        from flows._calibration_page import write_pictures

        files = write_pictures(found, pictures)
        click.echo(f"{len(files)} pictures in {pictures}.", err=True)


def _keep(calibration: Calibration, found: Calibrated, place: Warehouse) -> None:
    """Save all and write the page; where they are goes to the other stream."""
    from flows._calibration_page import publish_calibration

    row = keep_calibration(calibration, found, place)
    page = publish_calibration(found, row, place)
    click.echo(
        f"{in_words(calibration, found.tests)}. Saved as {calibration.name} in {place.path}; "
        f"report: {page}",
        err=True,
    )


def show_plan(
    people: pl.DataFrame, metric: str, form: str, *, epsilon: float, kind: Kind, test: Test
) -> None:
    """Print how many instances a judge as accurate as these people needs."""
    if metric != "accuracy":
        raise ValueError(
            f"planning simulates names that agree or not: metric accuracy, not {metric}."
        )
    like = describe_people(people)
    plan = plan_annotators(like, epsilon=epsilon, kind=kind, test=test)
    chances = [{"instances": size, "chance": chance} for size, chance in plan.chances.items()]
    if form == "csv":
        echo_data(pl.DataFrame(chances).write_csv())
        return
    if form == "json":
        found = {
            "annotators": like.annotators, "agreement": like.agreement, "accuracy": like.accuracy,
            "epsilon": epsilon, "epsilon_kind": kind, "test": test, "chances": chances,
            "instances": plan.instances, "worst_judge": plan.worst,
        }  # fmt: skip
        echo_data(json.dumps(found, indent=1) + "\n")
        return
    rows = [(size, f"{chance:.3f}") for size, chance in plan.chances.items()]
    console = Console()
    console.print(plain_table(("instances", "chance to pass"), rows))
    click.echo(
        f"{like.annotators} people who agree in {number(like.agreement)} of pairs "
        f"({len(like.frequencies)} labels), so each is right in {number(like.accuracy)}, if they "
        f"err alike; {kind} epsilon {number(epsilon)}; a judge as accurate as they are."
    )
    if plan.instances is None:
        click.echo("None of these numbers gives a chance of .80.")
    else:
        gap = number(plan.worst)
        click.echo(
            f"{plan.instances} instances that all label give at least .80. Then a judge less "
            f"accurate by {gap} passes half the time: that is what this epsilon allows."
        )
