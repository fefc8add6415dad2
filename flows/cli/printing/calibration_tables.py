"""Results of a calibration as tables of the terminal, as JSON and as CSV."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows.cli.meanings import ADVANTAGE, CALIBRATE_ROWS, explained
from flows.cli.printing.answer import show_lines
from flows.cli.printing.comparison_tables import show_comparison
from flows.cli.printing.live import Printer
from flows.cli.printing.tables import plain_table, print_line, print_rows
from flows.cli.printing.terminal import interval, number, plain
from flows.publishing.csv_escaping import guarded
from flows.results.calibration import Calibrated
from flows.studies.calibration import Calibration
from schemas.calibration import KINDS_OF_EPSILON
from schemas.results import Estimates
from tasks.calibration.alt_test import CURVE
from tasks.counting.annotations import HUMANS
from tasks.drawing.metric_rows import metric_rows
from tasks.kit.defaults import calibrated_by, calibration_limits
from tasks.kit.printable import joined_few, several
from tasks.reporting.calibration_answer import calibration_advice, calibration_policy, tests_shown
from tasks.reporting.calibration_report import (
    VERDICTS,
    Agreement,
    about_people,
    datasets_of,
    judge_rows,
    named_by_criterion,
    verdict,
)
from tasks.reporting.wording import clean, short_names, with_who

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
PARTS = ("measures", "confusion_matrix", "disagreements", "among_people")
"""Keys of a judge's comparison with people in JSON."""
UNTESTED = "The alternative annotator test was not run: {}"
NAMED = 5
"""Maximum number of annotators named in a note."""
MOST_COLUMNS = 6
"""Maximum number of people in a table of kappas."""
CRITERIA = (
    "Agreement with single people is by criterion, as scales differ. The alternative annotator "
    "test counts each criterion of an item once: who is closer to the others does not depend on "
    "the scale."
)


def legend() -> str:
    """Say what the columns mean, with the limits in force."""
    least = number(calibration_limits().least_winning_rate)
    return (
        f"winning rate: {CALIBRATE_ROWS['winning rate']} (adjusted by Benjamini-Yekutieli at .05); "
        f"a judge passes at {least}. One that fails is not shown to be able to replace people; "
        f"there may be too few items (see --plan). AP (advantage probability): {ADVANTAGE}, with a "
        f"95 % interval. {explained(('human AP', 'tied'), 'calibrate')} agreement: of the judge "
        f"with single people, mean over items. {explained(('ceiling', 'ratio'), 'calibrate')} "
        f"kappa: Cohen's kappa, mean over people. {explained(('alpha',), 'calibrate')} Against the "
        "combined label of people, kappa has a linearised interval; with a single person (--format "
        "json) a bootstrap interval."
    )


