"""Stopping a command; what an audit keeps then is tested with the engine."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_SECONDS

from flows.running.processes import Terminated, run_in_thread, sigterm_interrupts
from flows.running.run_row import end_of
from tasks.kit.command_line import errors_in_a_line
from warehouse.store import Warehouse


def test_what_is_run_in_thread_returns_or_raises() -> None:
    async def work(fault: bool) -> threading.Thread:
        if fault:
            raise LookupError("no such thing")
        return threading.current_thread()

    assert run_in_thread(lambda: work(fault=False)) is not threading.main_thread()
    with pytest.raises(LookupError, match="no such thing"):
        run_in_thread(lambda: work(fault=True))


def test_without_an_event_loop_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_loop(work: Coroutine[Any, Any, Any]) -> None:
        work.close()
        raise OSError("Too many open files")

    async def nothing() -> None:
        """Do nothing."""

    monkeypatch.setattr(asyncio, "run", no_loop)
    with pytest.raises(OSError, match="Too many open files"):
        run_in_thread(nothing)


@pytest.mark.parametrize(
    ("sent", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_cancels_what_is_run_in_thread_and_lets_it_end(
    sent: signal.Signals, raised: type[BaseException]
) -> None:
    ended = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), sent)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.append("well")

    with sigterm_interrupts(), pytest.raises(raised) as stop:
        run_in_thread(work)
    assert stop.type is raised
    assert ended == ["well"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_never_ends_is_left_behind() -> None:
    """Prefect's runner once did not end when it was interrupted while it started."""
    begun = threading.Event()
    released = threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.to_thread(released.wait, 60)

    def interrupt() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with sigterm_interrupts(), pytest.raises(Terminated):
            run_in_thread(work, seconds_to_stop=0.3)
        assert not released.is_set()
    finally:
        released.set()


STOPPED_QUERY = """
import os, signal, threading
from warehouse import store
from flows.cli.main import main

run = store.fetch

def run_and_stop(*query):
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    return run(*query)

store.fetch = run_and_stop
# Two threads run it, one of which no signal reaches.
endless = "select n from range(1000000000000) as numbers(n) where n % 7 = 3"
main(["sql", f"select count(*) from ({endless} union all {endless})"])
"""


@pytest.mark.slow
def test_a_query_that_is_stopped_ends_at_once_and_changed_nothing(tmp_path: Path) -> None:
    Warehouse(tmp_path / "voirdire.duckdb").query("select 1")
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_QUERY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.stderr == "voirdire: stopped. Nothing was changed.\n"
    assert done.returncode == 128 + signal.SIGTERM


def test_a_run_whose_query_is_interrupted_is_cancelled() -> None:
    # DuckDB raises an error of its own.
    error = RuntimeError("Query interrupted")
    error.__cause__ = Terminated()
    ended = end_of(error)
    assert (ended["state"], ended["error"]) == ("cancelled", "stopped by SIGTERM")
    assert end_of(RuntimeError("other"))["state"] == "failed"


def test_a_timeout_is_no_interrupt() -> None:
    async def wait() -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(1)

    with pytest.raises(TimeoutError) as raised:
        asyncio.run(wait())
    # asyncio cancels what takes too long.
    assert isinstance(raised.value.__cause__, asyncio.CancelledError)
    assert end_of(raised.value)["state"] == "failed"
    with pytest.raises(SystemExit), errors_in_a_line():
        raise raised.value
