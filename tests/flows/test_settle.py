"""What serve does about runs that were due, or ran, when nothing served them any more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.served, pytest.mark.slow]
SCRIPT = """
import asyncio, json, sys
from datetime import UTC, datetime, timedelta

from prefect import get_client
from prefect.states import Running

from flows.serving.deployments import KeptDeployment, settle, switch
from flows.audit import audit
from flows.studies import Study, StudyFile

FILE = StudyFile(about="x", cron="0 3 * * *", study=Study(judges=["offline/random"], wave="{date}"))

async def main():
    made = KeptDeployment.of(audit, "left", "x", [], FILE)
    async with get_client() as client:
        id = await made.aapply()
        now = datetime.now(UTC)
        times = {"start_time": (now - timedelta(days=3)).isoformat(), "end_time": now.isoformat()}
        path = "/deployments/{id}/schedule"
        await client.request("POST", path, path_params={"id": id}, json={**times, "min_runs": 3})
        begun = await client.create_flow_run_from_deployment(id, state=Running())
        settled = [await settle(client, made.registered, alone=alone) for alone in (False, True)]
        runs = [run for run in await client.read_flow_runs() if run.deployment_id == id]
        due = [r for r in runs if r.expected_start_time < now and r.id != begun.id]
        states = [r.state.type for r in sorted(due, key=lambda r: r.expected_start_time)]
        after = await client.read_flow_run(begun.id)
        wave = f"{begun.expected_start_time:%Y-%m-%d}"
        print(json.dumps([states, after.state.type, settled, after.state.message, wave]))
        await client.delete_deployment(id)
        for run in [*due, begun]:
            try:
                await client.delete_flow_run(run.id)
            except Exception:
                pass

asyncio.run(main())
"""


def test_one_missed_run_is_made_up_for_and_what_ran_has_crashed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states, begun, (shared, alone), message, wave = json.loads(done.stdout.splitlines()[-1])
    assert states == ["CANCELLED", "CANCELLED", "SCHEDULED"]
    assert begun == "CRASHED"
    # At a server that others use too, they may be running it.
    assert len(shared) == 1
    assert "UTC and is run now; 2 earlier runs are cancelled" in shared[0]
    place = Path(environment.get("VOIRDIRE_WAREHOUSE", tmp_path / "voirdire.duckdb"))
    command = f"voirdire audit left --wave {wave} --warehouse {place}"
    todo = f"Its votes are kept: `{command}` continues it."
    assert alone[-1].endswith(f"did not report its end. {todo}")
    assert message == f"voirdire serve ended while it ran. {todo}"
