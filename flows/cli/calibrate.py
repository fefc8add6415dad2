"""`voirdire calibrate`: run a calibration without a server and print its results."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl
from rich.console import Console

from flows.cli.terminal import echo_data, number, plain_table
from flows.publishing.csv_escaping import guarded
from flows.results.calibration import (
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
from tasks.calibration.alt_test import CURVE
from tasks.calibration.non_inferiority import Kind, Test
from tasks.calibration.planner import Simulation, describe_people, plan_annotators
from tasks.readers.labels import read_labels
from tasks.reporting.calibration_report import (
    Agreement,
    about_people,
    as_object,
    datasets_of,
    judge_rows,
)
from tasks.reporting.wording import clean, short_names, with_who
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
    """Print which judges may replace people, or plan how many instances the test needs."""
    calibration = make_calibration(
        name=name or ("unsaved" if not save or plan else None),
        study=study,
        humans=humans and str(humans.resolve()),
        judges=judges and str(judges.resolve()),
        metric=metric,
        epsilon=epsilon,
        epsilon_kind=kind,
        test=test,
        min_instances=least,
    )
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
        from flows.publishing.calibration_page import write_pictures

        files = write_pictures(found, pictures)
        click.echo(f"{len(files)} pictures in {pictures}.", err=True)


def _keep(calibration: Calibration, found: Calibrated, place: Warehouse) -> None:
    """Save the results and write the report; print their places to stderr."""
    from flows.publishing.calibration_page import publish_calibration

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
    """Print the chance that a judge as accurate as these people passes, by number of instances."""
    if metric != "accuracy":
        raise ValueError(
            f"--plan cannot plan for metric {metric}: it simulates labels that are right or wrong. "
            "Use --metric accuracy."
        )
    like = describe_people(people)
    plan = plan_annotators(like, Simulation(epsilon, kind, test))
    chances = [{"instances": size, "chance": chance} for size, chance in plan.chances.items()]
    if form == "csv":
        echo_data(pl.DataFrame(chances).write_csv())
        return
    if form == "json":
        found = {
            "annotators": like.annotators,
            "agreement": like.agreement,
            "accuracy": like.accuracy,
            "epsilon": epsilon,
            "epsilon_kind": kind,
            "test": test,
            "chances": chances,
            "instances": plan.instances,
            "worst_judge": plan.worst,
        }
        echo_data(json.dumps(found, indent=1) + "\n")
        return
    rows = [(size, f"{chance:.3f}") for size, chance in plan.chances.items()]
    console = Console()
    console.print(plain_table(("instances", "chance to pass"), rows))
    click.echo(
        f"Simulated: {like.annotators} people and a judge, all equally accurate. Two people give "
        f"the same one of {len(like.frequencies)} labels with probability "
        f"{number(like.agreement)}, so each is taken to be right with probability "
        f"{number(like.accuracy)}. Margin: {kind} epsilon {number(epsilon)}."
    )
    if plan.instances is None:
        click.echo("None of these numbers of instances gives a chance of .80.")
    else:
        gap = number(plan.worst)
        click.echo(
            f"{plan.instances} instances, each labelled by all, give a chance of at least .80. At "
            f"that number a judge whose accuracy is lower by {gap} passes half of the time."
        )


JUDGE = (
    "judge",
    "metric",
    "epsilon",
    "epsilon_kind",
    "test",
    "winning_rate",
    "advantage_probability",
    "passed",
)
JUDGE_TOO = (
    "low",
    "high",
    "human_advantage_probability",
    "tied",
    "instances",
    "dropped",
    "unreadable",
    "reason",
)
ANNOTATOR = (
    "annotator",
    "n",
    "advantage_probability",
    "human_advantage_probability",
    "p_value",
    "rejected",
)
ANNOTATOR_TOO = (
    "low",
    "high",
    "tied",
    "test",
    "p_value_t",
    "p_value_score",
    "p_adjusted",
    "unreadable",
    "reason",
)
KEY = ("judge", "dataset", "metric", "epsilon", "epsilon_kind")
NAMED = 5
"""Maximum number of annotators named in a note."""
MOST_COLUMNS = 6
"""Maximum number of people in a table of kappas."""
LEGEND = (
    "winning rate: share of people whom the judge may replace, being worse by less than epsilon "
    "(adjusted by Benjamini-Yekutieli at .05); a judge passes at .5. AP (advantage probability): "
    "chance that the judge aligns with the other people at least as well as the person left out, "
    "with a 95 % interval. human AP: chance that the person aligns at least as well as the judge. "
    "tied: chance that both align equally well."
)
AGREEMENT_LEGEND = (
    "agreement: of the judge with people. ceiling: agreement of people with each other. ratio: "
    "agreement / ceiling. kappa: Cohen's kappa, mean over people. alpha: Krippendorff's alpha of "
    "the people and the judge."
)


class CalibrationRows:
    """A calibration's frames, each row with an unambiguous name of its judge."""

    def __init__(self, found: Calibrated) -> None:
        self.judges = with_who(found.tests).drop("judge").rename({"who": "judge", "n": "instances"})
        self.annotators = with_who(found.advantages).drop("judge").rename({"who": "judge"})
        self.agreement = found.agreement

    @property
    def asked(self) -> pl.DataFrame:
        """Return the judges at the requested epsilon."""
        return self.judges.filter("asked")


