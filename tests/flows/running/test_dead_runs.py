"""Runs that are killed, and runs that are only taken for dead."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.running import recovery
from flows.running.counts import RunCounts
from flows.running.processes import HOST, host_of, process_note
from flows.running.recovery import mark_dead_runs
from flows.running.run_row import RunRow
from flows.studies import Study
from warehouse.store import Warehouse

JUMPS = [timedelta(hours=-1), timedelta(hours=1), timedelta(days=400)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Warehouse]:
    """A warehouse in which this process runs a study."""
    warehouse = Warehouse(tmp_path / "voirdire.duckdb")
    with RunRow("audit", "mine", warehouse, RunCounts(Study())):
        yield warehouse


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock, which a test sets."""
    now = [1000.0]
    monkeypatch.setattr(recovery, "monotonic", lambda: now[0])
    monkeypatch.setattr(recovery, "_heartbeats", {})
    return now


def _state(store: Warehouse) -> str:
    return str(store.query("select state from runs where run = 'mine'").item())


def _shift(store: Warehouse, ago: timedelta, **columns: object) -> None:
    """Let the run have begun and given its last sign so long ago, by the wall clock."""
    moment = datetime.now(UTC) - ago
    store.update_run("mine", seen_at=moment, started_at=moment, **columns)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_is_set_kills_no_run_of_this_host(store: Warehouse, jump: timedelta) -> None:
    _shift(store, jump)
    mark_dead_runs(store)
    assert _state(store) == "running"


def test_a_run_whose_process_has_ended_is_dead(store: Warehouse) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        note = process_note(process.pid)
        _shift(store, timedelta(0), process=f"{HOST}/{note}")
        mark_dead_runs(store)
        assert _state(store) == "running"
        process.kill()
        process.wait()
    mark_dead_runs(store)
    assert _state(store) == "killed"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_a_later_process_of_the_same_id_is_another_one(store: Warehouse) -> None:
    _shift(store, timedelta(0), process=f"{HOST}/{os.getpid()}@1")
    mark_dead_runs(store)
    assert _state(store) == "killed"


def test_a_run_that_an_earlier_version_noted_lives_with_its_id(store: Warehouse) -> None:
    _shift(store, timedelta(0), process=f"{HOST}/{os.getpid()}")
    mark_dead_runs(store)
    assert _state(store) == "running"


@pytest.mark.parametrize("jump", JUMPS[:2])
def test_another_host_is_watched_by_our_own_clock(
    store: Warehouse, clock: list[float], jump: timedelta
) -> None:
    _shift(store, jump, process=f"elsewhere/{os.getpid()}@1")
    for seconds in (0, 200):
        clock[0] = 1000.0 + seconds
        mark_dead_runs(store)
        assert _state(store) == "running"
    # A heartbeat, whatever its time says, begins the wait anew.
    store.heartbeat("mine")
    for seconds, state in ((400, "running"), (699, "running"), (701, "killed")):
        clock[0] = 1000.0 + seconds
        mark_dead_runs(store)
        assert _state(store) == state
    # It was only suspended, and gives a sign.
    store.heartbeat("mine")
    assert _state(store) == "running"


def test_a_run_that_another_host_left_long_ago_is_dead_at_once(
    store: Warehouse, clock: list[float]
) -> None:
    _shift(store, timedelta(days=2), process=f"elsewhere/{os.getpid()}@1")
    assert clock
    mark_dead_runs(store)
    assert _state(store) == "killed"


@pytest.mark.skipif("/" not in HOST, reason="this system has no /proc")
def test_a_container_of_the_same_name_is_another_host(store: Warehouse, tmp_path: Path) -> None:
    reported = tmp_path / "proc/self/ns/pid", tmp_path / "proc/sys/kernel/random/boot_id"
    for file in reported:
        file.parent.mkdir(parents=True)
    reported[0].touch()
    reported[1].write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
    other = host_of(tmp_path / "proc")
    assert other.split("/")[:2] == HOST.split("/")[:2]
    # Nobody has this number here.
    _shift(store, timedelta(0), process=f"{other}/{2**22 + 1}@1")
    mark_dead_runs(store)
    assert _state(store) == "running"
    _shift(store, timedelta(0), process=f"{HOST}/{2**22 + 1}@1")
    mark_dead_runs(store)
    assert _state(store) == "killed"
