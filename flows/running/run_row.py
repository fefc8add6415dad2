"""A run's row in the table `runs`, from its start to its failure."""

import asyncio
import getpass
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from flows.running.process_identity import noted
from schemas.keys import content_key
from tasks.engine.redaction import redact
from tasks.kit.code_digest import ALL_ROOMS, code_digest
from warehouse.store import SIGN_SECONDS, Warehouse, WarehouseBusyError, WarehouseError

NOTHING_ASKED = {
    "asked": 0,
    "failed": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "cost_usd": 0.0,
}
"""Counts of a run that asks nobody."""


class Named(Protocol):
    """What a run is of: a study, or a calibration."""

    name: str

    def fingerprint(self) -> str:
        """Return a digest of all that decides its results."""

    def model_dump_json(self) -> str:
        """Return its parameters as JSON."""


def host_of(proc: Path) -> str:
    """Name where a process number says who is meant: a host since its start, and a container.

    Two containers may bear one name, and one host's processes do not see the other's.
    """
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        numbers = (proc / "self/ns/pid").stat().st_ino
    except OSError:
        # Not every system has a /proc that says so.
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}/{numbers}"


HOST = host_of(Path("/proc"))
CODE_VERSION = f"{version('voirdire')}+{code_digest(ALL_ROOMS)[:12]}"


def first_row(
    flow: str, run: str, study: Named, started_at: datetime, fingerprint: str | None = None
) -> dict[str, Any]:
    """Return what is known of a run at its start: columns of ``runs``.

    The fingerprint is that of the study, unless it asks nobody and has another.
    """
    return {
        "run": run,
        "flow": flow,
        "study": study.name,
        "user": _user(),
        "process": f"{HOST}/{noted(os.getpid())}",
        "parameters": study.model_dump_json(),
        "fingerprint": fingerprint or _fingerprint(study),
        "code_version": CODE_VERSION,
        "started_at": started_at,
        "seen_at": datetime.now(UTC),
    }


def _fingerprint(study: Named) -> str:
    """Return the study's digest; where it names what is not there, one of its parameters alone.

    Such a run fails, and its row says why.
    """
    try:
        return study.fingerprint()
    except (LookupError, OSError, ValueError):
        return content_key("not readable", study.model_dump_json())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        return f"uid {os.getuid()}"


LONGEST = 2000
"""Characters of an error in ``runs``."""


def one_line(error: BaseException) -> str:
    """Return an error as it is kept: in one line, without secrets."""
    return redact(f"{type(error).__name__}: {error}".rstrip(": "))[:LONGEST]


def end_of(error: BaseException) -> dict[str, Any]:
    """Return the columns of ``runs`` that say how a run ended by an error."""
    stopped = isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
    state = "cancelled" if stopped else "failed"
    return {"state": state, "error": one_line(error), "ended_at": datetime.now(UTC)}


def record_failure(row: Mapping[str, Any], warehouse: Warehouse, error: BaseException) -> None:
    """Leave a run's row with its error; if the warehouse takes none, add that to the error."""
    if isinstance(error, WarehouseBusyError):
        # It was waited for already; the next command sees that this process is gone.
        return
    # Who interrupts does not wait for a file that is busy.
    hasty = not isinstance(error, Exception)
    place = Warehouse(warehouse.path, patience_seconds=SIGN_SECONDS) if hasty else warehouse
    try:
        place.start_run({**NOTHING_ASKED, **row, **end_of(error)})
    except (WarehouseError, OSError, ValueError) as reason:
        error.add_note(f"{warehouse.path} has no row of this run: {reason}")


@contextmanager
def failure_recorded(row: Callable[[], Mapping[str, Any]], warehouse: Warehouse) -> Iterator[None]:
    """Leave a row in ``runs`` if what follows fails or is interrupted."""
    try:
        yield
    except BaseException as error:
        record_failure(row(), warehouse, error)
        raise
