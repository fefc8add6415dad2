"""Names and tags of flow runs in the Prefect UI."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.runtime import flow_run as this_run
from pydantic import BaseModel

from flows.studies import Study
from warehouse.path_checks import default_path

OURS = "voirdire"
LABELS = ("kind:", "study:", "warehouse:")
"""Beginnings of the tags that a run gets."""


def tags_of(kind: str, study: str | None = None) -> list[str]:
    """Return the tags of a flow of this kind, for one study or for all."""
    return [OURS, f"kind:{kind}", *([f"study:{study}"] if study else [])]


def due() -> datetime:
    """Return when this run was due; a late or repeated run keeps its wave."""
    scheduled: datetime | None = this_run.scheduled_start_time
    return scheduled or datetime.now(UTC)


def run_name() -> str:
    """Name this run after its study and its wave, or the time of its start."""
    study = _subject(this_run.parameters)
    if study.get("wave"):
        return f"{study['name']} {Study.model_validate(study).at(due()).wave}"
    return f"{study['name']} {datetime.now(UTC):%Y-%m-%d %H:%M}"


async def tag_run(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Tag a run with its flow, its study and its warehouse, which the form may have changed."""
    if not state.is_running():
        return
    warehouse = Path(flow_run.parameters.get("warehouse") or default_path()).name
    ours = [*tags_of(flow.name, _subject(flow_run.parameters)["name"]), f"warehouse:{warehouse}"]
    others = [tag for tag in flow_run.tags if not tag.startswith(LABELS) and tag != OURS]
    async with get_client() as client:
        await client.update_flow_run(flow_run.id, tags=[*ours, *others])


def _subject(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the study or calibration of a flow run, from its form or by its name."""
    given = parameters.get("study") or parameters.get("calibration") or "quick"
    if isinstance(given, BaseModel):
        given = given.model_dump()
    return given if isinstance(given, dict) else {"name": given}
