"""`voirdire plan --name`: which study is planned."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from printed_commands import in_short

from flows.cli.main import main
from flows.running.ballots import left_line
from flows.running.run_row import first_row
from flows.studies import make_study
from schemas.results import Estimates, Gates
from warehouse.store import Saving, Warehouse

Run = Callable[..., Result]
QUESTIONS = re.compile(r"fake_reference +(\d+) ")
JUDGE = ("--judge", "offline/fair")


@pytest.fixture
def run(tmp_path: Path, make_estimates: Any) -> Run:
    """Return what runs ``voirdire plan`` on a warehouse with the study ``mini``."""
    warehouse, now = Warehouse(tmp_path / "w.duckdb"), datetime.now(UTC)
    changes = {"name": "mini", "limit": 12, "judges": ["offline/hasty"]}
    row = first_row("audit", "r1", make_study("quick", changes), now)
    warehouse.start_run({**row, "study": "mini", "state": "completed", "ended_at": now})
    warehouse.save([Saving(Estimates, make_estimates())], run="r1", study="mini")
    place = str(warehouse.path)
    return lambda *words: CliRunner().invoke(main, ["plan", *words, "--warehouse", place])


@pytest.mark.parametrize(
    "words", [["mini"], ["--name", "mini"], ["--name", "mini", "--effect", ".1"]]
)
def test_a_saved_study_is_planned_with_its_settings(run: Run, words: list[str]) -> None:
    planned = run(*words)
    assert planned.exit_code == 0, planned.stderr
    assert "offline/hasty" in planned.stdout
    assert "offline/fair" not in planned.stdout
    assert QUESTIONS.findall(planned.stdout) == ["12"]


@pytest.mark.parametrize("state", ["cancelled", "killed", "failed", "running"])
def test_a_study_whose_audit_did_not_end_keeps_its_settings_for_the_next(
    tmp_path: Path, state: str
) -> None:
    warehouse, now = Warehouse(tmp_path / "w.duckdb"), datetime.now(UTC)
    changes = {"name": "cut", "limit": 12, "judges": ["offline/hasty"], "wave": "w2"}
    row = first_row("audit", "r1", make_study("quick", changes), now)
    warehouse.start_run({**row, "state": state, "error": None})
    place = ["--warehouse", str(warehouse.path)]
    planned = CliRunner().invoke(main, ["plan", "cut", *place])
    assert planned.exit_code == 0, planned.stderr
    assert "offline/hasty" in planned.stdout
    assert QUESTIONS.findall(planned.stdout) == ["12"]
    shown = CliRunner().invoke(main, ["gate", "cut", *place])
    assert shown.exit_code == 2
    assert "repeat the audit: `voirdire audit cut --wave w2`" in in_short(shown.stderr)


def test_a_name_that_no_study_has_is_an_error_with_the_next_step(run: Run) -> None:
    refused = run("--name", "minni")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "no study 'minni'. Did you mean 'mini'? Known: canary, " in refused.stderr
    step = "say which one it is like: `voirdire plan quick --name minni`."
    assert in_short(refused.stderr).rstrip().endswith(step)
    assert run("quick", "--name", "minni", "--limit", "2").exit_code == 0


def test_with_other_options_the_plan_is_that_of_the_same_audit(run: Run) -> None:
    fresh = run("--name", "new", *JUDGE, "--limit", "20")
    again = run("--name", "mini", *JUDGE, "--limit", "20")
    for planned in (fresh, again):
        assert QUESTIONS.findall(planned.stdout) == ["20"]
        assert "offline/hasty" not in planned.stdout
    assert "`voirdire plan mini` plans for the settings of study mini." in in_short(again.stderr)
    assert "settings of study" not in fresh.stderr


def test_a_sham_that_moves_a_judge_has_a_next_step(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    words = "fake reference is inconclusive (the sham itself moves this judge by .12 [.07, .17])"
    row = {"dataset": "bloom", "judge": "offline/hasty", "prompt": "pair_v2", "wave": ""}
    row |= {"mode": "balanced", "perturbation": "fake_reference", "gate": "bias"}
    row |= {"verdict": "inconclusive", "consequence": "care", "words": words, "simulated": True}
    gates = Saving(Gates, Gates.draft(pl.DataFrame([row])))
    Warehouse(tmp_path / "w.duckdb").save([gates], run="r1", study="mini")
    said = in_short(" ".join(run("mini").stdout.split()))
    assert words in said
    assert "another sham may not move it: `voirdire audit mini --sham second --name NAME`." in said


def test_a_limit_beyond_the_dataset_is_said(run: Run) -> None:
    line = "--limit 75: the dataset has 60 questions, all are used."
    assert line in run("quick", *JUDGE, "--limit", "75").stdout
    assert "all are used" not in run("quick", *JUDGE, "--limit", "60").stdout


@pytest.mark.parametrize(
    ("limit", "needed", "said"),
    [
        (40, 12, "The dataset has the 12 further questions: --limit 52."),
        (
            40,
            296,
            (
                "The dataset has 20 of the 296 further questions: --limit 60; the others take a "
                "larger dataset."
            ),
        ),
        (60, 5, "All 60 questions of the dataset are asked: further ones take a larger dataset."),
        (None, 5, "All questions of the dataset are asked: further ones take a larger dataset."),
        (40, None, ""),
    ],
)
def test_how_many_further_questions_the_dataset_has(
    limit: int | None, needed: int | None, said: str
) -> None:
    assert left_line(make_study("quick", {"limit": limit}), needed) == said


@pytest.mark.parametrize("limit", [40, 30])
def test_the_canary_has_questions_enough_to_pass_the_gate_validity(run: Run, limit: int) -> None:
    """Of no invalid reply in 30 questions the interval reaches to .114, in 40 to .088."""
    planned = run("canary", *(["--limit", str(limit)] if limit == 30 else []))
    assert re.search(rf"^factual_error +{limit} ", planned.stdout, re.MULTILINE)
    assert ("The gate validity is inconclusive if every reply is valid" in planned.stdout) == (
        limit == 30
    )