def as_objects(found: Calibrated, *, curve: bool) -> list[dict[str, Any]]:
    """Return one object per judge with its annotators and, for a curve, the other margins."""
    rows_by_judge = CalibrationRows(found)
    objects = []
    for row in rows_by_judge.asked.to_dicts():
        own = (pl.col("judge") == row["judge"]) & (pl.col("dataset") == row["dataset"])
        annotators = rows_by_judge.annotators.filter(own, "asked")
        shown = {name: row[name] for name in JUDGE}
        shown["annotators"] = annotators.select(*ANNOTATOR, *ANNOTATOR_TOO).to_dicts()
        shown |= {name: row[name] for name in JUDGE_TOO}
        shown["dataset"] = row["dataset"]
        shown["agreement"] = as_object(found.agreement, row["judge"], row["dataset"])
        if curve:
            margins = rows_by_judge.judges.filter(own, pl.col("epsilon").is_in(CURVE))
            shown["curve"] = margins.select("epsilon", "winning_rate", "passed").to_dicts()
        objects.append(shown)
    return objects


def as_rows(found: Calibrated, *, curve: bool) -> pl.DataFrame:
    """Return one row per judge, epsilon and annotator; columns of the judge come first.

    Texts that a spreadsheet could run as a formula get a leading apostrophe.
    """
    rows_by_judge = CalibrationRows(found)
    shown = pl.col("epsilon").is_in(CURVE) | pl.col("asked") if curve else pl.col("asked")
    judges = (
        rows_by_judge.judges.filter(shown)
        .select("dataset", *JUDGE, *JUDGE_TOO)
        .rename({name: f"judge_{name}" for name in (*JUDGE[4:], *JUDGE_TOO)})
    )
    annotators = rows_by_judge.annotators.select(*KEY, *ANNOTATOR, *ANNOTATOR_TOO)
    rows = judges.join(annotators, on=list(KEY), how="left", maintain_order="left_right")
    for name in ("agreement", Agreement(found.agreement).kappa):
        pairs = with_who(found.agreement.filter(statistic=name)).select(
            "dataset", judge="who", annotator="subgroup", **{name: "estimate"}
        )
        rows = rows.join(
            pairs, on=["dataset", "judge", "annotator"], how="left", maintain_order="left"
        )
    return guarded(rows.select(pl.exclude("dataset"), "dataset"))


def show_table(calibration: Calibration, found: Calibrated, *, curve: bool) -> None:
    """Print the test, the agreement with people, and what was left out."""
    console, rows_by_judge = Console(), CalibrationRows(found)
    rows = [
        (
            row["judge"],
            number(row["winning_rate"]),
            number(row["advantage_probability"]),
            _interval(row),
            number(row["human_advantage_probability"]),
            number(row["tied"]),
            row["annotators"],
            row["instances"],
            _verdict(row),
        )
        for row in rows_by_judge.asked.iter_rows(named=True)
    ]
    columns = ("judge", "winning rate", "AP", "95 %", "human AP", "tied", "people", "items", "")
    console.print(plain_table(columns, rows))
    if curve:
        _show_curve(console, rows_by_judge.judges)
    _show_agreement(console, found)
    click.echo(
        f"{calibration.epsilon_kind} epsilon {number(calibration.epsilon)}, test "
        f"{calibration.test}. {LEGEND} {AGREEMENT_LEGEND}"
    )
    for line in _notes(rows_by_judge):
        click.echo(line)


