"""A run's row in the table ``runs``: inserted at its start, kept alive, updated at its end."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self
from uuid import uuid4

import polars as pl

from flows.running.processes import HOST, Terminated, process_note
from flows.running.recovery import RUNNING, SENT, journal_of, mark_dead_runs, recover
from flows.studies.repeated import audit_again
from schemas.frame import Frame
from schemas.keys import content_key
from tasks.kit.code_digest import code_version, user_name
from tasks.kit.command_line import interrupt_behind
from tasks.kit.printable import because, redact
from tasks.progress import step
from tasks.validation.unknown_names import UnknownNameError
from warehouse.store import (
    HEARTBEAT_WAIT_SECONDS,
    Saving,
    Warehouse,
    WarehouseBusyError,
    WarehouseError,
)

if TYPE_CHECKING:
    from flows.running.counts import RunCounts

NOTHING_ASKED = {
    "asked": 0,
    "failed": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "cost_usd": 0.0,
}
"""Counts of a run that asks no judge."""


class Named(Protocol):
    """A study or a calibration."""

    name: str

    def fingerprint(self) -> str:
        """Return a digest of everything that determines its results."""

    def model_dump_json(self, *, exclude: Any = None) -> str:
        """Return its parameters as JSON."""


CODE_VERSION = code_version()


def first_row(
    flow: str, run: str, study: Named, started_at: datetime, fingerprint: str | None = None
) -> dict[str, Any]:
    """Return the columns of ``runs`` that are known when a run starts.

    The fingerprint is the study's, unless another is given.
    """
    return {
        "run": run,
        "flow": flow,
        "study": study.name,
        "user": user_name(),
        "process": f"{HOST}/{process_note(os.getpid())}",
        # A file of votes was not drawn with a seed of ours.
        "parameters": study.model_dump_json(exclude={"seed"} if flow == "measure" else None),
        "fingerprint": fingerprint or _fingerprint(study),
        "code_version": CODE_VERSION,
        "started_at": started_at,
        "seen_at": datetime.now(UTC),
    }


def row_without_calls(
    flow: str,
    study: Named,
    run: str | None = None,
    fingerprint: str | None = None,
    *,
    planned: int = 0,
    from_warehouse: int = 0,
) -> dict[str, Any]:
    """Return the row of a run that begins now and asks no judge."""
    return {
        **first_row(flow, run or str(uuid4()), study, datetime.now(UTC), fingerprint),
        **NOTHING_ASKED,
        "state": "running",
        "planned": planned,
        "from_warehouse": from_warehouse,
    }


def save_completed(row: Mapping[str, Any], warehouse: Warehouse, savings: list[Saving]) -> None:
    """Save the results of a run, and that it is completed, in one transaction."""
    ended = {"ended_at": datetime.now(UTC), "state": "completed"}
    warehouse.save(savings, run=row["run"], study=row["study"], counts=ended)


def _fingerprint(study: Named) -> str:
    """Return the study's digest; if a file that it names cannot be read, one of its parameters.

    Such a run fails, and its row records the reason.
    """
    try:
        return study.fingerprint()
    except (LookupError, OSError, ValueError):
        return content_key("not readable", study.model_dump_json())


LONGEST = 2000
"""Maximum length of an error in ``runs``."""


IN_WORDS = (ValueError, OSError, RuntimeError, UnknownNameError)
"""Errors that say what happened; of others the class is part of the message."""


def one_line(error: BaseException) -> str:
    """Return an error in one line, without secrets."""
    if isinstance(error, asyncio.CancelledError):
        return "interrupted"
    if isinstance(error, KeyboardInterrupt):
        return "stopped by SIGTERM" if isinstance(error, Terminated) else "stopped by Ctrl-C"
    said = str(error)
    named = isinstance(error, IN_WORDS) and said
    return redact(said if named else f"{type(error).__name__}: {said}".rstrip(": "))[:LONGEST]


def end_of(error: BaseException) -> dict[str, Any]:
    """Return the columns of ``runs`` for a run that ended by an error."""
    stop = interrupt_behind(error)
    state, cause = ("cancelled", stop) if stop else ("failed", error)
    return {"state": state, "error": one_line(cause), "ended_at": datetime.now(UTC)}


def record_failure(row: Mapping[str, Any], warehouse: Warehouse, error: BaseException) -> None:
    """Record a failed run; if the warehouse cannot be written, add a note to the error."""
    if isinstance(error, WarehouseBusyError):
        # Saving has waited already; the next command notices that this process is gone.
        return
    place = warehouse
    if not isinstance(error, Exception):
        # After an interrupt do not wait long for a busy file.
        place = Warehouse(warehouse.path, patience_seconds=HEARTBEAT_WAIT_SECONDS)
    try:
        place.start_run({**NOTHING_ASKED, **row, **end_of(error)})
    except (WarehouseError, OSError, ValueError) as reason:
        error.add_note(f"{warehouse.path} has no row of this run: {reason}")


@contextmanager
def failure_recorded(row: Callable[[], Mapping[str, Any]], warehouse: Warehouse) -> Iterator[None]:
    """Record a failed run if the block fails or is interrupted."""
    try:
        yield
    except BaseException as error:
        record_failure(row(), warehouse, error)
        raise


SECONDS_BETWEEN_HEARTBEATS = 20.0

CALIBRATED = """
    select bool_or(flow = 'calibrate') and not bool_or(flow in ('audit', 'measure')) from runs
    where study = ? and state <> 'failed'
