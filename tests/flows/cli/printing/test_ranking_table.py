from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from flows.cli.printing.ranking_table import (
    show_criteria,
    show_ranked,
    show_wordings,
    split_people_without_results,
)
from flows.studies import Study
from schemas.results import Contrasts, Estimates, Findings
from tasks.conclude import conclude
from tasks.conclusions.comparisons import contrasts
from tasks.statistics.detection_power import detection_power
from tasks.statistics.mps import mps
from tasks.statistics.random_baseline import random_baseline
from tasks.statistics.rating_shift import rating_shift
from tasks.statistics.rating_spread import rating_spread
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]


@pytest.fixture
def warehouse(make_shifts: Make, tmp_path: Path) -> Warehouse:
    """A model that is moved by .4, a formula and a person that are not moved."""
    rows = [
        {
            "judge": judge,
            "sample": f"s{n:02}",
            "control": "tie",
            "simulated": judge == "offline/x",
            "experimental_score": 0.5 + shift * (n % 3),
        }
        for judge, shift in (("acme/m", 0.2), ("offline/x", 0.0), ("people/ann", 0.0))
        for n in range(30)
    ]
    shifts = make_shifts(rows)
    estimates = Estimates.of(pl.concat([mps(shifts=shifts), random_baseline(shifts=shifts)]))
    return stored(estimates, conclude(estimates), tmp_path)


def stored(estimates: pl.DataFrame, findings: pl.DataFrame, place: Path) -> Warehouse:
    warehouse = Warehouse(place / "v.duckdb")
    saved = [Saving(Estimates, estimates), Saving(Findings, findings)]
    warehouse.save(saved, run="r1", study="quick")
    return warehouse


