"""Prefect for real: serve, trigger a run through the API, read the mart."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_SECONDS, wait_for

from flows.studies import STUDIES
from warehouse.store import Warehouse

pytestmark = [pytest.mark.served, pytest.mark.slow]
Ask = Callable[..., Any]
TAGS = {"voirdire", "kind:audit", "study:from_ui", "warehouse:voirdire.duckdb"}


def test_a_study_runs_from_the_ui(
    environment: dict[str, str],
    ask_server: Ask,
    errors_of: Callable[[str], list[str]],
    tmp_path: Path,
) -> None:
    with _serving(tmp_path, environment):
        deployments = wait_for(lambda: _deployments(ask_server), "no deployments")
        nightly = deployments["nightly"]
        assert nightly["schedules"][0]["schedule"]["cron"] == STUDIES["nightly"].cron
        fields = _fields(deployments["quick"], "Study")
        assert "offline/gullible" in fields["judges"]["items"]["enum"]
        assert '{"question": "prompt", "an' in fields["columns"]["description"]
        run = ask_server(
            f"/deployments/{deployments['quick']['id']}/create_flow_run",
            {
                "parameters": {
                    "study": {"name": "from_ui", "limit": 2, "judges": ["offline/random"]}
                }
            },
        )
        state = wait_for(lambda: _end_of(ask_server, run["id"]), "no end of the run")
        again = ask_server(
            f"/deployments/{deployments['remeasure']['id']}/create_flow_run",
            {"parameters": {"study": "from_ui", "formulas": True}},
        )
        second = wait_for(lambda: _end_of(ask_server, again["id"]), "no end of the run")
        assert "jaccard" in _fields(deployments["calibrate"], "Calibration")["metric"]["enum"]
        held = ask_server(
            f"/deployments/{deployments['calibrate']['id']}/create_flow_run",
            {"parameters": {"calibration": _labels(tmp_path)}},
        )
        third = wait_for(lambda: _end_of(ask_server, held["id"]), "no end of the run")
        elsewhere = str(tmp_path.parent / "elsewhere.duckdb")
        refused = ask_server(
            f"/deployments/{deployments['quick']['id']}/create_flow_run",
            {"parameters": {"study": {"name": "spy"}, "warehouse": elsewhere}},
        )
        fourth = wait_for(lambda: _end_of(ask_server, refused["id"]), "no end of the run")
    assert errors_of(run["id"]) == []
    assert state == ("COMPLETED", "36 ballots: 0 from the warehouse, 36 cast, 0 without a reply")
    warehouse = Warehouse(environment["VOIRDIRE_WAREHOUSE"])
    rows = warehouse.query("select study, judge, finding, reason from mart.bias").rows()
    # four perturbations and the position
    assert rows == [("from_ui", "offline/random", None, "fewer than 10 independent questions")] * 5
    assert second[0] == "COMPLETED", second[1]
    assert second[1].startswith("36 votes of from_ui: ")
    assert "findings recomputed and saved" in second[1]
    # A run's page shows the same steps, whoever takes them.
    of_audit, of_remeasure, of_calibrate = (
        _steps(ask_server, each["id"]) for each in (run, again, held)
    )
    assert of_remeasure == {"count votes", "measure all", "conclude"}
    assert of_remeasure < of_audit
    assert of_calibrate == {"try judges", "annotations of", "agree", "compare"}
    _check_answers(*(_answer(ask_server, each["id"]) for each in (run, again, held)))
    tags = {*ask_server(f"/flow_runs/{run['id']}")["tags"]}
    assert ("cast offline/random 1-36" in of_audit, tags) == (True, TAGS)
    assert third == (
        "COMPLETED",
        "1 of 1 judges may replace people (accuracy, additive epsilon .10)",
    )
    assert warehouse.query("select judge, passed from mart.alt_test where asked").rows() == [
        ("ada", True)
    ]
    assert (tmp_path / "reports" / "held.html").is_file()
    recorded = warehouse.query("select flow, run, state from runs order by started_at").rows()
    assert recorded == [
        ("audit", run["id"], "completed"),
        ("remeasure", again["id"], "completed"),
        ("calibrate", held["id"], "completed"),
        ("audit", refused["id"], "failed"),
    ]
    assert fourth[0] == "FAILED"
    assert "warehouse must be a name, or a path inside the folder" in fourth[1]
    assert "elsewhere" not in fourth[1]
    assert not Path(elsewhere).exists()
    of_study = "select distinct run from estimates where study = 'from_ui'"
    assert warehouse.query(of_study).rows() == [(again["id"],)]


@contextmanager
def _serving(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Serve; end it as a service manager does."""
    log = folder / "log"
    with log.open("wb") as file:
        serving = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "serve"],
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=file,
        )
    try:
        yield
    finally:
        serving.terminate()
        code = serving.wait(timeout=PATIENCE_SECONDS)
    last = log.read_text().splitlines()[-1]
    assert (code, last[:35]) == (0, "Stopped. Schedules stay as they are")


def _check_answers(audited: str, recomputed: str, compared: str) -> None:
    """Check that the page of each run answers by itself."""
    for study in (audited, recomputed):
        assert "? offline/random (simulated): **not enough data**. " in study
        assert "| offline/random (simulated) | fake\\_reference | " in study
    assert "36 votes of from\\_ui: " in recomputed
    assert "- ✓ ada: **may replace people**. Winning rate 1.00 among " in compared
    assert "| ada | 1.00 | 1.00 \\[.94,\N{NO-BREAK SPACE}1.00\\] | passes |" in compared
    assert "reports/held.html" in compared


def _answer(ask: Ask, run: str) -> str:
    """Return the artifact ``answer`` of a run."""
    wanted = {"flow_run_id": {"any_": [run]}, "key": {"any_": ["answer"]}}
    (found,) = ask("/artifacts/filter", {"artifacts": wanted})
    assert isinstance(found["data"], str)
    return found["data"]


def _labels(folder: Path) -> dict[str, str]:
    """Write labels of people and of a judge into the folder for them; return the form."""
    folder = folder / "voirdire" / "datasets"
    folder.mkdir(parents=True)
    same = {f"i{number}": "ab"[number % 2] for number in range(60)}
    for name, who in (("humans", ("Ann", "Bob", "Cid")), ("judges", ("ada",))):
        (folder / f"{name}.json").write_text(json.dumps(dict.fromkeys(who, same)))
    files = {name: f"{name}.json" for name in ("humans", "judges")}
    return {"name": "held", **files}


def _deployments(ask: Ask) -> dict[str, Any] | None:
    found = {d["name"]: d for d in ask("/deployments/filter", {})}
    return found if {*STUDIES, "remeasure", "calibrate"} <= set(found) else None


def _fields(deployment: dict[str, Any], model: str) -> Any:
    """Return the fields of a deployment's form."""
    return deployment["parameter_openapi_schema"]["definitions"][model]["properties"]


def _steps(ask: Ask, run: str) -> set[str]:
    """Return the names of a run's tasks."""
    found = ask("/task_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
    return {each["name"] for each in found}


def _end_of(ask: Ask, run: str) -> tuple[str, str] | None:
    state = ask(f"/flow_runs/{run}")["state"]
    ended = state["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
    return (state["type"], state["message"]) if ended else None
