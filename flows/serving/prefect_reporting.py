"""Messages to the Prefect server; no result depends on its responses."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic

import httpx
from prefect import get_client, get_run_logger
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import State, StateType
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run as this_run
from prefect.states import Crashed

from flows.studies.repeated import continuing
from flows.studies.study import Study
from warehouse.store import Warehouse

MESSAGE_SECONDS = 10.0
"""Timeout of one message, including retries."""

PAUSE_SECONDS = 60.0
"""How long no further message is sent after one has failed."""

SECONDS_FOR_LOGS = 10.0
"""Timeout of sending the rest of a run's log and events when the run has ended."""

KILLED = """
    select run, flow, study, parameters from runs
    where state = 'killed' and list_contains(?::varchar[], run)
"""
outcomes: list[State[None]] = []
"""Final states of the runs of this process, whether or not the server has recorded them."""


class ServerMessages:
    """Sends messages to a Prefect server that may be gone."""

    def __init__(self) -> None:
        self._until = 0.0
        self.lost = 0
        """Number of messages that failed or were not sent."""

    async def send(self, message: Callable[[], Awaitable[object]]) -> object | None:
        """Send a message; return its result, or null if the server does not respond."""
        if monotonic() < self._until:
            self.lost += 1
            return None
        try:
            async with asyncio.timeout(MESSAGE_SECONDS):
                return await message()
        except (httpx.HTTPError, OSError, TimeoutError) as error:
            if not self.lost:
                get_run_logger().warning(
                    f"The Prefect server does not respond ({type(error).__name__}), so its UI will "
                    "not show the rest of this run. Votes and results are saved in the warehouse."
                )
            self.lost += 1
            self._until = monotonic() + PAUSE_SECONDS
            return None


def is_busy(error: httpx.HTTPError) -> bool:
    """Tell whether a server was silent, or refused a write because its database was in use."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code == httpx.codes.SERVICE_UNAVAILABLE
    return isinstance(error, httpx.TimeoutException)


async def report_killed_runs(warehouse: Warehouse) -> list[str]:
    """Mark runs whose process is gone as crashed on the Prefect server; return notes on them."""
    running = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING]))
    async with get_client() as client:
        runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter(state=running))
        known = {str(run.id): run.id for run in runs if str(run.id) != this_run.id}
        notes: list[str] = []
        killed = warehouse.query(KILLED, [list(known)]).rows() if known else []
        for run, flow, study, parameters in killed:
            message = killed_message(warehouse.path, flow, parameters)
            crashed: State[None] = Crashed(message=message)
            await client.set_flow_run_state(known[run], crashed, force=True)
            notes.append(f"{study}: {message}")
        return notes


def killed_message(path: Path, flow: str, parameters: str) -> str:
    """Say that the process of a run was killed and, if it asked judges, how to continue it."""
    said = "Its process was killed."
    if flow != "audit":
        return said
    try:
        asked = Study.stored(parameters)
    except ValueError:
        # Values of an earlier version that this one does not take.
        return f"{said} Its votes are kept."
    return f"{said} Its votes are kept: `{continuing(asked, asked.name, path)}` continues it."


async def send_the_rest() -> bool:
    """Wait until the log and the events are sent, because the server may be stopped next.

    Return whether they were sent, or dropped, in time.
    """
    try:
        async with asyncio.timeout(SECONDS_FOR_LOGS):
            await APILogHandler.aflush()
    except TimeoutError:
        return False
    waited = await asyncio.to_thread(EventsWorker.drain_all, timeout=SECONDS_FOR_LOGS)
    return isinstance(waited, tuple) and not waited[1]