def _named(found: Calibrated) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of judges and of annotators, each with an unambiguous name of its judge."""
    tests, advantages = (
        with_who(rows).drop("judge").rename({"who": "judge"})
        for rows in (found.tests, found.advantages)
    )
    return tests.rename({"n": "instances"}), advantages


PAIR = (
    "agreement",
    "cohen_kappa",
    "cohen_kappa_linear",
    "cohen_kappa_quadratic",
    "gwet_ac1",
    "mean_jaccard",
    "label_kappa",
)
NUMBERS = ("estimate", "low", "high", "n", "reason")


def as_objects(found: Calibrated, *, curve: bool) -> list[dict[str, Any]]:
    """Return one object per judge: its agreement with people, and the test with its annotators."""
    judges, annotators = _named(found)
    tested = {
        (row["judge"], row["dataset"]): _tested(row, judges, annotators, curve=curve)
        for row in judges.filter("asked").to_dicts()
    }
    of_people = pl.col("judge") == HUMANS
    people = found.comparison.measures.filter(of_people).with_columns(who="judge")
    results = [with_who(frame.filter(~of_people)) for frame in found.comparison.results]
    compared = results[0].select("who", "dataset").unique(maintain_order=True).rows()
    objects = []
    for judge, dataset in dict.fromkeys([*tested, *compared]):
        shown = tested.get((judge, dataset), {"judge": judge, "dataset": dataset})
        shown["agreement"] = as_object(found.agreement, judge, dataset)
        if criteria := _criteria(found, dataset):
            shown["agreement_by_criterion"] = {
                criterion: as_object(
                    Estimates.draft(found.agreement.filter(dataset=part)), judge, part
                )
                for criterion, part in criteria.items()
            }
        if not found.metric_tests.is_empty():
            shown["metrics"] = _metrics(found, judge, dataset, curve=curve)
        shown["with_people"] = _with_people(results, people, judge, dataset)
        objects.append(shown)
    return objects


def _criteria(found: Calibrated, dataset: str) -> dict[str, str]:
    """Return the criteria of a dataset whose agreement is measured by criterion, and their names.

    The alternative annotator test is about all of them together.
    """
    rows = found.comparison.measures.filter(dataset=dataset).drop_nulls("criterion")
    names = {each: f"{dataset}: {each}" for each in rows["criterion"].unique().sort()}
    measured = datasets_of(found.agreement)
    return {criterion: name for criterion, name in names.items() if name in measured}


def _with_people(
    results: Sequence[pl.DataFrame], people: pl.DataFrame, who: str, dataset: str
) -> dict[str, list[dict[str, Any]]]:
    """Return the measures, confusion matrix and disagreements of one judge as plain values.

    ``among_people`` are the measures of people with each other.
    """
    own = pl.col("dataset") == dataset
    key = ["dataset", "judge", "prompt", "wave", "simulated", "who"]
    frames = [*(frame.filter(own, who=who) for frame in results), people.filter(own)]
    found = dict(zip(PARTS, (frame.drop(key).to_dicts() for frame in frames), strict=True))
    for row in found["disagreements"]:
        row["texts"] = json.loads(row["texts"])
    return found


def _metrics(found: Calibrated, who: str, dataset: str, *, curve: bool) -> list[dict[str, Any]]:
    own = with_who(found.metric_tests).filter(
        (pl.col("who") == who) & (pl.col("dataset") == dataset), pl.col("asked") | curve
    )
    columns = ("metric", "epsilon", "epsilon_kind", *JUDGE[5:], *JUDGE_TOO[:4])
    return own.sort("metric", "epsilon_kind", "epsilon").select(columns).to_dicts()


def _tested(
    row: dict[str, Any], judges: pl.DataFrame, annotators: pl.DataFrame, *, curve: bool
) -> dict[str, Any]:
    own = (pl.col("judge") == row["judge"]) & (pl.col("dataset") == row["dataset"])
    shown = {name: row[name] for name in JUDGE}
    shown["annotators"] = annotators.filter(own, "asked").select(ANNOTATOR).to_dicts()
    shown |= {name: row[name] for name in JUDGE_TOO}
    shown["dataset"] = row["dataset"]
    if curve:
        margins = judges.filter(own, pl.col("epsilon").is_in(CURVE))
        shown["curve"] = margins.select("epsilon", "winning_rate", "passed").to_dicts()
    return shown


def as_rows(found: Calibrated, *, curve: bool) -> pl.DataFrame:
    """Return one row per judge, epsilon and annotator; columns of the judge come first.

    If the test was not run, return one row per judge and measure of its agreement with people.
    Texts that a spreadsheet could run as a formula get a leading apostrophe.
    """
    if found.tests.is_empty():
        return guarded(found.comparison.measures)
    if not found.metric_tests.is_empty():
        found = found._replace(tests=found.metric_tests, advantages=found.metric_advantages)
    of_judges, annotators = _named(found)
    shown = pl.col("epsilon").is_in(CURVE) | pl.col("asked") if curve else pl.col("asked")
    judges = (
        of_judges.filter(shown)
        .select("dataset", *JUDGE, *JUDGE_TOO)
        .rename({name: f"judge_{name}" for name in (*JUDGE[4:], *JUDGE_TOO)})
    )
    each = annotators.select(*KEY, *ANNOTATOR)
    rows = judges.join(each, on=list(KEY), how="left", maintain_order="left_right")
    datasets = datasets_of(found.agreement)
    kappas = dict.fromkeys(Agreement(found.agreement, name).kappa for name in datasets)
    for name in ("agreement", *kappas):
        pairs = with_who(found.agreement.filter(statistic=name)).select(
            "dataset", judge="who", annotator="subgroup", **{name: "estimate"}
        )
        rows = rows.join(
            pairs, on=["dataset", "judge", "annotator"], how="left", maintain_order="left"
        )
    return guarded(rows.select(pl.exclude("dataset"), "dataset"))


def show_table(
    calibration: Calibration,
    found: Calibrated,
    *,
    curve: bool = False,
    saved: bool = False,
    more: str = "--format json",
) -> None:
    """Print the agreement with people, the test, and what was left out; ``more`` prints all."""
    with calibrated_by(calibration.thresholds):
        _show_table(calibration, found, curve=curve, saved=saved, more=more)


def _show_table(
    calibration: Calibration, found: Calibrated, *, curve: bool, saved: bool, more: str
) -> None:
    console, comparison = Printer(), found.comparison
    tested = not found.tests.is_empty()
    title = "Which judges may replace people" if tested else "Which judges agree with people"
    show_lines(console, title, calibration_advice(found.tests, comparison))
    print_line(console, calibration_policy(tested=tested), style="dim")
    print_line(console, "")
    alone = "--judge COLUMN --no-save" if len(calibration.judge_columns) > 1 else ""
    if calibration.table or found.untested:
        # The scale of a study's grades is in its judge prompt.
        known = bool(calibration.study)
        show_comparison(console, comparison, saved=saved, more=more, alone=alone, scale_known=known)
    if found.untested:
        _show_agreement(console, found)
        print_line(console, UNTESTED.format(clean(found.untested)))
        return
    asked = tests_shown(found.tests)
    rows = [
        (
            row["who"],
            *map(number, (row["winning_rate"], row["advantage_probability"])),
            interval(row["low"], row["high"]),
            *map(number, (row["human_advantage_probability"], row["tied"])),
            row["annotators"],
            row["n"],
            verdict(row),
        )
        for row in asked.iter_rows(named=True)
    ]
    columns = (
        *("judge", "winning rate", "AP", "95 %", "human AP", "tied", "people", "items"),
        "verdict",
    )
    print_rows(console, columns, rows)
    if curve:
        _show_curve(console, found)
    _show_metrics(console, found)
    _show_agreement(console, found)
    print_line(
        console,
        f"{calibration.epsilon_kind} epsilon {number(calibration.epsilon)}, test "
        f"{calibration.test}. {legend()}",
    )
    for line in _notes(asked, with_who(found.advantages.filter("asked"))):
        print_line(console, line)
    if not calibration.table:
        show_comparison(console, comparison, saved=saved, more=more)


def _show_curve(console: Console, found: Calibrated) -> None:
    margins = with_who(found.tests.filter(pl.col("epsilon").is_in(CURVE)))
    rates: dict[str, list[str]] = {row["who"]: [] for row in tests_shown(found.tests).to_dicts()}
    for who, rate in margins["who", "winning_rate"].rows():
        rates[who].append(number(rate))
    rows = [(who, *each) for who, each in rates.items()]
    columns = ("judge", *map(number, CURVE))
    console.print(plain_table(columns, rows, "Winning rate by epsilon"), "")


def _show_metrics(console: Console, found: Calibrated) -> None:
    rows = metric_rows(found.metric_tests)
    if not rows:
        return
    several = len({row["dataset"] for row in rows}) > 1
    shown = [
        (
            row["metric"],
            f"{row['who']} ({row['dataset']})" if several else row["who"],
            number(row["advantage_probability"]),
            interval(row["low"], row["high"]),
            number(row["human_advantage_probability"]),
            *(f"{number(rate)} {VERDICTS[passed]}" for rate, passed in row["rates"].values()),
        )
        for row in rows
    ]
    names = ("metric", "judge", "AP", "95 %", "human AP", *KINDS_OF_EPSILON)
    title = f"Winning rates by metric, epsilon {number(rows[0]['epsilon'])} of both kinds"
    print_rows(console, names, shown, title)
    console.print()


def _show_agreement(console: Console, found: Calibrated) -> None:
    agreement = named_by_criterion(found.agreement, found.comparison.measures)
    rows = judge_rows(agreement)
    if not rows:
        return
    names = ["agreement", "ceiling", "ratio", "kappa", "alpha"]
    if len(rows[0].texts) > len(names):
        names.insert(4, "Jaccard")
    shown = [(row.judge, *(plain(text.text) for text in row.texts)) for row in rows]
    title = "Agreement with single people, mean over items"
    console.print(plain_table(("judge", *names), shown, title))
    datasets = datasets_of(agreement)
    for name in datasets:
        _show_kappas(console, Agreement(agreement, name), name if datasets[1:] else "")
    print_line(console, plain(about_people(agreement)))
    if any(_criteria(found, name) for name in found.tests["dataset"].unique()):
        print_line(console, CRITERIA)


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
    people = sorted({*(other for _, other, _ in pairs), *found.people["judge"]})
    if not 1 < len(people) <= MOST_COLUMNS:
        return
    whose = [*found.judges["who"].unique().sort(), *people]
    column_names, names = short_names(people, 12), short_names(whose, 40)
    rows = [(names[who], *(number(known.get((who, person))) for person in people)) for who in whose]
    columns = ("kappa with", *(column_names[person] for person in people))
    console.print(plain_table(columns, rows, title))


def _notes(judges: pl.DataFrame, annotators: pl.DataFrame) -> list[str]:
    """List doubts about verdicts, invalid labels, and annotators who were not tested."""
    doubted = judges.drop_nulls("reason")
    notes = [f"{who}: {reason}." for who, reason in doubted["who", "reason"].rows()]
    people = annotators.unique("annotator", keep="first", maintain_order=True)
    lost: Sequence[tuple[Any, ...]] = [
        *judges.select("who", "unreadable").rows(),
        *people.select("annotator", "unreadable").rows(),
    ]
    for name, many in lost:
        labels = several(many, "missing or invalid label")
        verb = "was" if many == 1 else "were"
        notes += [f"{name}: {labels} {verb} left out."] if many else []
    known = annotators.join(judges.drop_nulls("winning_rate").select("who"), on="who")
    untested = known.filter(pl.col("rejected").is_null()).select("annotator", "reason").unique()
    for (reason,), rows in untested.sort("annotator").group_by("reason", maintain_order=True):
        names = rows["annotator"].unique(maintain_order=True).to_list()
        notes.append(f"Not tested: {joined_few(names, NAMED)} ({reason}).")
    return [clean(note) for note in notes]


def as_object(agreement: DataFrame[Estimates], who: str, dataset: str) -> dict[str, Any]:
    """Return the agreement of one judge with people, and of people, as plain values."""
    found = Agreement(agreement, dataset)
    own = found.judges.filter(who=who)
    of_all = own.filter(subgroup=HUMANS)
    with_people = own.filter(~pl.col("subgroup").is_in([HUMANS, *found.models]))
    return {
        **{
            name: _numbers(of_all, name)
            for name in ("noise_ceiling", "below_ceiling", "ceiling_ratio")
        },
        "alpha_people": _alphas(found.groups),
        "alpha_with_judge": _alphas(of_all),
        "people": [
            {"annotator": name, **_pair(rows)}
            for (name,), rows in with_people.group_by("subgroup", maintain_order=True)
        ],
        "among_people": [
            {"annotator": one, "other": other, **_pair(rows)}
            for (one, other), rows in found.people.group_by(
                "judge", "subgroup", maintain_order=True
            )
        ],
    }


def _alphas(rows: pl.DataFrame) -> dict[str, Any]:
    names = rows["statistic"].unique().sort().to_list()
    return {
        name.removeprefix("krippendorff_alpha_"): _numbers(rows, name)
        for name in names
        if name.startswith("krippendorff_alpha_")
    }


def _pair(rows: pl.DataFrame) -> dict[str, Any]:
    there = {*rows["statistic"]}
    return {name: _numbers(rows, name) for name in PAIR if name in there}


def _numbers(rows: pl.DataFrame, name: str) -> dict[str, Any] | None:
    found = rows.filter(statistic=name).select(NUMBERS).to_dicts()
    return found[0] if found else None