"""


TAKEN = """
    select count(*) > 0 as taken from runs where study = ? and flow <> ?
        and (state <> 'failed' or run in (select run from vote_log))
"""


def is_taken(study: str, warehouse: Warehouse, flow: str) -> bool:
    """Tell whether the warehouse has results of this name that are not of the flow."""
    known = warehouse.path.is_file()
    return known and bool(warehouse.query(TAKEN, [study, flow])["taken"].item())


def is_calibration(study: str, warehouse: Warehouse) -> bool:
    """Tell whether a name belongs to a calibration."""
    return bool(warehouse.query(CALIBRATED, [study]).item())


LAST = """
    select state, error, parameters ->> '$.wave' as wave from runs where study = ?
    order by started_at desc limit 1
"""
ENDED = {
    "failed": "failed",
    "killed": "was killed",
    "cancelled": "was stopped",
    "running": "is not finished",
}
"""State of a run -> how a sentence says it."""
AND_THEN = {
    "running": "Wait for it or, if its process has died,",
    "killed": "To continue it,",
    "cancelled": "To continue it,",
}
"""State of a run -> how a sentence begins that says what to do. Others have a cause to correct."""


def why_without_results(study: str, warehouse: Warehouse) -> str:
    """Say why a study without results has none, by its last run, and what to do.

    Empty if no run of the study is known.
    """
    last = warehouse.query(LAST, [study]).rows()
    if not last:
        return ""
    [(state, error, wave)] = last
    first = AND_THEN.get(state, "Correct the cause and")
    again = audit_again(warehouse.path, study, wave)
    return (
        f"study {study!r} has no results, because its last run {ENDED.get(state, 'left none')}"
        f"{because(error)}. {first} repeat the audit: `{again}`; "
        "no ballot that has a vote is asked again."
    )


def require_free(study: str, warehouse: Warehouse, *queries: str) -> list[pl.DataFrame]:
    """Return the results of ``queries``, if the study's results replace no calibration.

    Raise ValueError if a calibration has its name.
    """
    calibrated, *found = warehouse.query_all(
        (CALIBRATED, [study]), *((query, []) for query in queries)
    )
    if calibrated.item():
        raise ValueError(
            f"{warehouse.path} holds a calibration named {study!r}, whose results would be "
            "replaced. Give the study another name with --name."
        )
    return found


class RunRow:
    """The row of a run, from its start to its end."""

    def __init__(self, flow: str, run: str, warehouse: Warehouse, counts: "RunCounts") -> None:
        self.flow, self.run, self.warehouse, self.counts = flow, run, warehouse, counts
        self.study = counts.study
        self.started_at = datetime.now(UTC)
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        with failure_recorded(self._begin, self.warehouse):
            running, sent = require_free(self.study.name, self.warehouse, RUNNING, SENT)
            mark_dead_runs(self.warehouse, running)
            self.counts.unsaved = recover(self.warehouse, sent=not sent.is_empty())
        self.warehouse.start_run({**self._begin(), "state": "running"})
        threading.Thread(target=self._send_heartbeats, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._ended.set()
        if isinstance(error, WarehouseBusyError):
            # The next run notices that this process is gone, and finds its journal.
            raise WarehouseBusyError(f"{error} {self._kept()}.") from error
        ended = {
            "state": self.counts.state(),
            "error": self.counts.causes(),
            "ended_at": datetime.now(UTC),
        }
        self.warehouse.update_run(
            self.run, **(end_of(error) if error else ended), **self.counts.columns()
        )

    def save(self, *frames: tuple[type[Frame], pl.DataFrame]) -> None:
        """Save frames in one transaction."""
        step(f"saving {frames[0][0].place().table} and more")
        savings = [Saving(model, frame) for model, frame in frames]
        self.warehouse.save(savings, run=self.run, study=self.study.name)

    def columns(self) -> dict[str, Any]:
        """Return the run's current row."""
        return {**self._begin(), **self.counts.columns(), "error": self.counts.causes()}

    def _send_heartbeats(self) -> None:
        """Send heartbeats until the run ends, also if it was marked dead meanwhile."""
        while not self._ended.wait(SECONDS_BETWEEN_HEARTBEATS):
            # If the file is busy, the next heartbeat is in time.
            with suppress(WarehouseError):
                self.warehouse.heartbeat(self.run)

    def _kept(self) -> str:
        """Return where the replies are if nothing more can be saved."""
        journal = journal_of(self.warehouse, self.run)
        if not journal.exists():
            return "All votes are saved, and the next run does not ask them again"
        return (
            f"Every reply received is in the journal {journal}: the next run saves them and does "
            "not ask them again"
        )

    def _begin(self) -> dict[str, Any]:
        return first_row(self.flow, self.run, self.study, self.started_at)
