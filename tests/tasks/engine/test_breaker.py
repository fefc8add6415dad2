"""Waiting as a provider asks, for no longer than is stated."""

import asyncio
from typing import Any

import pytest

from tasks.engine import limits
from tasks.engine.journal import CallError, Reply
from tasks.engine.limits import (
    FAILURES_IN_A_ROW,
    PAUSES,
    PAUSES_UNREACHED,
    UNREACHED_IN_A_ROW,
    CircuitBreaker,
    GivenUpError,
)
from tasks.engine.queue import Engine, RequestSlot
from tasks.providers import Judge, Provider

MESSAGES = [{"role": "user", "content": "Which?"}]
PROVIDER = Provider(concurrency=4, attempts=3, pause_seconds=0.01)
JUDGE = Judge(judge="p/ada", provider="p", model="m")


def _ask(seconds: float, retry_after: float, number: int) -> tuple[list[Reply], list[float]]:
    """Ask a provider that refuses for so long; return the replies and when it was asked."""
    asked: list[float] = []

    async def call(*words: Any) -> Reply:
        slot: RequestSlot = words[-1]
        await slot.acquire()
        asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.005)
        if asked[-1] < asked[0] + seconds:
            raise CallError("busy", transient=True, retry_after=retry_after)
        return Reply("[[A]]")

    async def ask() -> list[Reply]:
        engine = Engine(call)
        each = (engine.ask(PROVIDER, JUDGE, MESSAGES, {}) for _ in range(number))
        return await asyncio.gather(*each)

    return asyncio.run(ask()), [at - asked[0] for at in asked]


def test_nobody_is_asked_before_the_time_that_the_provider_tells() -> None:
    replies, asked = _ask(seconds=1.2, retry_after=1.2, number=100)
    assert {reply.text for reply in replies} == {"[[A]]"}
    # those in flight at once
    assert sum(at < 1.2 for at in asked) <= PROVIDER.concurrency  # type: ignore[operator]


def test_a_few_that_ask_for_a_moment_hold_nobody_up_but_many_do() -> None:
    async def run(number: int) -> float:
        breaker, loop = CircuitBreaker("p", 9), asyncio.get_running_loop()
        for _ in range(number):
            breaker.fail("busy", trial=False, retry_after=0.2)
        began = loop.time()
        assert breaker.allows(trial=False) == (number < 3)
        assert await breaker.wait() is False
        return loop.time() - began

    assert asyncio.run(run(2)) < 0.1
    assert 0.2 <= asyncio.run(run(3)) < 0.4


def test_a_reply_to_an_earlier_call_does_not_end_the_wait() -> None:
    async def run() -> float:
        breaker, loop = CircuitBreaker("p", 9), asyncio.get_running_loop()
        began = loop.time()
        breaker.fail("busy", trial=False, retry_after=1.1)
        breaker.succeed()
        await breaker.wait()
        return loop.time() - began

    assert asyncio.run(run()) >= 1.1


def test_a_pause_lasts_as_long_as_asked_and_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, slept = [0.0], []
    monkeypatch.setattr(limits, "_now", lambda: now[0])

    async def run() -> None:
        breaker = CircuitBreaker("p", 0.001)

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            now[0] += seconds

        monkeypatch.setattr(breaker, "sleep", sleep)
        for _ in range(FAILURES_IN_A_ROW):
            breaker.fail("busy", trial=False, retry_after=50)
        for _ in range(2 * PAUSES):
            assert await breaker.wait()
            breaker.fail("busy", trial=True, retry_after=50)
        assert breaker.given_up is None

    asyncio.run(run())
    assert slept == [50] * 2 * PAUSES


@pytest.mark.parametrize("asked", [[3601.0], [1800.0, 1801.0]])
def test_who_asks_to_wait_for_too_long_is_left_alone(
    asked: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(limits, "_now", lambda: now[0])

    async def run() -> None:
        breaker = CircuitBreaker("p", 1)
        for seconds in asked:
            breaker.fail("busy", trial=False, retry_after=seconds)
            now[0] += seconds
        with pytest.raises(GivenUpError) as reported:
            await breaker.wait()
        said = str(reported.value)
        assert (
            f"p asks to wait {asked[-1]:g} s (Retry-After), after {sum(asked[:-1]):.0f} s" in said
        )
        assert "a run waits 3600 s in all" in said
        assert not breaker.allows(trial=True)

    asyncio.run(run())


def test_a_judge_that_never_answered_is_given_up_soon_and_each_pause_is_reported() -> None:
    error = "no connection to http://127.0.0.1:9/v1: connection refused"

    async def run(met: bool) -> tuple[int, str | None, list[str]]:
        reported: list[str] = []
        breaker = CircuitBreaker("p", 0.01, reported.append)
        if met:
            breaker.succeed()
        tries = 0
        while not breaker.given_up and tries < 100:
            trial = await breaker.wait()
            tries += 1
            breaker.fail(error, trial=trial, unreached=True)
        return tries, breaker.given_up, reported

    tries, reason, reported = asyncio.run(run(met=False))
    assert tries == UNREACHED_IN_A_ROW + PAUSES_UNREACHED
    assert reason == (
        f"p never answered in 5 attempts: {error}. Start its server, correct "
        "api_base in its provider's file, or check the network; then run again"
    )
    assert reported == [
        f"p: {error}; paused 0.01 s, then tried with one call (pause 1 of 2, 3 failures in a row)",
        f"p: {error}; paused 0.02 s, then tried with one call (pause 2 of 2, 4 failures in a row)",
    ]
    tries, reason, reported = asyncio.run(run(met=True))
    assert tries == FAILURES_IN_A_ROW + PAUSES
    assert str(reason).startswith("p failed 24 times in a row")
    assert len(reported) == PAUSES


def test_a_long_wait_is_reported_once() -> None:
    async def run() -> list[str]:
        reported: list[str] = []
        breaker = CircuitBreaker("p", 1, reported.append)
        for seconds in (1, 60, 59.9, 60):
            breaker.fail("busy", trial=False, retry_after=seconds)
        return reported

    assert asyncio.run(run()) == ["p asks to wait 60 s (Retry-After): busy"]


def test_nobody_sleeps_on_when_the_provider_is_left_alone() -> None:
    async def run() -> None:
        breaker = CircuitBreaker("p", 1)
        sleeping = asyncio.create_task(breaker.sleep(60))
        await asyncio.sleep(0)
        breaker.fail("busy", trial=False, retry_after=86_400)
        async with asyncio.timeout(30):
            await sleeping
        assert "86400" in str(breaker.given_up)

    asyncio.run(run())


def test_a_wait_for_tomorrow_is_one_call_and_an_error() -> None:
    replies, asked = _ask(seconds=1e9, retry_after=86_400, number=10)
    assert all("asks to wait 86400 s" in str(reply.error) for reply in replies)
    assert len(asked) <= PROVIDER.concurrency  # type: ignore[operator]
