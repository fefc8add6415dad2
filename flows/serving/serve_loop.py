"""Register all deployments, show them, and start due runs."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator

from prefect import get_client
from prefect.client.schemas.schedules import CronSchedule
from prefect.flows import Flow
from prefect.runner import Runner

from flows.audit import audit
from flows.calibrate import calibrate
from flows.cli.printing.live import Printer
from flows.cli.printing.tables import plain_table
from flows.remeasure import remeasure
from flows.running.recovery import mark_dead_runs
from flows.serving.deployments import (
    REGISTER,
    KeptDeployment,
    NotServedError,
    Registered,
    read,
    schedule_text,
    served_studies,
    settle,
    switch,
)
from flows.serving.prefect_reporting import report_killed_runs
from flows.serving.run_labels import tags_of
from flows.studies import STUDIES, Study, StudyFile
from tasks.kit.command_line import say
from tasks.providers import JUDGES, provider_of
from warehouse.path_checks import default_path
from warehouse.store import Warehouse, WarehouseError

TOOLS: dict[Flow[..., object], str] = {
    remeasure: "Recompute a study's results from its saved votes; no judge is asked.",
    calibrate: "May a judge replace people? From files of labels, or a study's votes.",
}
STARTS = 3
"""How often Prefect's runner, which must reach the server at once, may try to start."""
SECONDS_BETWEEN_STARTS = 2.0
SWITCH = (
    "Schedules that can spend money are off at first: switch one on with `voirdire schedules --on "
    "NAME` or on the deployment's page."
)


async def serve(*, alone: bool) -> None:
    """Register all deployments, show them, and start due runs, one at a time.

    ``alone`` means that the server is our own, so that no other process starts its runs.
    """
    deployments = list(_deployments())

    async def registering() -> Runner:
        # Pausing all deployments at the end would hide which of them users had paused.
        runner = Runner(pause_on_shutdown=False, limit=1)
        for deployment in deployments:
            await runner.aadd_deployment(deployment)
        return runner

    runner = await registering()
    async with get_client() as client:
        registered = [deployment.registered for deployment in deployments]
        for each in registered:
            each.notes += await settle(client, each, alone=alone)
    await _settle_runs()
    _show(registered, keys=True)
    for each in registered:
        for note in each.notes:
            _say(f"{each.name}: {note}")
    _say("Deployments are served. Ctrl-C stops serving.")
    await start_runs(runner, registering)


async def start_runs(runner: Runner, again: Callable[[], Awaitable[Runner]]) -> None:
    """Start due runs until this is cancelled.

    A runner that did not start, as on a busy machine, is replaced by what ``again`` returns. Raise
    what Prefect's runner raises (RuntimeError, OSError) if it did not start STARTS times.
    """
    for left in reversed(range(STARTS)):
        try:
            return await runner.start()
        except (RuntimeError, OSError) as error:
            if not left:
                raise
            _say(f"Prefect's runner did not start: {error}. It is started again.")
        await asyncio.sleep(SECONDS_BETWEEN_STARTS)
        runner = await again()
    return None


async def _settle_runs() -> None:
    """Mark runs whose process has ended, in the warehouse and on the Prefect server.

    If the warehouse cannot be used, its own runs will report that; other runs are not affected.
    """
    if (place := default_path()).is_file():
        try:
            await asyncio.to_thread(mark_dead_runs, Warehouse(place))
            for note in await report_killed_runs(Warehouse(place)):
                _say(note)
        except WarehouseError as error:
            _say(str(error))


async def show_schedules(on: tuple[str, ...], off: tuple[str, ...]) -> None:
    """Switch schedules on and off, and show all of them, also in other folders.

    Raise LookupError if a name is neither served nor a study of this folder.
    """
    async with get_client() as client:
        served = await served_studies(client)
        for name in {*on, *off} - set(served):
            STUDIES.require(name)
        for names, state in ((on, True), (off, False)):
            for name in names:
                await switch(client, f"{audit.name}/{name}", on=state)
        found, missing = [], []
        for name in dict.fromkeys([*STUDIES, *served]):
            try:
                found.append(await read(client, f"{audit.name}/{name}"))
            except NotServedError:
                missing.append(name)
    _show([each for each in found if each.schedules], keys=False)
    if missing:
        _say(f"Not served yet: {', '.join(missing)}. {REGISTER}")


def _deployments() -> Iterator[KeptDeployment]:
    for problem in STUDIES.unusable.values():
        _say(problem)
    for name in STUDIES:
        try:
            yield _of_study(name, STUDIES[name])
        except (ValueError, LookupError) as error:
            _say(f"the study {name!r} is not served: {error}")
    for flow, about in TOOLS.items():
        yield KeptDeployment.of(flow, flow.name, about, tags_of(flow.name), None)


def _of_study(name: str, file: StudyFile) -> KeptDeployment:
    file.study.check()
    if file.on_alert:
        STUDIES.require(file.on_alert)
    if file.cron:
        CronSchedule(cron=file.cron, timezone=file.study.timezone)
    tags = tags_of(audit.name, file.study.name)
    return KeptDeployment.of(audit, name, file.about, tags, file)


def _show(registered: list[Registered], *, keys: bool) -> None:
    rows = []
    for each in registered:
        when = "; ".join(schedule_text(schedule["schedule"]) for schedule in each.schedules)
        state = ("on" if each.on else "off") if when else ""
        budget = f"{each.study.budget_usd:g} USD" if each.study and each.study.budget_usd else ""
        found = [_keys(each.study)] if keys else []
        rows.append((each.name, when, state, budget, *found))
    columns = ("deployment", "runs at", "schedule", "budget", *(["keys"] if keys else []))
    Printer().print(plain_table(columns, rows))
    if any(each.schedules and not each.on for each in registered):
        say(SWITCH)


def _keys(study: Study | None) -> str:
    """List the environment variables of a study's judges: set, and missing."""
    if study is None:
        return ""
    # A judge that a user has set may no longer exist.
    known = [judge for judge in study.judges if judge in JUDGES]
    wanted = sorted({name for judge in known for name in provider_of(judge).required_variables()})
    groups = {"set": [n for n in wanted if os.environ.get(n, "").strip()]}
    groups["missing"] = [name for name in wanted if name not in groups["set"]]
    return "; ".join(f"{how}: {', '.join(names)}" for how, names in groups.items() if names)


def _say(text: str) -> None:
    say(text, err=True)
