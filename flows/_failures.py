"""How a failed run says so in ``runs``, however early it failed."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from flows._row import NOTHING_ASKED
from tasks.providers._redact import redact
from warehouse.store import SIGN_SECONDS, Warehouse, WarehouseBusyError, WarehouseError

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
