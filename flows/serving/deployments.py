"""Studies as Prefect deployments: register them, and keep what users have set in the UI."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

from httpx import HTTPStatusError
from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.objects import StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow
from prefect.states import Cancelled, Crashed
from prefect.types.entrypoint import EntrypointType
from pydantic import PrivateAttr

from flows.serving.allowed_paths import served_warehouse
from flows.serving.run_labels import tags_of
from flows.studies import Study, StudyFile
from flows.studies.repeated import continuing
from warehouse.path_checks import default_path

SLUG = "voirdire"
"""Slug of the study file's schedule; users' own schedules have others."""
BASE = "voirdire"
"""Job variable with the registered values: a value that differs was set by a user."""
RUN_BY_WORKERS = (
    "pull_steps",
    "work_pool_name",
    "work_queue_name",
    "storage_document_id",
    "infrastructure_document_id",
)
"""Fields that would make Prefect run other code."""
REGISTER = "Restart `voirdire serve`, which registers all studies or reports why it cannot."

SCHEDULES: Final = "/deployments/{id}/schedules"
SCHEDULE: Final = "/deployments/{id}/schedules/{schedule_id}"
BY_NAME: Final = "/deployments/name/{flow_name}/{deployment_name}"

Json = dict[str, Any]


@dataclass
class Registered:
    """A deployment on the server."""

    name: str
    id: UUID
    study: Study | None
    """With the values that users have set."""
    schedules: list[Json]
    paused: bool
    notes: list[str] = field(default_factory=list)
    """Differences from the study file, and changes made."""

    @property
    def on(self) -> bool:
        """Whether it runs on a schedule."""
        return not self.paused and any(schedule["active"] for schedule in self.schedules)


class NotServedError(LookupError):
    """The server has no deployment of a study or flow."""


class KeptDeployment(RunnerDeployment):
    """A deployment whose schedule and parameters users may change once it is registered.

    The schedule of a study that can spend money is off at first.
    """

    _cron: Json | None = PrivateAttr(default=None)
    _spends: bool = PrivateAttr(default=False)
    _registered: Registered = PrivateAttr()

    @classmethod
    def of(
        cls, flow: Flow[..., Any], name: str, about: str, tags: list[str], file: StudyFile | None
    ) -> "KeptDeployment":
        """Return the deployment of a flow, with the parameters and schedule of a study file."""
        made = cls.from_flow(
            flow,
            name=name,
            description=about,
            parameters={"study": file.study.model_dump(mode="json")} if file else {},
            tags=tags,
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        return cast("KeptDeployment", made).scheduled(file)

    def scheduled(self, file: StudyFile | None) -> "KeptDeployment":
        """Set the schedule of a study file; return the deployment."""
        if file and file.cron:
            self._cron = {"cron": file.cron, "timezone": file.study.timezone}
            self._spends = file.study.can_spend()
        return self

    @property
    def registered(self) -> Registered:
        """The deployment as it is on the server, once it is registered."""
        return self._registered

    async def aapply(self, *_: object, **__: object) -> UUID:
        """Register the deployment, or update the fields of an existing one that are not users'."""
        async with get_client() as client:
            notes = []
            if (found := await _find(client, self.full_name)) is None:
                await self._register(client)
            elif (base := (found["job_variables"] or {}).get(BASE)) is None:
                await self._register(client)
                notes = ["was registered by an earlier version, so it is registered again"]
            else:
                notes = await self._update_fields(client, found, base)
            self._registered = await read(client, self.full_name)
        self._registered.notes += notes
        return self._registered.id

    async def _register(self, client: PrefectClient) -> None:
        flow_id = await client.create_flow_from_name(str(self.flow_name))
        body = {
            **self._ours(),
            "name": self.name,
            "flow_id": str(flow_id),
            "paused": False,
            "parameters": self.parameters,
            "schedules": [self._new_schedule()] if self._cron else [],
        }
        await client.request("POST", "/deployments/", json=body)

    async def _update_fields(self, client: PrefectClient, found: Json, base: Json) -> list[str]:
        parameters, notes = merge(base["parameters"], found["parameters"], self.parameters)
        notes += await self._update_schedule(client, found, base)
        body = {
            **self._ours(),
            "parameters": parameters,
            "tags": [*self.tags, *(tag for tag in found["tags"] if tag not in self.tags)],
            **dict.fromkeys(RUN_BY_WORKERS),
        }
        await client.request(
            "PATCH", "/deployments/{id}", path_params={"id": found["id"]}, json=body
        )
        return notes

    async def _update_schedule(self, client: PrefectClient, found: Json, base: Json) -> list[str]:
        place = {"id": found["id"]}
        one = next((each for each in found["schedules"] if each.get("slug") == SLUG), None)
        before, ours = base["schedule"], self._cron
        if one is None:
            if ours and not before:
                new = [self._new_schedule()]
                await client.request("POST", SCHEDULES, path_params=place, json=new)
                return [f"now has a schedule: {schedule_text(ours)}"]
            removed = f"its schedule was removed; the study file has {schedule_text(ours)}"
            return [removed] if ours else []
        place["schedule_id"] = one["id"]
        now = _cron_of(one)
        # Fields that are not sent would be reset.
        kept = {"parameters": one["parameters"]}
        notes = []
        if now == before and ours is None:
            await client.request("DELETE", SCHEDULE, path_params=place)
            return ["its study file no longer has a schedule, so it was removed"]
        if now == before != ours:
            await client.request(
                "PATCH", SCHEDULE, path_params=place, json={**kept, "schedule": ours}
            )
            notes.append(f"its schedule is now {schedule_text(ours)}, as in its study file")
        elif now != ours:
            file = schedule_text(ours)
            notes.append(f"runs at {schedule_text(now)}; the study file has {file}")
        if one["active"] and self._spends and not base["spends"]:
            await client.request(
                "PATCH", SCHEDULE, path_params=place, json={**kept, "active": False}
            )
            notes.append("can now spend money, so its schedule was switched off")
        return notes

    def _ours(self) -> Json:
        """Return the fields that users cannot change, because other code or forms would result."""
        base = {"parameters": self.parameters, "schedule": self._cron, "spends": self._spends}
        return {
            "description": self.description,
            "version": self.version,
            "tags": self.tags,
            "entrypoint": self.entrypoint,
            "path": self._path,
            "parameter_openapi_schema": self._parameter_openapi_schema.model_dump(
                exclude_unset=True
            ),
            "enforce_parameter_schema": True,
            "job_variables": {BASE: base},
        }

    def _new_schedule(self) -> Json:
        return {"schedule": self._cron, "active": not self._spends, "slug": SLUG}


