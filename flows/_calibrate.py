"""Judges against human annotators, on the command line."""

import json
from pathlib import Path
from typing import Any

import click
import polars as pl
from rich.console import Console

from flows._terminal import number, plain_table
from tasks._margins import Kind, Test
from tasks.alt_test import CURVE, AltTest, alt_test
from tasks.plan_annotators import describe_people, plan_annotators
from tasks.read_labels import read_labels
from tasks.scorings._function import find_scoring

JUDGE = (
    "judge", "metric", "epsilon", "epsilon_kind", "test", "winning_rate", "advantage_probability",
    "passed",
)  # fmt: skip
JUDGE_TOO = (
    "human_advantage_probability", "tied", "instances", "dropped", "unreadable", "reason"
)  # fmt: skip
ANNOTATOR = (
    "annotator", "n", "advantage_probability", "human_advantage_probability", "p_value", "rejected"
)  # fmt: skip
ANNOTATOR_TOO = ("tied", "test", "p_value_t", "p_value_score", "unreadable", "reason")
NAMED = 5
"""Annotators who are named in a note."""
LEGEND = (
    "winning rate: share of annotators left out whom the judge replaces at no loss beyond epsilon "
    "(Benjamini-Yekutieli, .05); .5 passes. AP: chance that the judge fits the others at least as "
    "well as the one left out; human AP: the reverse; tied: both."
)


def show_calibration(
    humans: Path,
    judges: Path | None,
    metric: str,
    form: str,
    *,
    epsilon: float,
    kind: Kind,
    test: Test,
    least: int,
    curve: bool,
    plan: bool,
) -> None:
    """Print which judges may replace people, or how many instances that takes to tell."""
    people = read_labels(humans)
    if plan:
        show_plan(people, metric, form, epsilon=epsilon, kind=kind, test=test)
        return
    if judges is None:
        raise ValueError("name the judges' labels: --judges FILE, or --plan to plan without them.")
    epsilons = sorted({epsilon, *(CURVE if curve else ())})
    found = alt_test(
        people, read_labels(judges), find_scoring(metric),
        epsilons=epsilons, kind=kind, test=test, least=least,
    )  # fmt: skip
    if form == "json":
        click.echo(json.dumps(as_objects(found, epsilon, curve=curve), indent=1))
    elif form == "csv":
        click.echo(as_rows(found).write_csv(), nl=False)
    else:
        _show_table(found, epsilon, kind, test, curve=curve)


def as_objects(found: AltTest, epsilon: float, *, curve: bool) -> list[dict[str, Any]]:
    """Return one object per judge, with its annotators, and what other margins would give."""
    objects = []
    for row in found.judges.filter(pl.col("epsilon") == epsilon).to_dicts():
        own = pl.col("judge") == row["judge"]
        annotators = found.annotators.filter(own, pl.col("epsilon") == epsilon)
        shown = {name: row[name] for name in JUDGE}
        shown["annotators"] = annotators.select(*ANNOTATOR, *ANNOTATOR_TOO).to_dicts()
        shown |= {name: row[name] for name in JUDGE_TOO}
        if curve:
            margins = found.judges.filter(own, pl.col("epsilon").is_in(CURVE))
            shown["curve"] = margins.select("epsilon", "winning_rate", "passed").to_dicts()
        objects.append(shown)
    return objects


def as_rows(found: AltTest) -> pl.DataFrame:
    """Return one row per judge, epsilon and annotator; a judge's own columns stand first."""
    key = ["judge", "metric", "epsilon", "epsilon_kind"]
    judges = found.judges.select(
        *JUDGE, *JUDGE_TOO
    ).rename({name: f"judge_{name}" for name in (*JUDGE[4:], *JUDGE_TOO)})  # fmt: skip
    annotators = found.annotators.select(*key, *ANNOTATOR, *ANNOTATOR_TOO)
    return judges.join(annotators, on=key, how="left", maintain_order="left_right")


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
        click.echo(pl.DataFrame(chances).write_csv(), nl=False)
        return
    if form == "json":
        found = {
            "annotators": like.annotators, "agreement": like.agreement, "accuracy": like.accuracy,
            "epsilon": epsilon, "epsilon_kind": kind, "test": test, "chances": chances,
            "instances": plan.instances, "worst_judge": plan.worst,
        }  # fmt: skip
        click.echo(json.dumps(found, indent=1))
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


def _show_table(found: AltTest, epsilon: float, kind: Kind, test: Test, *, curve: bool) -> None:
    console = Console()
    rows = [
        (
            row["judge"], number(row["winning_rate"]), number(row["advantage_probability"]),
            number(row["human_advantage_probability"]), number(row["tied"]), row["annotators"],
            row["instances"], {None: "-", True: "passes", False: "fails"}[row["passed"]],
        )
        for row in found.judges.filter(pl.col("epsilon") == epsilon).iter_rows(named=True)
    ]  # fmt: skip
    columns = ("judge", "winning rate", "AP", "human AP", "tied", "annotators", "instances", "")
    console.print(plain_table(columns, rows))
    if curve:
        _show_curve(console, found)
    click.echo(f"{kind} epsilon {number(epsilon)}, test {test}. {LEGEND}")
    for line in _notes(found, epsilon):
        click.echo(line)


def _show_curve(console: Console, found: AltTest) -> None:
    margins = found.judges.filter(pl.col("epsilon").is_in(CURVE))
    rows = [
        (name, *(number(rate) for rate in rates["winning_rate"]))
        for (name,), rates in margins.group_by("judge", maintain_order=True)
    ]
    console.print(plain_table(("winning rate at", *map(number, CURVE)), rows, "over epsilon"), "")


def _notes(found: AltTest, epsilon: float) -> list[str]:
    """Say what was left out, and what cannot be told."""
    judges = found.judges.filter(pl.col("epsilon") == epsilon)
    annotators = found.annotators.filter(pl.col("epsilon") == epsilon)
    doubted = judges.filter(pl.col("reason").is_not_null())
    notes = [f"{row['judge']}: {row['reason']}." for row in doubted.iter_rows(named=True)]
    people = annotators.unique("annotator", keep="first", maintain_order=True)
    lost = [
        *judges.select("judge", "unreadable").rows(),
        *people.select("annotator", "unreadable").rows(),
    ]  # fmt: skip
    for name, count in lost:
        notes += [f"{name}: labels that cannot be read, left out: {count}."] if count else []
    told = annotators.join(judges.drop_nulls("winning_rate").select("judge"), on="judge")
    untested = told.filter(pl.col("p_value").is_null()).select("annotator", "reason").unique()
    for (reason,), rows in untested.sort("annotator").group_by("reason", maintain_order=True):
        names = rows["annotator"].unique(maintain_order=True).to_list()
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        notes.append(f"Not tested: {', '.join(names[:NAMED])}{more} ({reason}).")
    return ["".join(c if c.isprintable() else "�" for c in note) for note in notes]
