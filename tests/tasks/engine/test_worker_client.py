import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_SECONDS

from tasks.engine import worker_client
from tasks.engine.journal import Reply, exclusive_lock
from tasks.engine.worker_client import Session, Worker, WorkerError, shared_worker
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, Judge
from tasks.simulation.judge import answer
from tasks.simulation.traits import Traits

REPO = Path(worker_client.__file__).parents[2]
HONEST = JUDGES["offline/honest"]
# a local address where nothing answers, behind a service that would be tried again for long
NOWHERE = {"api_base": "http://127.0.0.1:9/v1", "api_key": "none"}
SILENT = Judge(judge="openai/silent", provider="openai", model="openai/silent")

KILLED = "the worker process ended with code -9"


@pytest.fixture(scope="module")
def shared() -> Iterator[Worker]:
    """Return one caller for all tests that leave it alive: starting takes seconds."""
    one = Worker()
    yield one
    one.stop()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Worker]]:
    """Return the workers of this process, none at first, and stop them."""
    workers: list[Worker] = []
    monkeypatch.setattr(worker_client, "_workers", workers)
    yield workers
    for each in workers:
        each.stop()


async def _ask(
    session: Session, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any]
) -> Reply:
    return (await session.ask(judge, messages, params, "b1")).reply


def _messages(number: int) -> list[dict[str, str]]:
    return PROMPTS["pair_v1"].messages(f"What is {number} + 2?", "Four.", f"It is {number}.")


def test_every_request_gets_its_own_reply(shared: Worker) -> None:
    async def ask() -> list[Reply]:
        session = Session(shared)
        asked = [_ask(session, HONEST, _messages(n), {"seed": n}) for n in range(300)]
        return await asyncio.gather(*asked)

    replies = asyncio.run(ask())
    traits = Traits(**HONEST.params["traits"])
    assert [reply.text for reply in replies] == [
        answer(_messages(n), traits, n) for n in range(300)
    ]
    assert {(reply.model, reply.attempts, reply.error) for reply in replies} == {
        ("offline/honest", 1, None)
    }
    assert shared._waiting == {}


@pytest.mark.slow
def test_a_killed_process_is_restarted_and_asked_again(started: list[Worker]) -> None:
    notices: list[str] = []

    async def ask_and_kill() -> list[Reply]:
        session = Session(shared_worker(), notify=notices.append)
        waiting = [
            asyncio.create_task(_ask(session, HONEST, _messages(n), {"seed": n})) for n in range(5)
        ]
        await asyncio.sleep(0)
        started[0]._process.send_signal(signal.SIGKILL)
        return await asyncio.gather(*waiting)

    replies = asyncio.run(ask_and_kill())
    assert [reply.error for reply in replies] == [None] * 5
    (notice,) = notices
    assert notice.startswith(KILLED)
    assert notice.endswith("restarted, 5 requests are sent again")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ("os._exit(3)", 3),
        ('os.write(1, b\'{"id": "b1/0", "te\'); os.kill(os.getpid(), 9)', -9),
        ('os.write(1, b\'{"id": "b1/0", "te\\n\'); time.sleep(60)', -15),
        ('os.write(1, b\'{"id": "b9/9", "done": {}}\\n\'); time.sleep(60)', -15),
    ],
    ids=["exits", "cut", "garbled", "unknown"],
)
def test_a_process_that_dies_each_time_is_given_up_after_three_restarts(
    monkeypatch: pytest.MonkeyPatch, started: list[Worker], rest: str, code: int
) -> None:
    program = f"import os, sys, time; [sys.stdin.readline() for _ in range(3)]; {rest}"
    monkeypatch.setattr(worker_client, "WORKER", ("-c", program))
    monkeypatch.setattr(worker_client, "FIRST_WAIT_SECONDS", 0.01)
    notices: list[str] = []

    async def ask() -> list[Any]:
        session = Session(shared_worker(), notify=notices.append)
        asked = [_ask(session, SILENT, _messages(n), {}) for n in range(2)]
        async with asyncio.timeout(PATIENCE_SECONDS / 2):
            return await asyncio.gather(*asked, return_exceptions=True)

    errors = asyncio.run(ask())
    assert {type(error) for error in errors} == {WorkerError}
    ended = f"the worker process ended with code {code}"
    assert {str(error).split(":")[0] for error in errors} == {ended}
    assert "It was restarted 3 times, the last 3 without an answer" in str(errors[0])
    assert len(notices) == 3
    assert len(started) == 1


ANSWERS_ONE = """
import json, os, sys
begun = json.loads(sys.stdin.readline())
met = sys.stdin.readline()
asked = json.loads(sys.stdin.readline())
reply = {"id": asked["id"], "text": "[[A]]", "cast_at": "2026-01-01T00:00:00+00:00"}
if begun["committed_usd"] == 0:
    os.write(1, json.dumps({"run": "", "committed_usd": 0.75}).encode() + b"\\n")
    with open(begun["journal"], "a") as file:
        file.write(json.dumps(reply) + "\\n" + '{"id": "torn')
    os._exit(9)
reply["text"] = f"{begun['budget_usd']} {begun['committed_usd']}"
os.write(1, json.dumps(reply).encode() + b"\\n")
sys.stdin.readline()
"""


