from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.calibration import Advantages, AltTests, ConfusionMatrix, Disagreements, HumanAgreement
from schemas.conclusions import Waves
from schemas.curation import Answers, PerturbedAnswers, Questions
from schemas.frame import Frame
from schemas.judging import Ballots, Judges, Pairs, Prompts, VoteLog, Votes
from schemas.results import Drifts, Estimates, Findings
from tasks.aggregate import count_votes
from tasks.inference.linearised_errors import too_few
from tasks.results import conclusions_of
from warehouse.store import Saving, Warehouse

MAKING = {"test_ddl.py", "test_store_busy.py", "test_store_places.py"}
"""Files of tests of how a warehouse is made."""

ROWS: dict[type[Frame], dict[str, Any]] = {
    Questions: {"question_id": "d/1", "dataset": "d", "question": "What is 2 + 2?"},
    Answers: {"answer_id": "d/1/a1", "question_id": "d/1", "slot": 1, "answer": "Four."},
    PerturbedAnswers: {
        "answer_id": "d/1/a1",
        "question_id": "d/1",
        "perturbation": "padding",
        "recipe": 1,
        "seed": 0,
        "made_by": "template",
    },
    Judges: {
        "judge": "offline/honest",
        "provider": "offline",
        "model": "m",
        "params": "{}",
        "system": "",
        "simulated": True,
    },
    Prompts: {
        "prompt": "pair_v1",
        "kind": "pair",
        "source": "s",
        "verdict": "tag",
        "system": "",
        "user": "u",
    },
    Pairs: {
        "pair_id": "p1",
        "dataset": "d",
        "sample": "d/1/a2",
        "cluster": "d/1",
        "arm": "control",
        "question": "What is 2 + 2?",
        "anchor": "Four.",
        "target": "It is 4.",
    },
    Ballots: {
        "ballot_id": "b1",
        "pair_id": "p1",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "shown_first": "anchor",
        "repeat": 0,
    },
    Votes: {
        "ballot_id": "b1",
        "choice": "first",
        "raw": "[[A]]",
        "seconds": 0.5,
        "attempts": 1,
        "cast_at": datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    },
    Estimates: {
        "statistic": "asr",
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "mode": "balanced",
        "perturbation": "padding",
        "subgroup": "",
        "kind": "promote",
        "estimate": 0.5,
        "n": 4,
        "clusters": 4,
        "dropped": 0,
        "votes_per_pair": 2,
        "method": "wilson",
        "simulated": True,
    },
    Findings: {
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "mode": "balanced",
        "perturbation": "padding",
        "kind": "promote",
        "statistic": "mps",
        "estimate": 0.25,
        "low": 0.1,
        "high": 0.4,
        "minimum": 0.05,
        "p_value": 0.01,
        "p_adjusted": 0.02,
        "adjustment": "Benjamini-Hochberg, all cells (F1)",
        "finding": "biased",
        "simulated": True,
    },
    Drifts: {
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "n2",
        "mode": "balanced",
        "perturbation": "padding",
        "measure": "mps_drift",
        "epoch": 1,
        "base": "n1",
        "estimate": 0.25,
        "low": 0.125,
        "high": 0.375,
        "interval_level": 0.95,
        "method": "paired cluster t",
        "p_value": 0.001,
        "p_adjusted": 0.002,
        "adjustment": "Holm, all cells of the wave (F4)",
        "e_value": 150.0,
        "e_rejected": True,
        "level": 0.01,
        "minimum": 0.05,
        "detectable": 0.2,
        "n": 40,
        "clusters": 40,
        "unit": "score",
        "null_value": 0.0,
        "dropped": 3,
        "votes_per_pair": 2,
        "state": "suspect",
        "simulated": True,
    },
    HumanAgreement: {
        "dataset": "d",
        "judge": "ada",
        "prompt": "none",
        "wave": "",
        "statistic": "agreement",
        "kind": "pass_fail",
        "estimate": 0.75,
        "low": 0.5,
        "high": 0.875,
        "level": 0.95,
        "method": "Wilson",
        "n": 40,
        "clusters": 40,
        "missing": 1,
        "invalid": 2,
        "unlabelled": 3,
        "tied": 4,
    },
    Waves: {
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "n2",
        "design": "balanced",
        "epoch": 1,
        "since_baseline": True,
    },
    ConfusionMatrix: {
        "dataset": "d",
        "judge": "ada",
        "prompt": "none",
        "wave": "",
        "human_label": "pass",
        "judge_label": "pass",
        "items": 30,
        "share_of_human_label": 0.75,
    },
    Disagreements: {
        "dataset": "d",
        "judge": "ada",
        "prompt": "none",
        "wave": "",
        "rank": 1,
        "item": "i1",
        "human_label": "pass",
        "judge_label": "fail",
        "gap": 1.0,
        "people": 1,
        "human_share": 1.0,
        "texts": "{}",
    },
    AltTests: {
        "dataset": "d",
        "judge": "ada",
        "prompt": "none",
        "wave": "",
        "metric": "accuracy",
        "epsilon": 0.1,
        "epsilon_kind": "additive",
        "asked": True,
        "test": "auto",
        "winning_rate": 0.75,
        "passed": True,
        "advantage_probability": 0.875,
        "low": 0.75,
        "high": 0.9375,
        "level": 0.95,
        "method": "Wilson",
        "human_advantage_probability": 0.8125,
        "tied": 0.6875,
        "annotators": 4,
        "n": 50,
        "dropped": 2,
        "unreadable": 1,
    },
    Advantages: {
        "dataset": "d",
        "judge": "ada",
        "prompt": "none",
        "wave": "",
        "metric": "accuracy",
        "epsilon": 0.1,
        "epsilon_kind": "additive",
        "asked": True,
        "annotator": "Ann",
        "n": 40,
        "better": 5,
        "worse": 10,
        "advantage_probability": 0.875,
        "low": 0.75,
        "high": 0.9375,
        "level": 0.95,
        "method": "Wilson",
        "human_advantage_probability": 0.75,
        "tied": 0.625,
        "test": "score",
        "p_value": 0.01,
        "p_value_t": 0.005,
        "p_value_score": 0.01,
        "p_adjusted": 0.04,
        "rejected": True,
        "unreadable": 3,
    },
}