def _verdict(row: dict[str, Any]) -> str:
    """Say whether a judge passes, and whether that is doubtful (a note gives the reason)."""
    if row["passed"] is None:
        return "-"
    verdict = "passes" if row["passed"] else "fails"
    return f"{verdict}, doubtful" if row["reason"] else verdict


def _interval(row: dict[str, Any]) -> str:
    return "-" if row["low"] is None else f"{number(row['low'])} … {number(row['high'])}"


def _show_curve(console: Console, judges: pl.DataFrame) -> None:
    margins = judges.filter(pl.col("epsilon").is_in(CURVE))
    rows = [
        (name, *(number(rate) for rate in rates["winning_rate"]))
        for (name, _), rates in margins.group_by("judge", "dataset", maintain_order=True)
    ]
    columns = ("judge", *map(number, CURVE))
    console.print(plain_table(columns, rows, "Winning rate by epsilon"), "")


def _show_agreement(console: Console, found: Calibrated) -> None:
    rows = judge_rows(found.agreement)
    if not rows:
        return
    names = ["agreement", "ceiling", "ratio", "kappa", "alpha"]
    if len(rows[0].texts) > len(names):
        names.insert(4, "Jaccard")
    shown = [(row.judge, *(_plain(text.text) for text in row.texts)) for row in rows]
    console.print(plain_table(("judge", *names), shown, "Agreement with people"))
    names = datasets_of(found.agreement)
    for name in names:
        title = name if len(names) > 1 else ""
        _show_kappas(console, Agreement(found.agreement, name), title)
    click.echo(_plain(about_people(found.agreement)))


def _show_kappas(console: Console, found: Agreement, title: str) -> None:
    """Print kappas of judges and people with each person, unless there are too many people."""
    pairs = [
        *found.judges.filter(~pl.col("subgroup").is_in(["", "humans", *found.models]))
        .filter(statistic=found.kappa)
        .select("who", "subgroup", "estimate")
        .rows(),
        *found.people.filter(statistic=found.kappa).select("judge", "subgroup", "estimate").rows(),
    ]
    known = {(one, other): value for one, other, value in pairs}
    known |= {(other, one): value for one, other, value in pairs}
    people = sorted({other for _, other, _ in pairs})
    people = sorted({*people, *found.people["judge"]})
    if not 1 < len(people) <= MOST_COLUMNS:
        return
    whose = [*found.judges["who"].unique().sort(), *people]
    column_names, names = short_names(people, 12), short_names(whose, 40)
    rows = [(names[who], *(number(known.get((who, person))) for person in people)) for who in whose]
    columns = ("kappa with", *(column_names[person] for person in people))
    console.print(plain_table(columns, rows, title))


def _plain(text: str) -> str:
    """Replace typographic minus signs and spaces by ASCII, as in the other tables."""
    return text.replace("\N{MINUS SIGN}", "-").replace("\N{NO-BREAK SPACE}", " ")


def _notes(rows_by_judge: CalibrationRows) -> list[str]:
    """List doubts about verdicts, unreadable labels, and annotators who were not tested."""
    judges, annotators = rows_by_judge.asked, rows_by_judge.annotators.filter("asked")
    doubted = judges.filter(pl.col("reason").is_not_null())
    notes = [f"{row['judge']}: {row['reason']}." for row in doubted.iter_rows(named=True)]
    people = annotators.unique("annotator", keep="first", maintain_order=True)
    lost: Sequence[tuple[Any, ...]] = [
        *judges.select("judge", "unreadable").rows(),
        *people.select("annotator", "unreadable").rows(),
    ]
    for name, count in lost:
        notes += [f"{name}: {count} unreadable labels were left out."] if count else []
    known = annotators.join(judges.drop_nulls("winning_rate").select("judge"), on="judge")
    untested = known.filter(pl.col("rejected").is_null()).select("annotator", "reason").unique()
    for (reason,), rows in untested.sort("annotator").group_by("reason", maintain_order=True):
        names = rows["annotator"].unique(maintain_order=True).to_list()
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        notes.append(f"Not tested: {', '.join(names[:NAMED])}{more} ({reason}).")
    return [clean(note) for note in notes]
