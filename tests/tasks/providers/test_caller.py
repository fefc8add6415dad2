import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, Judge, UsdPerMillion, _caller
from tasks.providers._caller import Caller, Line, caller
from tasks.providers._journal import alone_with
from tasks.providers._offline import Traits, answer
from tasks.providers._reply import Reply

PATIENCE_SECONDS = 60
REPO = Path(_caller.__file__).parents[2]
HONEST = JUDGES["offline/honest"]
# a local address where nothing answers, behind a service that would be tried again for long
NOWHERE = {"api_base": "http://127.0.0.1:9/v1", "api_key": "none"}
SILENT = Judge(judge="openai/silent", provider="openai", model="openai/silent")

KILLED = "the calling process ended with code -9"


@pytest.fixture(scope="module")
def shared() -> Iterator[Caller]:
    """Return one caller for all tests that leave it alive: starting takes seconds."""
    one = Caller()
    yield one
    one.stop()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Caller]]:
    """Return the callers of this process, none at first, and stop them."""
    callers: list[Caller] = []
    monkeypatch.setattr(_caller, "_callers", callers)
    yield callers
    for each in callers:
        each.stop()


async def _ask(
    line: Line, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any]
) -> Reply:
    return (await line.ask(judge, messages, params, "b1")).reply


def _messages(number: int) -> list[dict[str, str]]:
    return PROMPTS["pair_v1"].messages(f"What is {number} + 2?", "Four.", f"It is {number}.")


def test_every_request_gets_its_own_reply(shared: Caller) -> None:
    async def ask() -> list[Reply]:
        line = shared.begin()
        asked = [_ask(line, HONEST, _messages(n), {"seed": n}) for n in range(300)]
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


def test_a_killed_process_fails_what_waits_and_is_started_anew(started: list[Caller]) -> None:
    async def ask_and_kill() -> list[Reply]:
        line = caller().begin()
        waiting = [asyncio.create_task(_ask(line, SILENT, _messages(n), NOWHERE)) for n in range(5)]
        await asyncio.sleep(0)
        process = caller()._process
        process.send_signal(signal.SIGKILL)
        process.wait()
        return await asyncio.gather(*waiting)

    replies = asyncio.run(ask_and_kill())
    assert {str(reply.error).split(":")[0] for reply in replies} == {KILLED}
    assert {reply.text for reply in replies} == {""}
    first = started[0]
    assert not first.alive
    # a caller that is dead says so at once
    late = asyncio.run(_ask(first.begin(), HONEST, _messages(0), {"seed": 0}))
    assert str(late.error).startswith(KILLED)
    again = asyncio.run(_ask(caller().begin(), HONEST, _messages(0), {"seed": 0}))
    assert again.error is None
    assert started[0] is not first


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ('os.write(1, b\'{"id": "b1/0", "te\'); os.kill(os.getpid(), 9)', -9),
        ('os.write(1, b\'{"id": "b1/0", "te\\n\'); time.sleep(60)', -15),
        ('os.write(1, b\'{"id": "b9/9", "done": {}}\\n\'); time.sleep(60)', -15),
    ],
    ids=["cut", "garbled", "unknown"],
)
def test_a_line_that_cannot_be_read_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, rest: str, code: int
) -> None:
    program = f"import os, sys, time; [sys.stdin.readline() for _ in range(4)]; {rest}"
    monkeypatch.setattr(_caller, "WORKER", ("-c", program))
    one = Caller()

    async def ask() -> list[Reply]:
        line = one.begin()
        asked = [_ask(line, SILENT, _messages(n), {}) for n in range(2)]
        async with asyncio.timeout(PATIENCE_SECONDS / 2):
            return await asyncio.gather(*asked)

    assert not one.cut_off
    told = asyncio.run(ask())
    ended = f"the calling process ended with code {code}"
    assert {str(reply.error).split(":")[0] for reply in told} == {ended}
    assert one.cut_off


