"""The artifact ``answer``; whole audits and runs from the UI test what else it says."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from flows.publishing.answers import study_answer
from flows.studies import make_study
from schemas.conclusions import Recommendations
from schemas.results import Drifts, Findings
from tasks.gates.explanations import ABSENT


@pytest.mark.parametrize(
    ("name", "option"), [("voirdire", ""), ("team", " --warehouse team.duckdb")]
)
def test_its_commands_name_the_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    known = {"dataset": "d", "judge": "ada", "prompt": "plain", "wave": "", "mode": "balanced"}
    row = dict.fromkeys(Recommendations.to_schema().columns) | known
    row |= {"simulated": False, "recommendation": "use", "passed": 1, "failed": 0}
    row |= {"inconclusive": 0, "unanswered": False, "not_measured": ABSENT["agreement"]}
    concluded: Any = SimpleNamespace(
        recommendations=pl.DataFrame([row]), findings=Findings.empty(), drifts=Drifts.empty()
    )
    concluded.in_mode = lambda _: concluded
    place = tmp_path / f"{name}.duckdb"
    said = study_answer(make_study("quick", {}), concluded, "", "", place)["markdown"]
    assert f"(`voirdire booth quick{option}`)" in said
    assert f"Then `voirdire calibrate quick{option}` compares" in said
