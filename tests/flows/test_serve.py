"""Prefect for real: serve, trigger a run through the API, read the mart."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from flows.studies import STUDIES
from warehouse.store import Warehouse

pytestmark = [pytest.mark.served, pytest.mark.xdist_group("served")]
PATIENCE = 120


def test_a_study_runs_from_the_ui(environment: dict[str, str], server: str, tmp_path: Path) -> None:
    serving = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "serve"], cwd=tmp_path, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deployments = _until(lambda: _deployments(server))
        nightly = deployments["nightly"]
        assert nightly["schedules"][0]["schedule"]["cron"] == STUDIES["nightly"].cron
        form = deployments["quick"]["parameter_openapi_schema"]["definitions"]["Study"]
        assert "offline/gullible" in form["properties"]["judges"]["items"]["enum"]
        run = _call(
            f"{server}/deployments/{deployments['quick']['id']}/create_flow_run",
            {
                "parameters": {
                    "study": {"name": "from_ui", "limit": 2, "judges": ["offline/random"]}
                }
            },
        )
        state = _until(lambda: _end_of(server, run["id"]))
    finally:
        serving.terminate()
        serving.wait(timeout=60)
    assert state == ("COMPLETED", "36 ballots: 0 from the warehouse, 36 cast, 0 without a reply")
    warehouse = Warehouse(environment["VOIRDIRE_WAREHOUSE"])
    rows = warehouse.query("select study, judge, finding from mart.bias").rows()
    assert rows == [("from_ui", "offline/random", "too few questions")] * 4
    recorded = warehouse.query("select run, state from runs").rows()
    assert recorded == [(run["id"], "completed")]


def _deployments(server: str) -> dict[str, Any] | None:
    found = {d["name"]: d for d in _call(f"{server}/deployments/filter", {})}
    return found if set(STUDIES) <= set(found) else None


def _end_of(server: str, run: str) -> tuple[str, str] | None:
    with urllib.request.urlopen(f"{server}/flow_runs/{run}", timeout=30) as answer:
        state = json.load(answer)["state"]
    ended = state["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
    return (state["type"], state["message"]) if ended else None


def _until(ask: Any) -> Any:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if (found := ask()) is not None:
            return found
        time.sleep(0.5)
    raise AssertionError(f"nothing within {PATIENCE} s")


def _call(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)
