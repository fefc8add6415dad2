"""Mark runs whose process is gone as killed."""

from datetime import UTC, datetime, timedelta
from time import monotonic

from flows.running.process_identity import still_runs
from flows.running.run_row import HOST
from warehouse.store import Warehouse

SILENCE_SECONDS = 300.0
"""A run of another host whose sign of life does not change for so long is taken for dead."""

FORGOTTEN = timedelta(days=1)
"""One whose last sign is older is dead at once: no two clocks are so far apart."""

RUNNING = """
    select run, process, coalesce(seen_at, started_at) as seen_at from runs where state = 'running'
"""

_signs: dict[tuple[str, datetime], float] = {}
"""When this process first saw a sign of life of another host's run, on its own monotonic clock."""


def mark_dead_runs(warehouse: Warehouse) -> None:
    """Mark runs as killed whose process is gone, so that others ask what they had claimed.

    A process of this host is looked up. Another host's run gives signs of life, whose times are of
    a clock that may be wrong or be set meanwhile: what counts is whether the sign changes while
    this process watches.
    """
    for run, process, seen_at in warehouse.query(RUNNING).rows():
        host, note = process.rsplit("/", 1)
        dead = not still_runs(note) if host == HOST else _silent(run, seen_at)
        if dead:
            warehouse.update_run(run, state="killed")


def _silent(run: str, seen_at: datetime) -> bool:
    first = _signs.setdefault((run, seen_at), monotonic())
    waited = monotonic() - first
    return waited >= SILENCE_SECONDS or datetime.now(UTC) - seen_at > FORGOTTEN