def test_what_a_process_said_before_it_died_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = {**Reply("[[A]]")._asdict(), "id": "b1/0", "cast_at": "2026-01-01T00:00:00+00:00"}
    program = (
        "import os, sys; [sys.stdin.readline() for _ in range(3)]; "
        f"os.write(1, {json.dumps(reply).encode()!r} + b'\\n')"
    )
    monkeypatch.setattr(_caller, "WORKER", ("-c", program))
    one = Caller()
    line = one.begin()
    hear, heard = one._hear, threading.Event()

    def hear_late(said: bytes) -> None:
        assert heard.wait(PATIENCE_SECONDS)
        hear(said)

    monkeypatch.setattr(one, "_hear", hear_late)

    async def ask() -> list[Reply]:
        first = asyncio.create_task(_ask(line, SILENT, _messages(1), {}))
        await asyncio.sleep(0)
        one._process.wait(PATIENCE_SECONDS)
        # whoever asks a process that has ended takes nothing from those it answered
        late = asyncio.create_task(_ask(line, SILENT, _messages(2), {}))
        await asyncio.sleep(0)
        heard.set()
        return await asyncio.gather(first, late)

    first, late = asyncio.run(ask())
    assert (first.text, first.error) == ("[[A]]", None)
    assert str(late.error).startswith("the calling process ended with code 0")


def test_whoever_stops_waiting_does_not_disturb_the_others(shared: Caller) -> None:
    async def ask() -> Reply:
        line = shared.begin()
        given_up = asyncio.create_task(_ask(line, HONEST, _messages(1), {"seed": 0}))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        return await _ask(line, HONEST, _messages(2), {"seed": 0})

    assert asyncio.run(ask()).error is None
    assert shared._waiting == {}


def test_hostile_text_goes_through_the_pipe(shared: Caller) -> None:
    text = "\ud800\0\n\r\u2028{}\"'\U0001f600" * 1000
    messages = PROMPTS["pair_v1"].messages(text, text, text[::-1])
    reply = asyncio.run(_ask(shared.begin(), HONEST, messages, {"seed": 0}))
    assert reply.error is None
    assert reply.text == answer(messages, Traits(**HONEST.params["traits"]), 0)


def test_a_price_of_ones_own_is_the_price_of_the_vote(shared: Caller) -> None:
    priced = HONEST.model_copy(
        update={"usd_per_million": UsdPerMillion(prompt=1e6, completion=2e6)}
    )
    reply = asyncio.run(_ask(shared.begin(), priced, _messages(1), {"seed": 0}))
    assert reply.prompt_tokens
    assert reply.completion_tokens
    assert reply.cost_usd == reply.prompt_tokens + 2 * reply.completion_tokens


def test_whoever_hangs_up_leaves_the_process_to_others_and_the_journal_to_nobody(
    started: list[Caller], tmp_path: Path
) -> None:
    first, other = caller().begin("first", tmp_path / "first.jsonl"), caller().begin("other")
    assert asyncio.run(_ask(first, HONEST, _messages(1), {"seed": 0})).error is None
    with alone_with(tmp_path / "first.jsonl") as alone:
        assert not alone
    first.hang_up()
    # what is sent later is answered later
    assert asyncio.run(_ask(other, HONEST, _messages(1), {"seed": 0})).error is None
    with alone_with(tmp_path / "first.jsonl") as alone:
        assert alone
    other.hang_up()
    assert not started[0].alive


def test_stop_ends_the_process(started: list[Caller]) -> None:
    first = caller()
    assert first.alive
    assert caller() is first
    first.stop()
    assert not first.alive
    assert first._process.returncode == -signal.SIGTERM
    first.stop()
    assert caller() is not first
    assert started == [caller()]


def test_the_process_ends_with_its_parent() -> None:
    script = (
        "import signal, os\n"
        "from tasks.providers._caller import caller\n"
        "print(caller()._process.pid, flush=True)\n"
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