@pytest.mark.slow
def test_a_reply_that_was_journaled_is_not_asked_again_and_the_budget_goes_on(
    monkeypatch: pytest.MonkeyPatch, started: list[Worker], tmp_path: Path
) -> None:
    monkeypatch.setattr(worker_client, "WORKER", ("-c", ANSWERS_ONE))
    monkeypatch.setattr(worker_client, "FIRST_WAIT_SECONDS", 0.01)

    async def ask() -> tuple[Reply, Reply]:
        session = Session(shared_worker(), "", tmp_path / "journal.jsonl", budget_usd=2.0)
        kept = await _ask(session, SILENT, _messages(0), {})
        return kept, await _ask(session, SILENT, _messages(1), {})

    kept, asked = asyncio.run(ask())
    # the first process died between keeping and telling it
    assert kept.text == "[[A]]"
    # the second one knows what may be spent already
    assert asked.text == "2.0 0.75"
    assert len(started) == 1


def test_what_a_process_said_before_it_died_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_client, "_numbers", count())
    reply = {**Reply("[[A]]")._asdict(), "id": "b1/0", "cast_at": "2026-01-01T00:00:00+00:00"}
    program = (
        "import os, sys; [sys.stdin.readline() for _ in range(3)]; "
        f"os.write(1, {json.dumps(reply).encode()!r} + b'\\n')"
    )
    monkeypatch.setattr(worker_client, "WORKER", ("-c", program))
    one = Worker()
    session = Session(one)
    hear, heard = one._receive, threading.Event()

    def hear_late(said: bytes) -> None:
        assert heard.wait(PATIENCE_SECONDS)
        hear(said)

    monkeypatch.setattr(one, "_receive", hear_late)

    async def ask() -> list[Any]:
        first = asyncio.create_task(_ask(session, SILENT, _messages(1), {}))
        await asyncio.sleep(0)
        one._process.wait(PATIENCE_SECONDS)
        # whoever asks a process that has ended takes nothing from those it answered
        late = asyncio.create_task(one.request({"do": "ask", "run": ""}, "b2"))
        await asyncio.sleep(0)
        heard.set()
        return await asyncio.gather(first, late, return_exceptions=True)

    first, late = asyncio.run(ask())
    assert (first.text, first.error) == ("[[A]]", None)
    assert str(late) == "the worker process ended with code 0: no error message"


def test_whoever_stops_waiting_does_not_disturb_the_others(shared: Worker) -> None:
    async def ask() -> Reply:
        session = Session(shared)
        given_up = asyncio.create_task(_ask(session, HONEST, _messages(1), {"seed": 0}))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        return await _ask(session, HONEST, _messages(2), {"seed": 0})

    assert asyncio.run(ask()).error is None
    assert shared._waiting == {}


def test_hostile_text_goes_through_the_pipe(shared: Worker) -> None:
    text = "\ud800\0\n\r\u2028{}\"'\U0001f600" * 1000
    messages = PROMPTS["pair_v1"].messages(text, text, text[::-1])
    reply = asyncio.run(_ask(Session(shared), HONEST, messages, {"seed": 0}))
    assert reply.error is None
    assert reply.text == answer(messages, Traits(**HONEST.params["traits"]), 0)


@pytest.mark.slow
def test_whoever_hangs_up_leaves_the_process_to_others_and_the_journal_to_nobody(
    started: list[Worker], tmp_path: Path
) -> None:
    first, other = (
        Session(shared_worker(), "first", tmp_path / "first.jsonl"),
        Session(shared_worker(), "other"),
    )
    assert asyncio.run(_ask(first, HONEST, _messages(1), {"seed": 0})).error is None
    with exclusive_lock(tmp_path / "first.jsonl") as alone:
        assert not alone
    first.close()
    # what is sent later is answered later
    assert asyncio.run(_ask(other, HONEST, _messages(1), {"seed": 0})).error is None
    with exclusive_lock(tmp_path / "first.jsonl") as alone:
        assert alone
    other.close()
    assert not started[0].alive


@pytest.mark.slow
def test_stop_ends_the_process(started: list[Worker]) -> None:
    first = shared_worker()
    assert first.alive
    assert shared_worker() is first
    first.stop()
    assert not first.alive
    assert first._process.returncode == -signal.SIGTERM
    first.stop()
    assert shared_worker() is not first
    assert started == [shared_worker()]


@pytest.mark.slow
def test_the_process_ends_with_its_parent() -> None:
    script = (
        "import signal, os\n"
        "from tasks.engine.worker_client import shared_worker\n"
        "print(shared_worker()._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=REPO
    ) as parent:
        assert parent.stdout
        worker = int(parent.stdout.readline())
    assert parent.returncode == -signal.SIGKILL
    try:
        handle = os.pidfd_open(worker)
    except ProcessLookupError:
        return
    try:
        # readable once the process has ended; a worker that outlives its parent would not be
        ended, _, _ = select.select([handle], [], [], PATIENCE_SECONDS)
    finally:
        os.close(handle)
    assert ended
