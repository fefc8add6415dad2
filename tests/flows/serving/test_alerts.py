"""A study that is run when another one finds drift: only once, and only if it may run."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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

state, step, named = sys.argv[1:]
DRIFT = {
    "dataset": "demo", "judge": "ada", "prompt": "plain", "wave": "w2", "mode": "balanced",
    "measure": "mps_drift", "epoch": 1, "base": "w1", "estimate": 0.3, "level": 0.05,
    "minimum": 0.05,
    "n": 30, "clusters": 30, "state": state, "simulated": True, "perturbation": "boast",
}

async def main():
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
        drifts = Drifts.of(Drifts.draft(pl.DataFrame([DRIFT])))
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

asyncio.run(main())
"""
WATCH = 'about = "x"\non_alert = "deep"\n[study]\njudges = ["offline/random"]\nwave = "{date}"\n'
DEEP = 'about = "x"\ncron = "0 0 1 1 *"\n[study]\njudges = ["ada/one"]\n'
ADA = "[provider]\nkey_variable = 'ADA_API_KEY'\n[judges.one]\nmodel = 'openai/one'\n"


@pytest.fixture
def watched(environment: dict[str, str], tmp_path: Path) -> Callable[..., tuple[list[str], str]]:
    """Return what was started, and what was said, when ``watch`` ends with drift in a state."""
    studies, providers = tmp_path / "voirdire" / "studies", tmp_path / "providers"
    studies.mkdir(parents=True)
    providers.mkdir()
    (studies / "watch.toml").write_text(WATCH)
    (providers / "ada.toml").write_text(ADA)

    def end(
        state: str, step: str, deep: str = "budget_usd = 3", named: str = ""
    ) -> tuple[list[str], str]:
        (studies / "deep.toml").write_text(f"{DEEP}{deep}\n")
        done: Any = subprocess.run(
            [sys.executable, "-c", SCRIPT, state, step, named],
            cwd=tmp_path,
            env={
                **environment,
                "VOIRDIRE_PROVIDERS": str(providers),
                "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stdout + done.stderr

    return end


# The first is the served warehouse; the other is beside it, which a form names in this way.
@pytest.mark.parametrize("named", ["", "other"])
def test_an_alert_starts_the_other_study_once(watched: Any, named: str, tmp_path: Path) -> None:
    started, said = watched("alert", "on", named=named)
    assert started == ["deep"]
    assert "Drift was found: started deep" in said
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("state", "step", "deep", "part"),
    [
        ("alert", "off", "budget_usd = 3", "`voirdire schedules --on deep`"),
        ("alert", "on", "", "it can spend money and has no budget_usd"),
        ("suspect", "on", "budget_usd = 3", ""),
    ],
)
def test_what_may_not_spend_is_not_started(
    watched: Any, state: str, step: str, deep: str, part: str
) -> None:
    started, said = watched(state, step, deep)
    assert started == []
    assert part in said