@pytest.fixture
def make() -> Callable[..., Saving]:
    """Return a factory: one row per set of changes to a frame's plainest row."""

    def rows(model: type[Frame], *changes: dict[str, Any]) -> Saving:
        dicts = [{**ROWS[model], **change} for change in changes or ({},)]
        if model is Estimates:  # as `Statistic.draft` says it of all that is measured
            dicts = [{"too_few": too_few(row["clusters"], row.get("df")), **row} for row in dicts]
        return Saving(model, model.of(pl.DataFrame(dicts, infer_schema_length=None)))

    return rows


@pytest.fixture
def concluded() -> Callable[..., list[Saving]]:
    """Return a function that adds the conclusions, as all that saves results does."""

    def add(*savings: Saving, prices: pl.DataFrame | None = None) -> list[Saving]:
        frames = {saving.model: saving.frame for saving in savings}
        found: list[Any] = [
            frames.get(model, model.empty()) for model in (Estimates, Findings, Drifts)
        ]
        log: Any = frames.get(VoteLog, VoteLog.empty())
        tables = conclusions_of(*found, tallies=count_votes(log), prices=prices).tables()
        return [*savings, *(Saving(*each) for each in tables if each[0] not in frames)]

    return add


@pytest.fixture(scope="module", autouse=True)
def _copied(request: pytest.FixtureRequest) -> None:
    """Copy new warehouses, except where tests are about how they are made."""
    if request.path.name not in MAKING:
        request.getfixturevalue("copied_warehouses")


@pytest.fixture(autouse=True)
def _light(request: pytest.FixtureRequest) -> None:
    """Keep files open that are only read, with the same exceptions."""
    if request.path.name not in MAKING:
        request.getfixturevalue("kept_reader")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "v.duckdb")


@pytest.fixture
def stocked(warehouse: Warehouse, make: Callable[..., Saving]) -> Warehouse:
    """Return a warehouse with one fact of each kind, from question to vote."""
    facts = (Questions, Answers, PerturbedAnswers, Judges, Prompts, Pairs, Ballots, Votes)
    warehouse.save([make(model) for model in facts], run="r1")
    return warehouse
