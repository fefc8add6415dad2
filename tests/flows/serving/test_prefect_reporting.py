"""Messages to a Prefect server that is gone, and a run that goes on without it."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.serving import prefect_reporting
from flows.serving.prefect_reporting import ServerMessages, killed_message
from flows.studies import make_study


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(prefect_reporting, "monotonic", lambda: now[0])
    monkeypatch.setattr(prefect_reporting, "get_run_logger", lambda: logging.getLogger("run"))
    return now


def test_a_message_that_fails_is_reported_once_and_sent_again_after_a_pause(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[float] = []

    async def refuse() -> None:
        sent.append(clock[0])
        raise httpx.ConnectError("refused")

    async def answer() -> str:
        return "taken"

    async def run() -> list[Any]:
        messages = ServerMessages()
        reported: list[Any] = []
        for seconds in (0, 1, 59, 61):
            clock[0] = 1000.0 + seconds
            reported.append(await messages.send(refuse))
        clock[0] = 1200.0
        reported.append(await messages.send(answer))
        return [*reported, messages.lost]

    assert asyncio.run(run()) == [None, None, None, None, "taken", 4]
    assert sent == [1000.0, 1061.0]
    (said,) = [each.getMessage() for each in caplog.records]
    assert said.startswith("The Prefect server does not respond (ConnectError), so its UI will not")


def test_a_server_that_hangs_is_not_waited_for(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert clock
    monkeypatch.setattr(prefect_reporting, "MESSAGE_SECONDS", 0.05)

    async def hang() -> None:
        await asyncio.sleep(60)

    assert asyncio.run(ServerMessages().send(hang)) is None


def test_another_error_is_not_taken_for_the_server(clock: list[float]) -> None:
    assert clock

    async def fail() -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        asyncio.run(ServerMessages().send(fail))


def test_a_cancellation_is_not_lost_with_the_reply_that_comes_at_the_same_time(
    clock: list[float],
) -> None:
    # A run that was cancelled so once waited for ever.
    assert clock

    async def run() -> bool:
        reply = asyncio.get_running_loop().create_future()

        async def ask() -> object:
            return await reply

        sending = asyncio.create_task(ServerMessages().send(ask))
        await asyncio.sleep(0)
        reply.set_result("taken")
        sending.cancel()
        await asyncio.wait({sending})
        return sending.cancelled()

    assert asyncio.run(run())


def test_a_killed_run_says_how_it_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    parameters = make_study("quick", {"wave": "n 1", "limit": 12}).model_dump_json()
    said = "Its process was killed."
    assert killed_message(path, "audit", parameters) == (
        f"{said} Its votes are kept: `voirdire audit quick --wave 'n 1' --limit 12 --warehouse "
        f"{path}` continues it."
    )
    assert killed_message(path, "remeasure", parameters) == said
    # Neither an audit nor `serve` may fail because of what an earlier version saved.
    unknown = json.dumps({**json.loads(parameters), "mode": "by post"})
    assert killed_message(path, "audit", unknown) == f"{said} Its votes are kept."