def test_judges_and_people_stand_in_one_table(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    show_ranked("quick", warehouse.path, Study())
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "boast (promote)"
    assert any(line.startswith("- - acme/m model 30 .20 ") for line in lines)
    assert any(line.startswith("- - offline/x simulated 30 .00 ") for line in lines)
    assert any(line.startswith("- - people/ann person 30 .00 ") for line in lines)
    # Six random votes name the target with chance 98 / 243
    assert any(line.startswith("at random, 6 votes .40") for line in lines)
    assert any(
        line.startswith("rank: 1 is the judge that the perturbation moves least") for line in lines
    )


def test_a_narrow_terminal_gets_two_lines_per_judge(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_ranked("quick", warehouse.path, Study())
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("  no rank  people/ann (person, n 30): inconclusive")
    assert lines[at + 1].startswith("    shift .00 [")
    assert "  at random, 6 votes per pair: ASR .40" in lines


def test_what_a_person_lacks_is_in_words_and_without_dashes(
    make_shifts: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        {"judge": judge, "sample": f"s{n:02}", "control": "tie", "experimental_score": 0.6}
        for judge, many in (("acme/m", 30), ("people/ann", 1), ("people/\x1bbob", 1))
        for n in range(many)
    ]
    shifts = make_shifts(rows)
    estimates = Estimates.of(pl.concat([mps(shifts=shifts), random_baseline(shifts=shifts)]))
    # The same chance whether a pair got two votes or six.
    votes = pl.when(pl.col("judge") == "acme/m").then(2).otherwise("votes_per_pair")
    estimates = Estimates.of(estimates.with_columns(votes_per_pair=votes.cast(pl.Int64)))
    monkeypatch.setenv("COLUMNS", "80")
    show_ranked("quick", stored(estimates, conclude(estimates), tmp_path).path, Study())
    lines = capsys.readouterr().out.splitlines()
    row = "(person, n 1): no finding, shift .10, over control .10"
    assert f"  no rank  people/ann {row}" in lines
    assert "  at random, 2 or 6 votes per pair: ASR .40" in lines
    names = "people/\N{REPLACEMENT CHARACTER}bob and people/ann"
    assert f"No finding for {names}: fewer than 10 independent questions." in lines


@pytest.mark.parametrize("width", ["80", "140"])
def test_a_finding_has_what_it_rests_on(
    make_shifts: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: str,
) -> None:
    rows = [
        {
            "judge": judge,
            "sample": f"s{n:02}",
            "control": "tie",
            "kind": "detract",
            "experimental_score": 0.2 - 0.1 * (n % 3),
        }
        for judge, many in (("acme/m", 30), ("acme/few", 9))
        for n in range(many)
    ]
    shifts = make_shifts(rows)
    estimates = Estimates.of(pl.concat([mps(shifts=shifts), detection_power(shifts=shifts)]))
    own = pl.when(pl.col("judge") == "acme/m").then(pl.lit("over the control: few shams"))
    findings = conclude(estimates).with_columns(reason=pl.coalesce("reason", own))
    monkeypatch.setenv("COLUMNS", width)
    show_ranked("quick", stored(estimates, Findings.of(findings), tmp_path).path, Study())
    reported = capsys.readouterr().out
    assert "detects" in reported
    assert "No finding for acme/few: fewer than 10 independent questions.\n" in reported
    assert "Note on the finding about acme/m: over the control: few shams.\n" in reported
    assert "Ranks and tiers use the samples that all ranked judges share" in " ".join(
        reported.split()
    )


def test_a_study_without_results_has_no_table(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    show_ranked("other", warehouse.path, Study())
    assert capsys.readouterr().out == ""


def test_prompts_are_compared_once_in_each_wave(
    make_estimates: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "statistic": statistic,
            "prompt": "mild",
            "wave": wave,
            "subgroup": "ada / stern",
            "judge": "ada",
            "estimate": shift,
            "p_value": 0.5,
            "n": 40,
            "clusters": 40,
        }
        for wave, shift in (("may", -0.2), ("june", 0.1))
        for statistic in ("mps_sham_contrast", "mps_contrast")
    ]
    named = [
        {"judge": "ada", "prompt": prompt, "wave": wave, "estimate": 0.1, "n": 40, "clusters": 40}
        for prompt in ("mild", "stern")
        for wave in ("may", "june")
    ]
    estimates = make_estimates([*rows, *named])
    store = Warehouse(tmp_path / "v.duckdb")
    saved = [Saving(Estimates, estimates), Saving(Contrasts, contrasts(estimates))]
    store.save(saved, run="r1", study="quick")
    study = Study(prompts=["pair_v1", "pair_v2"])
    show_wordings(Console(width=200), study, store)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["judge", "wave", "perturbation", "prompt"] in [line[:4] for line in lines]
    shown = [line for line in lines if line[:1] == ["ada"]]
    assert [line[1:6] + line[6:7] for line in shown] == [
        ["june", "boast", "mild", "stern", "40", ".10"],
        ["may", "boast", "mild", "stern", "40", "-.20"],
    ]


def test_criteria_have_the_statistic_and_base_of_the_finding(
    make_ratings: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Grades of control are 4 and 6: deviation 1. The sham moves "clear" by .5.
    moved = {"clear": {"experimental": 2.0, "sham": 0.5}, "right": {"experimental": -0.25}}
    rows = [
        {
            "sample": f"s{n:02}",
            "arm": arm,
            "criterion": criterion,
            "weight": 1.0,
            "value": 4.0 + 2 * (n % 2) + by.get(arm, 0.0),
        }
        for n in range(20)
        for arm in ("control", "experimental", "sham")
        for criterion, by in moved.items()
    ]
    ratings = make_ratings(rows)
    found = [*rating_shift(ratings=ratings).partition_by("statistic")]
    estimates = Estimates.of(pl.concat([*found, rating_spread(ratings=ratings)]))
    findings = conclude(estimates)
    assert findings["statistic"].to_list() == ["rating_shift_sham_sd"]
    show_criteria(Console(width=200), "quick", stored(estimates, findings, tmp_path))
    title, header, *rest = (line.split() for line in capsys.readouterr().out.splitlines())
    assert " ".join(title) == "Shifts by criterion, the largest first"
    assert " ".join(header) == "judge perturbation criterion questions shift 95 %"
    # 2 - .5 over the sham, in deviations of 1; the whole is no criterion.
    shown = [" ".join(line).split(" boast ")[1].split(" [")[0] for line in rest[:2]]
    assert shown == ["clear 20 1.50", "right 20 -.25"]
    assert " ".join(rest[2]).startswith("The statistic and its base are those of the whole rating")


def test_without_criteria_there_is_no_table_of_them(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    show_criteria(Console(width=200), "quick", warehouse)
    assert capsys.readouterr().out == ""


def test_people_without_a_result_are_a_line_per_reason_and_no_rows() -> None:
    def row(judge: str, perturbation: str | None, reason: str | None, **known: Any) -> Any:
        return {"judge": judge, "perturbation": perturbation, "reason": reason} | {
            "shift": None,
            "finding": None,
            **known,
        }

    judge = row("ada", "padding", "too few questions")
    counted = row("people/ann", "padding", None, shift=0.1)
    silent = [
        row("people/ann", None, "one order only"),
        row("people/ben", None, "one order only"),
        row("people/ben", "padding", "too few"),
        row("people/cat", "padding", "no vote"),
    ]
    kept, said = split_people_without_results([judge, counted, *silent])
    assert kept == [judge, counted]
    assert said == [
        "No result about position for people/ann and people/ben: one order only.",
        "No result for people/ben: too few.",
        "No result for people/cat: no vote.",
    ]