def merge(base: Json, now: Json, ours: Json, place: str = "") -> tuple[Json, list[str]]:
    """Return the parameters, those that users have set and ours, and notes on the differences.

    ``base`` holds the registered values: a value that has not changed since was not set by a user.
    """
    merged: Json = {}
    notes: list[str] = []
    for key in [*ours, *(key for key in now if key not in ours and key not in base)]:
        name = f"{place}{key}"
        before, here, file = base.get(key), now.get(key), ours.get(key)
        if isinstance(file, dict) and isinstance(here, dict):
            known = {each: here[each] for each in here if each in file} if file else here
            before = before if isinstance(before, dict) else {}
            merged[key], more = merge(before, known, file, f"{name}.")
            notes += more
        elif here in (before, file):
            merged[key] = file
        else:
            merged[key] = here
            if key in ours:
                notes.append(f"{name} is {here!r:.80}; the study file has {file!r:.80}")
    return merged, notes


async def read(client: PrefectClient, full_name: str) -> Registered:
    """Return a deployment from the server.

    Raise NotServedError if there is none with this name.
    """
    found = await _find(client, full_name)
    if found is None:
        raise NotServedError(
            f"{full_name.split('/', 1)[1]!r} is not served yet: this Prefect server has no "
            f"deployment {full_name}. {REGISTER}"
        )
    given = (found["parameters"] or {}).get("study")
    study, notes = None, []
    if isinstance(given, dict):
        try:
            study = Study.model_validate(given)
        except ValueError as error:
            notes = [f"has invalid parameters: {error}"]
    paused = bool(found["paused"])
    return Registered(found["name"], UUID(found["id"]), study, found["schedules"], paused, notes)


async def served_studies(client: PrefectClient) -> list[str]:
    """Return the names of the studies that are deployments of the server."""
    ours = DeploymentFilter(tags=DeploymentFilterTags(all_=tags_of("audit")))
    found = await client.read_deployments(deployment_filter=ours)
    return sorted(deployment.name for deployment in found)


