"""What users read of a study whose judges grade single answers: the table and the report."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from flows.cli.printing.terminal import legend, result_table
from schemas.judging import VoteLog
from schemas.results import Drifts
from tasks.charts.forest import forest
from tasks.drawing.render import inline_svg
from tasks.inference.bootstrap import formulas_only
from tasks.reporting.rows import rated_groups
from tasks.results import Conclusions, results_of
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def concluded(make_ratings: Make) -> Conclusions:
    """Return the conclusions on two simulated judges: one that grades, one that passes."""
    random = np.random.default_rng(4)
    quality = random.normal(5.5, 1.5, 300)
    rows = []
    for arm, shift in (("control", 0.0), ("sham", 0.0), ("experimental", 0.9)):
        for i, q in enumerate(quality + shift + random.normal(0, 0.8, 300)):
            grade = float(np.clip(np.round(q), 1, 10))
            here = {"sample": f"s{i}", "arm": arm}
            rows += [
                {**here, "value": grade},
                {**here, "value": float(grade > 6), "kind": "label", "prompt": "gate"},
            ]
    ratings = make_ratings(rows)
    with formulas_only():
        results = results_of(VoteLog.empty(), "balanced", ratings=ratings)
    return results.concluded(Drifts.empty())


@pytest.fixture
def bias(concluded: Conclusions, warehouse: Warehouse) -> list[dict[str, Any]]:
    savings = [Saving(*each) for each in concluded.tables()]
    warehouse.save(savings, run="r1", study="grades")
    return warehouse.query("from mart.bias order by prompt").to_dicts()


def test_the_mart_has_the_shift_in_its_unit_and_in_points(bias: list[dict[str, Any]]) -> None:
    gate, grade = bias
    assert (gate["unit"], grade["unit"]) == ("share", "sd")
    assert gate["points"] is None
    assert grade["points"] == pytest.approx(0.9, abs=0.15)
    assert grade["points_low"] < grade["points"] < grade["points_high"]
    assert grade["shift"] == pytest.approx(grade["points"] / 1.7, abs=0.1)
    assert [row["finding"] for row in bias] == ["biased", "biased"]
    assert [row["n"] for row in bias] == [300, 300]
    assert [row["votes_per_pair"] for row in bias][1] == 1


def test_the_terminal_shows_shifts_with_their_unit(bias: list[dict[str, Any]]) -> None:
    console = Console(width=200, record=True)
    console.print(result_table(bias, "grades", console))
    text = console.export_text()
    assert re.search(r"boast +300 +\.\d\d sd \[", text)
    assert re.search(r"boast +300 +\.\d\d pass rate \[", text)
    reported = legend(bias)
    assert "change of the rating in standard deviations (sd) of control" in reported
    assert "or change of the pass rate, compared" in reported
    assert "MPS" not in reported
    assert "ASR" not in reported


def test_a_share_of_labels_is_no_pass_rate(bias: list[dict[str, Any]]) -> None:
    gate, grade = bias
    rows = [gate, grade, gate | {"prompt": "faults", "prompt_kind": "labels"}]
    console = Console(width=200, record=True)
    console.print(result_table(rows, "grades", console))
    text = console.export_text()
    assert re.search(r"boast +300 +\.\d\d pass rate \[", text)
    assert re.search(r"boast +300 +\.\d\d share of labels \[", text)
    reported = legend(rows)
    assert "change of the pass rate or change of the share of labels chosen, compared" in reported


def test_the_chart_has_panels_for_each_unit(concluded: Conclusions) -> None:
    drawn = forest.draw(findings=concluded.findings, estimates=concluded.estimates)
    about = {panel["description"].partition(",")[0]: panel for panel in drawn}
    assert {*about} == {"Rating shift by judge", "Shift of the pass rate by judge"}
    assert "rating shift, sd" in inline_svg(about["Rating shift by judge"])


def test_every_estimate_is_among_the_numbers(
    bias: list[dict[str, Any]], concluded: Conclusions, warehouse: Warehouse
) -> None:
    assert bias
    found = warehouse.query("select distinct statistic from mart.numbers")["statistic"]
    assert {*found} == {*concluded.estimates["statistic"]}
    finding = warehouse.query("from mart.numbers where finding is not null")
    assert {*finding["statistic"]} == {"rating_shift_sham_sd", "pass_rate_shift_sham"}
    assert concluded.gates.filter(pl.col("gate") == "validity")["verdict"].to_list() == [
        "pass",
        "pass",
    ]


def test_the_report_has_ratings_in_a_table_of_their_own(concluded: Conclusions) -> None:
    groups = rated_groups(concluded.findings, concluded.estimates)
    assert [(g.perturbation, g.over) for g in groups] == [("boast", "")]
    notes = sorted(row.texts[0].note for row in groups[0].rows)
    assert re.search(r"in the pass rate$", notes[0]) or re.search(r"in the pass rate$", notes[1])
    (points,) = (note for note in notes if "points" in note)
    assert re.search(r"over the sham, in standard deviations; \.\d\d points \[", points)
    assert "(n " not in points
    # Points need no rating in control, standard deviations do.
    in_sd = pl.col("statistic") == "rating_shift_sham_sd"
    fewer = concluded.estimates.with_columns(n=pl.col("n") - pl.when(in_sd).then(7).otherwise(0))
    (group,) = rated_groups(concluded.findings, fewer)
    notes = [row.texts[0].note for row in group.rows]
    assert [note.endswith(" (n 300)") for note in notes] == ["points" in note for note in notes]
    means = {row.texts[3].text for row in groups[0].rows}
    assert len(means) == 2
    assert any(re.match(r"5\.\d\d", text) for text in means)
