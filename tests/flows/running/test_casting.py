"""What is kept when the worker process dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_SECONDS, wait_for

from flows.running.processes import HOST
from schemas.judging import Votes
from warehouse.store import Warehouse

pytestmark = [pytest.mark.served, pytest.mark.slow]
Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = ("audit", "--limit", "6", "--perturbation", "fake_reference", "--judge", "emu/one")
# six questions, three arms, two orders
BALLOTS = 36
DIES = """
import os
from tasks.engine.journal import Journal

def write(journal, line, kept=[], append=Journal.write):
    append(journal, line)
    kept.append(line)
    if len(kept) == 7:
        os._exit(3)

Journal.write = write
"""
"""As if the worker were killed between keeping a reply and telling it."""


STAYS_DEAD = """
import os
from tasks.engine.journal import Journal

def ends(*_):
    os._exit(3)

Journal.__init__ = ends
"""
"""As if there were never memory enough."""


def _worker() -> int | None:
    """Return the worker process of this one; null while it has none."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            for pid in (thread / "children").read_text().split():
                if b"tasks.engine.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
    return None


@contextmanager
def _faulty(workers: Any, folder: Path, code: str) -> Iterator[None]:
    """Let workers that start in the block run some code first."""
    (folder / "faulty").mkdir()
    (folder / "faulty" / "sitecustomize.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder / "faulty")
        workers.end()
        yield
    workers.end()


HOLD = """
import sys, time, duckdb
while True:
    try:
        connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reading")
        break
    except duckdb.IOException:
        time.sleep(0.01)
print("held", flush=True)
sys.stdin.readline()
"""


@contextmanager
def _held(path: Path, how: str) -> Iterator["subprocess.Popen[str]"]:
    """Keep a warehouse open in another process, as a notebook does, until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("how", ["reading", "writing"])
def test_asking_goes_on_while_another_program_holds_the_warehouse(
    voirdire_in: Callable[..., Voirdire],
    warehouse: Warehouse,
    emulated: Any,
    environment: dict[str, str],
    how: str,
) -> None:
    # three shards: before, those after the second one waited for the file
    ballots = 60 * 3 * 4
    emulated.provider(concurrency=16)
    emulated.behave(latency=0.05)
    run = voirdire_in(warehouse.path.parent, environment)
    ended = threading.Event()

    def hold() -> int:
        """Hold the warehouse until all have replied and longer; return who held it."""
        wait_for(lambda: emulated.stats().get("replies", 0) >= 50, "fewer than 50 replies")
        with _held(warehouse.path, how) as holder:
            while (replies := emulated.stats()["replies"]) < ballots:
                deadline = time.monotonic() + PATIENCE_SECONDS
                while emulated.stats()["replies"] == replies < ballots:
                    assert time.monotonic() < deadline
                    time.sleep(0.2)
            # the last save waits; whoever holds the file is named after some seconds
            time.sleep(6)
            assert not ended.is_set()
            return holder.pid

    with ThreadPoolExecutor(1) as aside:
        held = aside.submit(hold)
        done = run(*SMALL, "--limit", "60", "--votes", "4", "--yes")
        ended.set()
        holder = held.result()
    assert done.returncode == 0, done.stderr
    reported = " ".join((done.stdout + done.stderr).split())
    assert f"held open by process {holder}" in reported
    assert f"for {how}" in reported
    assert warehouse.read(Votes).height == ballots
    assert emulated.stats()["requests"] == ballots
    assert warehouse.query("select state, asked, failed from runs").rows() == [
        ("completed", ballots, 0)
    ]
    assert warehouse.query("select count(*) from claims").item() == 0
    assert not Path(f"{warehouse.path}.replies").exists()


def test_a_run_that_waited_in_vain_leaves_all_replies_to_the_next(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.behave(latency=0.5)
    ended = threading.Event()

    def hold() -> int:
        """Hold the warehouse from the first request to the end of the run; return who held it."""
        wait_for(lambda: emulated.stats()["requests"], "no judge was asked")
        with _held(warehouse.path, "reading") as holder:
            assert ended.wait(PATIENCE_SECONDS)
            return holder.pid

    with ThreadPoolExecutor(1) as aside:
        held = aside.submit(hold)
        done = voirdire(*SMALL, "--patience", "1")
        ended.set()
        holder = held.result()
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert f"held open by process {holder}" in line
    assert "for reading for more than the 1 s" in line
    assert f"{warehouse.path}.replies" in line
    assert "the next run saves them and does not ask them again" in line
    assert warehouse.read(Votes).height < BALLOTS
    [(run, state)] = warehouse.query("select run, state from runs").rows()
    assert state == "running"
    # Its process would have ended; this one goes on.
    warehouse.update_run(run, process=f"{HOST}/{os.getpid()}@1")
    again = voirdire(*SMALL)
    assert again.returncode == 0, again.stderr
    assert "0 cast, 0 without a reply" in " ".join(again.stdout.split())
    assert emulated.stats()["requests"] == warehouse.read(Votes).height == BALLOTS
    assert warehouse.query("select state from runs order by started_at")["state"].to_list() == [
        "killed",
        "completed",
    ]


def test_a_reply_that_was_kept_but_not_passed_on_is_not_paid_again(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any, workers: Any, tmp_path: Path
) -> None:
    # each of two workers takes seconds to import litellm
    ballots = BALLOTS // 3
    emulated.provider(concurrency=1)
    with _faulty(workers, tmp_path, DIES):
        done = voirdire(*SMALL, "--limit", "2")
    assert done.returncode == 0, done.stderr
    assert "the worker process ended with code 3" in " ".join(done.stderr.split())
    assert f"{ballots} cast, 0 without a reply" in " ".join(done.stdout.split())
    assert warehouse.read(Votes).height == ballots
    # the first process keeps seven replies; what was in flight as it died may be asked once more
    reported = emulated.stats()
    assert ballots <= reported["requests"] <= ballots + 1
    assert warehouse.query("select state from runs")["state"].to_list() == ["completed"]
    assert not Path(f"{warehouse.path}.replies").exists()


def test_a_worker_that_is_killed_again_and_again_leaves_no_ballot_unasked(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    ballots, concurrency, kills = 120, 4, 2
    emulated.provider(concurrency=concurrency)
    emulated.behave(latency=0.1)

    def kill() -> None:
        """Kill workers, each of which has asked something."""
        replies = 0
        for _ in range(kills):
            wait_for(
                lambda r=replies: emulated.stats().get("replies", 0) >= r + 20, "no more replies"
            )
            worker = _worker()
            assert worker
            os.kill(worker, signal.SIGKILL)
            replies = emulated.stats()["replies"]

    with ThreadPoolExecutor(1) as aside:
        killed = aside.submit(kill)
        done = voirdire(*SMALL, "--limit", "20")
        killed.result()
    assert done.returncode == 0, done.stderr
    reported = emulated.stats()
    assert reported["prompts"] == ballots
    assert ballots <= reported["requests"] <= ballots + kills * concurrency
    votes, different = warehouse.query("select count(*), count(distinct ballot_id) from votes").row(
        0
    )
    assert votes == different == ballots
    assert warehouse.query("select state, asked, failed from runs").rows() == [
        ("completed", ballots, 0)
    ]


def test_a_worker_that_stays_dead_fails_the_run_and_leaves_earlier_results(
    voirdire: Voirdire,
    warehouse: Warehouse,
    workers: Any,
    tmp_path: Path,
) -> None:
    # A simulated judge, so that the workers before and after need not import litellm.
    words = (*SMALL[:-1], "offline/random", "--limit", "2")
    assert voirdire(*words).returncode == 0
    earlier = warehouse.query("from estimates order by all").to_dicts()
    report = (tmp_path / "reports" / "quick.html").read_bytes()
    with _faulty(workers, tmp_path, STAYS_DEAD):
        done = voirdire(*words, "--wave", "2")
    assert done.returncode == 1, done.stderr
    line = done.stderr.splitlines()[-1]
    assert "the worker process ended with code 3" in line
    assert "restarted 3 times" in line
    assert "Earlier results stand" in line
    state, error = warehouse.query("select state, error from runs order by started_at").row(1)
    assert state == "failed"
    assert "the worker process ended with code 3" in error
    assert warehouse.query("from estimates order by all").to_dicts() == earlier
    assert (tmp_path / "reports" / "quick.html").read_bytes() == report
    assert voirdire(*words, "--wave", "2").returncode == 0