async def switch(client: PrefectClient, full_name: str, *, on: bool) -> Registered:
    """Switch the schedules of a deployment on or off.

    Raise ValueError if it has no schedule.
    """
    found = await read(client, full_name)
    if not found.schedules:
        raise ValueError(
            f"{found.name} has no schedule to switch. Give its study file a cron line, or add a "
            "schedule in the Prefect UI."
        )
    place = {"id": found.id}
    for schedule in found.schedules:
        change = {"active": on, "parameters": schedule["parameters"]}
        one = {**place, "schedule_id": schedule["id"]}
        await client.request("PATCH", SCHEDULE, path_params=one, json=change)
    if on:
        await client.request("POST", "/deployments/{id}/resume_deployment", path_params=place)
        # Otherwise the server may take a minute to notice.
        await client.request("POST", "/deployments/{id}/schedule", path_params=place, json={})
    return await read(client, full_name)


async def settle(client: PrefectClient, registered: Registered, *, alone: bool) -> list[str]:
    """End runs that were left over when serving stopped; return notes on them.

    Of the runs that were due meanwhile, only the latest is started. Runs that had begun are marked
    as crashed if no other process can be running them (``alone``).
    """
    due = await _runs(client, registered, [StateType.SCHEDULED])
    missed = [run for run in due if run["auto_scheduled"]]
    for run in missed[1:]:
        message = "It was due while voirdire serve was not running; a later run replaces it."
        await client.set_flow_run_state(UUID(run["id"]), Cancelled(message=message), force=True)
    notes = []
    if missed:
        others = f"; {len(missed) - 1} earlier runs are cancelled" if missed[1:] else ""
        notes = [f"was due at {missed[0]['expected_start_time'][:16]} UTC and is run now{others}"]
    begun = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
    for run in await _runs(client, registered, begun) if alone else []:
        todo = f"Its votes are kept: {_how_to_continue(registered.name, run)}."
        message = f"voirdire serve ended while it ran. {todo}"
        await client.set_flow_run_state(UUID(run["id"]), Crashed(message=message), force=True)
        notes.append(f"{run['name']} did not report its end. {todo}")
    return notes


def _how_to_continue(name: str, run: Json) -> str:
    """Say how to continue a run of a deployment: the same wave again, with the same options."""
    given = run["parameters"].get("study")
    try:
        due = datetime.fromisoformat(run["expected_start_time"])
        study = Study.model_validate(given)
        study = study.model_copy(update={"wave": study.at(due).wave})
        place = served_warehouse(run["parameters"].get("warehouse"))
    except ValueError:
        # A flow without a study, or a form with values that no run takes.
        return "run it again"
    return f"`{continuing(study, name, Path(place or default_path()))}` continues it"


async def _runs(
    client: PrefectClient, registered: Registered, states: list[StateType]
) -> list[Json]:
    """Return the due runs of a deployment in these states, the latest first."""
    wanted = {
        "deployment_id": {"any_": [str(registered.id)]},
        "state": {"type": {"any_": [state.value for state in states]}},
        "expected_start_time": {"before_": datetime.now(UTC).isoformat()},
    }
    body = {"flow_runs": wanted, "sort": "EXPECTED_START_TIME_DESC"}
    answer = await client.request("POST", "/flow_runs/filter", json=body)
    found: list[Json] = answer.json()
    return found


async def _find(client: PrefectClient, full_name: str) -> Json | None:
    flow, name = full_name.split("/", 1)
    names = {"flow_name": flow, "deployment_name": name}
    try:
        answer = await client.request("GET", BY_NAME, path_params=names)
    except ObjectNotFound:
        return None
    except HTTPStatusError as error:
        if error.response.status_code == HTTPStatus.NOT_FOUND:
            return None
        raise
    found: Json = answer.json()
    return found


def _cron_of(schedule: Json) -> Json:
    """Return the part of a schedule that determines its times: cron line and time zone."""
    when: Json = schedule["schedule"]
    return {"cron": when["cron"], "timezone": when.get("timezone")} if "cron" in when else when


def schedule_text(when: Json | None) -> str:
    """Describe the times of a schedule."""
    if when is None:
        return "none"
    if "cron" in when:
        return f"{when['cron']} {when.get('timezone') or 'UTC'}"
    return f"every {when['interval']:g} s" if "interval" in when else str(when.get("rrule", when))
