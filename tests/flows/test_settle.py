"""What serve does about runs that were due, or ran, when nothing served them any more."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prefect import get_client
from prefect.exceptions import ObjectNotFound
from prefect.states import Running

from flows.audit import audit
from flows.serving.deployments import KeptDeployment, settle
from flows.studies import Study, StudyFile

pytestmark = [pytest.mark.served, pytest.mark.slow]
NIGHTLY = Study(judges=["offline/random"], wave="{date}")
FILE = StudyFile(about="x", cron="0 3 * * *", study=NIGHTLY)


class Settled(NamedTuple):
    """What became of a deployment's runs."""

    due: list[str]
    """The states of those that were due, the earliest first."""
    begun: Any
    """The run that ran, as it is afterwards."""
    shared: list[str]
    """What was said at a server that others use too."""
    alone: list[str]
    """What was said at one's own server."""


async def _settle() -> Settled:
    """Settle the runs of three days in which nothing served them, and one that was running."""
    made = KeptDeployment.of(audit, "left", "x", [], FILE)
    async with get_client() as client:
        deployment = await made.aapply()
        now = datetime.now(UTC)
        times = {"start_time": (now - timedelta(days=3)).isoformat(), "end_time": now.isoformat()}
        await client.request(
            "POST",
            "/deployments/{id}/schedule",
            path_params={"id": deployment},
            json={**times, "min_runs": 3},
        )
        begun = await client.create_flow_run_from_deployment(deployment, state=Running())
        said = [await settle(client, made.registered, alone=alone) for alone in (False, True)]
        runs = [run for run in await client.read_flow_runs() if run.deployment_id == deployment]
        due = [run for run in runs if run.expected_start_time < now and run.id != begun.id]
        due.sort(key=lambda run: run.expected_start_time)
        after = await client.read_flow_run(begun.id)
        await client.delete_deployment(deployment)
        for run in [*due, begun]:
            with suppress(ObjectNotFound):
                await client.delete_flow_run(run.id)
    return Settled([run.state.type.value for run in due if run.state], after, *said)


def test_one_missed_run_is_made_up_for_and_what_ran_has_crashed(
    here: Callable[..., Any], environment: dict[str, str], tmp_path: Path
) -> None:
    with here(tmp_path, environment):
        due, begun, shared, alone = asyncio.run(_settle())
    assert due == ["CANCELLED", "CANCELLED", "SCHEDULED"]
    assert begun.state.type.value == "CRASHED"
    # At a server that others use too, they may be running it.
    assert len(shared) == 1
    assert "UTC and is run now; 2 earlier runs are cancelled" in shared[0]
    wave = f"{begun.expected_start_time:%Y-%m-%d}"
    command = f"voirdire audit left --wave {wave} --warehouse {environment['VOIRDIRE_WAREHOUSE']}"
    todo = f"Its votes are kept: `{command}` continues it."
    assert alone[-1].endswith(f"did not report its end. {todo}")
    assert begun.state.message == f"voirdire serve ended while it ran. {todo}"
