"""The report of a calibration: one self-contained page on whom judges may replace."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages, AltTests
from schemas.results import Estimates
from tasks._agreement_rows import about_people, judge_rows
from tasks._heads import simulated_sentence
from tasks._page import drawings, page
from tasks._report_rows import Judged, Text, said
from tasks._words import (
    clean,
    clip,
    count,
    formulas,
    listing,
    number,
    p_value,
    thousands,
    with_who,
)

TEMPLATE = "_calibration.html.j2"
VERDICTS = {None: "cannot be told", True: "passes", False: "fails"}
NAMED = 6
"""Judges that are named in a sentence."""

Row = dict[str, Any]


class CalibrationFacts(NamedTuple):
    """What a report says about its calibration beyond the frames."""

    name: str
    people: str
    """Where the labels of people are from."""
    judges: str
    run: str
    code_version: str
    when: str
    """ISO 8601, given by the caller, so that equal facts give equal bytes."""
    warehouse: str
    least: int
    """Instances that an annotator needed."""


class Group(NamedTuple):
    """All annotators against one judge."""

    judge: str
    simulated: bool
    told: str
    rows: list[Judged]


def calibration_report(
    facts: CalibrationFacts,
    alt_tests: DataFrame[AltTests],
    advantages: DataFrame[Advantages],
    agreement: DataFrame[Estimates],
) -> str:
    """Write the report as one HTML file that loads nothing from elsewhere."""
    frames: dict[str, pl.DataFrame] = {
        "alt_tests": alt_tests,
        "advantages": advantages,
        "agreement": agreement,
    }
    asked = with_who(alt_tests.filter("asked")).sort(
        -pl.col("winning_rate"), -pl.col("advantage_probability"), "who", nulls_last=True
    )
    judges = asked.to_dicts()
    return page(
        TEMPLATE,
        facts=facts,
        under=_under(judges),
        simulated=simulated_sentence({*alt_tests["judge"]}, formulas(alt_tests)),
        lead=_lead(judges),
        judges=[_judge(row) for row in judges],
        charts=drawings(**frames),
        people=about_people(agreement),
        sets="mean_jaccard" in agreement["statistic"],
        agreement=judge_rows(agreement),
        people_rows=_groups(judges, with_who(advantages.filter("asked"))),
        provenance=_provenance(facts, judges),
    )


def _under(judges: Sequence[Row]) -> str:
    first = judges[0]
    return (
        f"Metric {first['metric']}, {first['epsilon_kind']} epsilon {number(first['epsilon'])}, "
        f"test {first['test']}"
    )


def _lead(judges: Sequence[Row]) -> list[str]:
    passed = [row for row in judges if row["passed"] and not row["reason"]]
    doubtful = [row for row in judges if row["passed"] and row["reason"]]
    failed = [row for row in judges if row["passed"] is False]
    unknown = [row for row in judges if row["passed"] is None]
    told = []
    if passed:
        told.append(f"May replace people: {_names(passed)}.")
    else:
        told.append("No judge has been shown to be able to replace people.")
    if doubtful:
        told.append(f"Passes, but this is doubtful, see beside the verdict: {_names(doubtful)}.")
    if failed:
        told.append(f"Not shown to be able to: {_names(failed)}.")
    if unknown:
        told.append(f"Cannot be told: {_names(unknown)}.")
    return told


def _names(rows: Sequence[Row]) -> str:
    named = [clip(clean(row["who"]), 40) for row in rows[:NAMED]]
    return listing([*named, *([count(len(rows) - NAMED, "other")] if len(rows) > NAMED else [])])


def _judge(row: Row) -> Judged:
    ap = said({**row, "estimate": row["advantage_probability"]})
    left = [
        count(row[column], one)
        for column, one in (("dropped", "instance"), ("unreadable", "label")) if row[column]
    ]  # fmt: skip
    texts = [
        Text("none" if row["winning_rate"] is None else number(row["winning_rate"])),
        ap if row["advantage_probability"] is not None else Text("none"),
        *(Text("none" if row[c] is None else number(row[c]))
          for c in ("human_advantage_probability", "tied")),
        Text(thousands(row["annotators"])), Text(thousands(row["n"])),
        Text(listing(left) or "none"),
    ]  # fmt: skip
    doubt = ", doubtful" if row["passed"] is not None and row["reason"] else ""
    finding = Text(VERDICTS[row["passed"]] + doubt, row["reason"] or "")
    return Judged(row["who"], bool(row["simulated"]), texts, finding)


def _groups(judges: Sequence[Row], advantages: pl.DataFrame) -> list[Group]:
    parts = advantages.sort("annotator").partition_by("who", as_dict=True)
    found = []
    for judge in judges:
        rows = parts[judge["who"],].to_dicts() if (judge["who"],) in parts else []
        replaced = sum(bool(row["rejected"]) for row in rows)
        tested = sum(row["rejected"] is not None for row in rows)
        told = f"may replace {thousands(replaced)} of {count(tested, 'person', 'people')}"
        each = [_person(row) for row in rows]
        found.append(Group(judge["who"], bool(judge["simulated"]), told, each))
    return found


def _person(row: Row) -> Judged:
    verdict = {None: "not tested", True: "may be replaced", False: "not shown"}[row["rejected"]]
    known = row["advantage_probability"] is not None
    raw = [f"{name} {p_value(row[column])}" for name, column in
           (("t", "p_value_t"), ("score", "p_value_score")) if row[column] is not None]  # fmt: skip
    texts = [
        said({**row, "estimate": row["advantage_probability"]}) if known else Text("none"),
        *(Text(number(row[c]) if known else "none")
          for c in ("human_advantage_probability", "tied")),
        Text(p_value(row["p_adjusted"])),
        Text(p_value(row["p_value"]), ", ".join(raw)),
        Text(
            thousands(row["n"]),
            f"{count(row['unreadable'], 'label')} unreadable" if row["unreadable"] else "",
        ),
    ]  # fmt: skip
    return Judged(row["annotator"], simulated=False, texts=texts,
                  finding=Text(verdict, row["reason"] or ""))  # fmt: skip


def _provenance(facts: CalibrationFacts, judges: Sequence[Row]) -> dict[str, str]:
    first = judges[0]
    return {
        "name": facts.name,
        "labels of people": facts.people,
        "labels of judges": facts.judges,
        "metric": first["metric"],
        "epsilon": f"{number(first['epsilon'])}, {first['epsilon_kind']}: "
        + (
            "an amount of probability"
            if first["epsilon_kind"] == "additive"
            else "a share of the person's own advantage probability, another hypothesis"
        ),
        "test": f"{first['test']}; both p-values stand above",
        "instances that a person needed": thousands(facts.least),
        "adjustment": "Benjamini-Yekutieli over people, .05, for each judge",
        "intervals": "level .95; advantage probabilities: Wilson at the effective size of"
        " independent items; agreement: cluster-adjusted Wilson, else cluster bootstrap"
        " (2 000 draws, seeded)",
        "run": facts.run,
        "code version": facts.code_version,
        "run begun": facts.when,
        "warehouse": facts.warehouse,
    }
