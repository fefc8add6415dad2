import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from waiting import PATIENCE_SECONDS, wait_for

from tasks.engine import worker_client
from tasks.engine.journal import exclusive_lock, read_journal
from tasks.providers import PROVIDERS

pytestmark = pytest.mark.slow

REPO = Path(worker_client.__file__).parents[2]
SCRIPT = """
import asyncio
from tasks.engine import worker
from tasks.engine.journal import Reply

now = {}

async def call(provider, judge, messages, params, slot):
    model = judge.model
    await slot.acquire()
    print("a library says hello")
    now[model] = now.get(model, 0) + 1
    in_flight = now[model]
    for _ in range(5):
        await asyncio.sleep(0.01)
        in_flight = max(in_flight, now[model])
    now[model] -= 1
    return Reply(str(in_flight), model=model)

worker.call = call
asyncio.run(worker.main())
"""


def test_replies_stand_alone_on_standard_output_and_limits_are_kept() -> None:
    names = ["gemini", "anthropic"]
    limits = {name: PROVIDERS[name].provider.concurrency for name in names}
    judges = [
        {
            "do": "judge",
            "run": "r",
            "judge": {"judge": f"{name}/x", "provider": name, "model": name},
        }
        for name in names
    ]
    asking = {"do": "ask", "run": "r", "messages": [], "params": {}}
    requests = [
        {**asking, "id": f"{name}{n}", "judge": f"{name}/x"}
        for name in names
        for n in range(3 * limits[name])
    ]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=REPO,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as worker:
        assert worker.stdin
        assert worker.stdout
        lines = [{"do": "begin", "run": "r"}, *judges, *requests]
        worker.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        worker.stdin.flush()
        replies = [json.loads(worker.stdout.readline()) for _ in requests]
        rest, errors = worker.communicate()
    assert worker.returncode == 0
    assert rest == ""
    assert errors.count("a library says hello") == len(requests)
    assert Counter(reply["id"] for reply in replies) == Counter(r["id"] for r in requests)
    most = {n: max(int(r["text"]) for r in replies if r["model"] == n) for n in names}
    assert most == limits


SIMPLE = """
import asyncio
import time
from tasks.engine import journal, worker
from tasks.engine.journal import Reply

async def call(provider, judge, messages, params, slot):
    await slot.acquire()
    if params.get("hang"):
        await asyncio.to_thread(time.sleep, params["hang"])
    if params.get("surprise"):
        raise RuntimeError(params["surprise"])
    return Reply("[[A]]", model=judge.model)

journal.SECONDS_BETWEEN_SYNCS = 0.01
worker.call = call
asyncio.run(worker.main())
"""
JUDGES = [{"judge": f"gemini/{name}", "provider": "gemini", "model": name} for name in "xy"]
SECRET = {"OTHER_KEY": "sk-other"}


class Worker:
    """A worker whose calls bring what its requests say."""

    def __init__(self) -> None:
        self._runs = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", SIMPLE],
            cwd=REPO,
            text=True,
            env={**os.environ, **SECRET},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, *lines: object) -> None:
        assert self.process.stdin
        self.process.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        self.process.stdin.flush()

    def begin(self, journal: Path | None) -> "Run":
        """Begin a run, with a journal."""
        self._runs += 1
        run = Run(self, f"r{self._runs}")
        run.send({"do": "begin", "journal": str(journal) if journal else None})
        run.send(*({"do": "judge", "judge": judge} for judge in JUDGES))
        return run

    def end(self) -> None:
        """End it as its flow does."""
        self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0


class Run(NamedTuple):
    """A run that a worker asks for."""

    worker: Worker
    name: str

    def send(self, *lines: dict[str, object]) -> None:
        self.worker.send(*({**line, "run": self.name} for line in lines))

    def ask(self, *requests: dict[str, object]) -> list[dict[str, Any]]:
        """Ask all at once and wait for as many answers."""
        self.send(*requests)
        assert self.worker.process.stdout
        return [json.loads(self.worker.process.stdout.readline()) for _ in requests]


def _ask(number: int, judge: str = "gemini/x", **params: object) -> dict[str, object]:
    asked = {"do": "ask", "id": f"b{number}/{number}", "judge": judge}
    return {**asked, "messages": [], "params": params}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """Return one worker for all tests that leave it alive, each with a run of its own."""
    one = Worker()
    yield one
    one.end()


def test_a_surprise_is_reported_and_tells_no_key(worker: Worker) -> None:
    run = worker.begin(None)
    (reported,) = run.ask(_ask(1, surprise="at sk-other"))
    assert (reported["id"], reported["error"]) == ("b1/1", "RuntimeError: at [key]")
    (reported,) = run.ask(_ask(2, judge="nobody/met"))
    assert reported["error"] == "KeyError: 'nobody/met'"
    (reported,) = run.ask(_ask(3))
    assert (reported["text"], reported["error"]) == ("[[A]]", None)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file that is always full")
def test_a_full_disk_loses_no_reply_and_ends_the_asking(worker: Worker) -> None:
    run = worker.begin(Path("/dev/full"))
    (reported,) = run.ask(_ask(1))
    assert (reported["text"], reported["error"]) == ("[[A]]", None)
    full = (
        "stopped: the journal /dev/full cannot be written: No space left on device. "
        "Free space and run again"
    )
    late = {"judge": "gemini/late", "provider": "gemini", "model": "late"}
    run.send({"do": "judge", "judge": late})
    judges = ["gemini/x", "gemini/y", "gemini/late"]
    reported = run.ask(*(_ask(n, judge) for n, judge in enumerate(judges)))
    assert {reply["error"] for reply in reported} == {f"{judge} {full}" for judge in judges}


def test_a_journal_that_cannot_be_made_is_reported(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = worker.begin(tmp_path / "file" / "r.jsonl")
    (reported,) = run.ask(_ask(1))
    assert reported["text"] == ""
    assert "cannot be written: " in reported["error"]
    assert reported["error"].endswith("Make it writable and run again")


def test_a_journal_is_held_until_its_run_has_ended(worker: Worker, tmp_path: Path) -> None:
    journal = tmp_path / "r.jsonl"
    run = worker.begin(journal)
    assert run.ask(_ask(1))[0]["error"] is None
    with exclusive_lock(journal) as alone:
        assert not alone
    # the process lives on for the sake of other runs
    run.send({"do": "end"})
    worker.begin(None)

    def released() -> bool:
        with exclusive_lock(journal) as alone:
            return alone

    wait_for(released, "the journal was not released")
    assert worker.process.poll() is None
    lines, unreadable = read_journal(journal)
    assert ([line["text"] for line in lines], unreadable) == (["[[A]]"], 0)


def test_who_loses_its_flow_ends_at_once_and_leaves_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "r.jsonl"
    worker = Worker()
    run = worker.begin(journal)
    assert run.ask(_ask(1))[0]["error"] is None
    # before, it waited for what a library does in a thread: looks a name up, say
    run.send(_ask(2, hang=600))
    worker.end()
    with exclusive_lock(journal) as alone:
        assert alone
    lines, unreadable = read_journal(journal)
    assert ([line["id"] for line in lines], unreadable) == (["b1/1"], 0)
