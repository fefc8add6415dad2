"""A study that is run when another one finds drift: only once, and only if it may run."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.served, pytest.mark.slow]
# What Prefect does at the end of a served run of the study `watch` that found drift: it calls the
# hooks of the flow.
SCRIPT = """
import asyncio, json, sys
from datetime import UTC, datetime

import polars as pl
from prefect import get_client
from prefect.states import Completed

from flows.serving.deployments import KeptDeployment, switch
from flows.running.run_row import first_row
from flows.audit import audit
from flows.studies import STUDIES
from schemas.results import Drifts
from warehouse.store import Saving, Warehouse

DRIFT = {
    "dataset": "demo", "judge": "ada", "prompt": "plain", "wave": "w2", "mode": "balanced",
    "measure": "mps_drift", "epoch": 1, "base": "w1", "estimate": 0.3, "level": 0.05,
    "minimum": 0.05,
    "n": 30, "clusters": 30, "simulated": True, "perturbation": "boast",
}

async def end(state, step, named):
    warehouse = Warehouse(f"{named}.duckdb" if named else None)
    made = [KeptDeployment.of(audit, n, "", [], STUDIES[n]) for n in ("watch", "deep")]
    async with get_client() as client:
        for each in made:
            await each.aapply()
        if step != "off":
            await switch(client, "audit/deep", on=True)
        form = {**made[0].parameters, **({"warehouse": named} if named else {})}
        run = await client.create_flow_run_from_deployment(made[0].registered.id, parameters=form)
        study = STUDIES["watch"].study.model_copy(update={"wave": "w2"})
        row = first_row("audit", str(run.id), study, datetime.now(UTC))
        warehouse.start_run({**row, "state": "completed"})
        drifts = Drifts.of(Drifts.draft(pl.DataFrame([{**DRIFT, "state": state}])))
        warehouse.save([Saving(Drifts, drifts)], run=str(run.id), study="watch")
        for hook in audit.on_completion_hooks * 2:
            await hook(audit, run, Completed())
        await client.delete_flow_run(run.id)
        runs = await client.read_flow_runs()
        found = [one for one in runs if one.deployment_id == made[1].registered.id]
        ours = [one for one in found if not one.auto_scheduled]
        print(json.dumps([one.parameters["study"]["name"] for one in ours]))
        # Their runs that are to come go with them.
        for each in made:
            await client.delete_deployment(each.registered.id)

async def main():
    for case in json.loads(sys.argv[1]):
        await end(*case)
        print("end of a case", file=sys.stderr, flush=True)

asyncio.run(main())
"""
WATCH = 'about = "x"\non_alert = "deep"\n[study]\njudges = ["offline/random"]\nwave = "{date}"\n'
DEEP = 'about = "x"\ncron = "0 0 1 1 *"\n[study]\njudges = ["ada/one"]\n'
ADA = "[provider]\nkey_variable = 'ADA_API_KEY'\n[judges.one]\nmodel = 'openai/one'\n"


End = tuple[str, str, str]
"""The state of the drift, whether the other study is switched on, the name of the warehouse."""


@pytest.fixture
def watched(
    environment: dict[str, str], tmp_path: Path
) -> Callable[..., list[tuple[list[str], str]]]:
    """Return what was started, and what was said, at each of several ends of ``watch``."""
    studies, providers = tmp_path / "voirdire" / "studies", tmp_path / "providers"
    studies.mkdir(parents=True)
    providers.mkdir()
    (studies / "watch.toml").write_text(WATCH)
    (providers / "ada.toml").write_text(ADA)

    def end(*ends: End, deep: str) -> list[tuple[list[str], str]]:
        (studies / "deep.toml").write_text(f"{DEEP}{deep}\n")
        done: Any = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(ends)],
            cwd=tmp_path,
            env={
                **environment,
                "VOIRDIRE_PROVIDERS": str(providers),
                "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        started = [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "["]
        said = done.stderr.split("end of a case\n")[:-1]
        return list(zip(started, said, strict=True))

    return end


def test_an_alert_starts_the_other_study_once(watched: Any, tmp_path: Path) -> None:
    # The first is the served warehouse; the other is beside it, which a form names in this way.
    served, beside, off, suspect = watched(
        ("alert", "on", ""),
        ("alert", "on", "other"),
        ("alert", "off", ""),
        ("suspect", "on", ""),
        deep="budget_usd = 3",
    )
    for started, said in (served, beside):
        assert started == ["deep"]
        assert "Drift was found: started deep" in said
    assert not (tmp_path / "other").exists()
    assert off[0] == suspect[0] == []
    assert "`voirdire schedules --on deep`" in off[1]


def test_what_may_not_spend_is_not_started(watched: Any) -> None:
    ((started, said),) = watched(("alert", "on", ""), deep="")
    assert started == []
    assert "it can spend money and has no budget_usd" in said
