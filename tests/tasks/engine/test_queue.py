"""Limits, retries, pauses, stops and the budget, against a scripted call."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.engine import queue
from tasks.engine.journal import CallError, Reply
from tasks.engine.limits import (
    FAILURES_IN_A_ROW,
    PAUSES,
    Budget,
    BudgetError,
    CircuitBreaker,
    GivenUpError,
    RateLimits,
)
from tasks.engine.queue import LONGEST_WAIT_SECONDS, Engine, RequestSlot, wait_seconds, worst_case
from tasks.providers import CallLimits, Judge, Provider, UsdPerMillion

MESSAGES = [{"role": "user", "content": "Which?"}]
PROVIDER = Provider(concurrency=4, attempts=3, pause_seconds=0.01)
JUDGE = Judge(judge="p/ada", provider="p", model="m")
BUSY = CallError("busy", transient=True)
BAD_KEY = CallError("bad key", transient=False)


class Script:
    """A call that does what a list says, then replies."""

    def __init__(self, *faults: CallError, seconds: float = 0.0) -> None:
        self.faults, self.seconds = list(faults), seconds
        self.asked: list[str] = []
        self.now = self.most = self.ready = 0

    async def __call__(
        self, _: Provider, judge: Judge, _messages: Any, params: dict[str, Any], slot: RequestSlot
    ) -> Reply:
        self.ready += 1
        await asyncio.sleep(0)
        await slot.acquire()
        self.asked.append(judge.judge)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        if self.faults:
            raise self.faults.pop(0)
        return Reply("[[A]]", cost_usd=params.get("cost"))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the waits between attempts short."""
    monkeypatch.setattr(queue, "FIRST_WAIT_SECONDS", 0.001)


def _ask(call: Script, number: int = 1, judge: Judge = JUDGE, **params: Any) -> list[Reply]:
    async def ask() -> list[Reply]:
        engine = Engine(call, params.pop("budget", None))
        asked = (engine.ask(PROVIDER, judge, MESSAGES, params) for _ in range(number))
        return await asyncio.gather(*asked)

    return asyncio.run(ask())


@pytest.mark.parametrize(("faults", "attempts"), [(0, 1), (1, 2), (2, 3)])
def test_transient_errors_are_tried_again(faults: int, attempts: int) -> None:
    call = Script(*[BUSY] * faults)
    assert _ask(call) == [Reply("[[A]]", attempts=attempts)]
    assert len(call.asked) == attempts


def test_attempts_come_to_an_end() -> None:
    call = Script(*[BUSY] * 9)
    assert _ask(call) == [Reply("", attempts=3, error="busy")]
    assert len(call.asked) == 3


def test_a_permanent_error_stops_its_judge_and_no_other() -> None:
    async def ask() -> list[Reply]:
        engine = Engine(call)
        other = JUDGE.model_copy(update={"judge": "p/bob"})
        first = await engine.ask(PROVIDER, JUDGE, MESSAGES, {})
        later = await engine.ask(PROVIDER, JUDGE, MESSAGES, {})
        return [first, later, await engine.ask(PROVIDER, other, MESSAGES, {})]

    call = Script(BAD_KEY)
    stopped = Reply("", error="p/ada stopped: bad key")
    assert asyncio.run(ask()) == [stopped, stopped, Reply("[[A]]")]
    assert call.asked == ["p/ada", "p/bob"]


def test_what_waits_in_line_is_stopped_too() -> None:
    call = Script(BAD_KEY, seconds=0.01)
    replies = _ask(call, 50)
    # four were in flight when the first one failed
    assert len(call.asked) == 4
    assert sum(reply.error == "p/ada stopped: bad key" for reply in replies) == 47
    assert sum(reply.text == "[[A]]" for reply in replies) == 3


def test_no_more_in_flight_than_allowed() -> None:
    call = Script(seconds=0.002)
    _ask(call, 40)
    assert call.most == 4
    slow = Script(seconds=0.002)
    _ask(slow, 10, JUDGE.model_copy(update={"concurrency": 2}))
    assert slow.most == 2


def test_few_requests_are_made_ready_before_a_slot_is_free() -> None:
    call = Script(seconds=0.05)

    async def ask() -> int:
        engine = Engine(call)
        asked = [asyncio.create_task(engine.ask(PROVIDER, JUDGE, MESSAGES, {})) for _ in range(40)]
        await asyncio.sleep(0.02)
        ready = call.ready
        await asyncio.gather(*asked)
        return ready

    # four in flight and one in hand
    assert asyncio.run(ask()) == 5


def test_a_call_that_does_not_acquire_its_slot_stops_the_judge() -> None:
    async def call(*_: Any) -> Reply:
        return Reply("[[A]]")

    (reply,) = asyncio.run(_gather(Engine(call)))
    assert reply.error == "p/ada stopped: p/ada was called without its limits"


def test_what_calls_may_not_send_twice() -> None:
    sent = []

    async def call(*words: Any) -> Reply:
        for _ in range(2):
            await words[-1].acquire()
            sent.append(1)
        return Reply("[[A]]")

    (reply,) = asyncio.run(_gather(Engine(call)))
    assert reply == Reply("", attempts=3, error="the request would be sent twice")
    # each attempt that is counted is one request
    assert len(sent) == 3


def test_answers_that_are_no_completion_are_asked_for_three_times() -> None:
    odd = CallError("no completion came", transient=True, free=False, unreadable=True)
    call = Script(BUSY, odd, BUSY, odd, odd)
    patient = PROVIDER.model_copy(update={"attempts": 10})
    reply = asyncio.run(Engine(call).ask(patient, JUDGE, MESSAGES, {}))
    assert reply == Reply("", attempts=5, error="no completion came")


async def _gather(engine: Engine) -> list[Reply]:
    return await asyncio.gather(engine.ask(PROVIDER, JUDGE, MESSAGES, {}))


def test_a_slow_provider_does_not_hold_up_another() -> None:
    async def ask() -> list[str]:
        done: list[str] = []

        async def call(_: Provider, judge: Judge, *rest: Any) -> Reply:
            await rest[-1].acquire()
            await asyncio.sleep(0.2 if judge.provider == "slow" else 0)
            done.append(judge.provider)
            return Reply("[[A]]")

        engine = Engine(call)
        judges = [Judge(judge=f"{p}/a", provider=p, model="m") for p in ("slow", "fast")]
        narrow = PROVIDER.model_copy(update={"concurrency": 1})
        asked = [engine.ask(narrow, judge, MESSAGES, {}) for judge in judges for _ in range(3)]
        await asyncio.gather(*asked)
        return done

    assert asyncio.run(ask()) == ["fast"] * 3 + ["slow"] * 3


def test_a_provider_that_always_fails_is_left_alone() -> None:
    call = Script(*[BUSY] * 10_000)
    replies = _ask(call, 200)
    errors = [str(reply.error) for reply in replies]
    assert all(reply.text == "" and reply.error for reply in replies)
    reported = f"not asked: p failed {FAILURES_IN_A_ROW}"
    assert any(error.startswith(reported[:-2]) and "4 pauses" in error for error in errors)
    # to the first pause, those in flight then, and one trial after each pause
    assert len(call.asked) <= FAILURES_IN_A_ROW + 3 + PAUSES


def test_a_provider_that_recovers_is_asked_again() -> None:
    call = Script(*[BUSY] * (FAILURES_IN_A_ROW + 2))
    patient = PROVIDER.model_copy(update={"attempts": 40})

    async def ask() -> list[Reply]:
        engine = Engine(call)
        return await asyncio.gather(*(engine.ask(patient, JUDGE, MESSAGES, {}) for _ in range(100)))

    assert {reply.text for reply in asyncio.run(ask())} == {"[[A]]"}
    assert len(call.asked) == 100 + FAILURES_IN_A_ROW + 2


def test_the_breaker_lets_one_call_try() -> None:
    async def run() -> None:
        breaker = CircuitBreaker("p", 0.01)
        for _ in range(FAILURES_IN_A_ROW):
            breaker.fail("busy", trial=False)
        assert breaker.paused
        waiting = [asyncio.create_task(breaker.wait()) for _ in range(5)]
        done, rest = await asyncio.wait(waiting, timeout=0.1)
        assert [task.result() for task in done] == [True]
        breaker.succeed()
        assert await asyncio.gather(*rest) == [False] * 4

    asyncio.run(run())


def test_the_breaker_gives_up_after_its_pauses() -> None:
    async def run() -> None:
        breaker = CircuitBreaker("p", 0.001)
        for _ in range(FAILURES_IN_A_ROW):
            breaker.fail("busy", trial=False)
        for _ in range(PAUSES):
            assert await breaker.wait()
            breaker.fail("busy", trial=True)
        with pytest.raises(GivenUpError, match="p failed 24 times in a row"):
            await breaker.wait()

    asyncio.run(run())


@given(st.integers(1, 12), st.none() | st.floats(0, 1e6))
def test_waits_grow_and_honour_what_the_provider_asks(attempt: int, reported: float | None) -> None:
    drawn = wait_seconds(attempt, reported)
    longest = min(LONGEST_WAIT_SECONDS, 0.5 * 2 ** (attempt - 1))
    if reported is None:
        assert 0 <= drawn <= longest
    else:
        assert reported <= drawn <= reported + longest / 2


@pytest.mark.parametrize(
    ("limits", "number", "at_least"),
    [
        # 2 s of the allowance at once, the rest at its rate
        (CallLimits(requests_per_minute=600), 30, 1.0),
        (CallLimits(requests_per_minute=None), 30, 0.0),
        # 6 s of the allowance at once: 60 of 600 a minute... each call takes 10
        (CallLimits(tokens_per_minute=600), 8, 1.9),
    ],
)
def test_a_minute_holds_no_more_than_allowed(
    limits: CallLimits, number: int, at_least: float
) -> None:
    async def enter() -> float:
        gate, loop = RateLimits(limits), asyncio.get_running_loop()
        began = loop.time()
        for _ in range(number):
            await gate.acquire(10)
            gate.release()
        return loop.time() - began

    taken = asyncio.run(enter())
    assert at_least - 0.05 <= taken < at_least + 1


def test_a_minute_counts_the_tokens_of_earlier_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[float] = []

    async def enter(_: RateLimits, tokens: float) -> None:
        taken.append(tokens)

    async def call(*words: Any) -> Reply:
        await words[-1].acquire()
        return Reply("[[A]]", completion_tokens=reported.pop(0))

    async def ask(params: dict[str, Any]) -> list[float]:
        taken.clear()
        judge, engine = JUDGE.model_copy(update={"params": params}), Engine(call)
        for _ in range(4):
            await engine.ask(PROVIDER, judge, MESSAGES, {})
        # the gates of the judge and of its provider get the same
        return taken[::2]

    monkeypatch.setattr(RateLimits, "acquire", enter)
    # 6 characters are 1.5 tokens; then a guess, and the mean of what came
    reported: list[int | None] = [3000, None, 1000, 5]
    assert asyncio.run(ask({"max_completion_tokens": 4000})) == [601.5, 3001.5, 3001.5, 2001.5]
    reported = [10, 10, 10, 10]
    assert asyncio.run(ask({"max_tokens": 1024})) == [81.5, 11.5, 11.5, 11.5]


PRICED = JUDGE.model_copy(
    update={
        "usd_per_million": UsdPerMillion(prompt=1e6, completion=1e6),
        "params": {"max_tokens": 8},
    }
)


def test_the_worst_case_is_bytes_and_the_longest_reply() -> None:
    # 6 bytes and a frame of 16, and 8 tokens, at 1 dollar each
    assert worst_case(PROVIDER, PRICED, MESSAGES) == 30
    assert (
        worst_case(PROVIDER, PRICED, [{"role": "user", "content": "\u00e4\U0001f600"}])
        == 6 + 16 + 8
    )


def test_of_two_bounds_the_larger_one_is_set_aside() -> None:
    params = {"max_tokens": 10, "max_completion_tokens": 4000}
    assert worst_case(PROVIDER, PRICED.model_copy(update={"params": params}), MESSAGES) == 22 + 4000


@pytest.mark.parametrize("change", [{"usd_per_million": None}, {"params": {}}])
def test_a_cost_without_bound_stops_the_judge(change: dict[str, Any]) -> None:
    call = Script()
    (reply,) = _ask(call, judge=PRICED.model_copy(update=change), budget=100.0)
    assert "the cost of p/ada has no bound" in str(reply.error)
    assert call.asked == []


@given(
    cap=st.floats(20, 400),
    cost=st.floats(0, 30),
    number=st.integers(1, 60),
    faults=st.lists(st.booleans(), max_size=20),
)
def test_the_budget_is_never_crossed(
    cap: float, cost: float, number: int, faults: list[bool]
) -> None:
    paid: list[float] = []

    async def call(*words: Any) -> Reply:
        await words[-1].acquire()
        await asyncio.sleep(0)
        if faults and faults.pop():
            # it vanished: it may have been answered, and charged
            paid.append(30)
            raise CallError("reset", transient=True, free=False)
        paid.append(cost)
        return Reply("[[A]]", cost_usd=cost)

    async def ask() -> list[Reply]:
        engine = Engine(call, cap)
        return await asyncio.gather(
            *(engine.ask(PROVIDER, PRICED, MESSAGES, {}) for _ in range(number))
        )

    replies = asyncio.run(ask())
    assert sum(paid) <= cap + 1e-9
    missing = [reply for reply in replies if reply.error]
    if missing and all("budget" in str(reply.error) for reply in missing):
        # nothing is left that one more call would surely fit in
        assert sum(paid) + 30 > cap - 1e-9


def test_a_budget_below_the_price_of_one_call_says_so() -> None:
    # Running again, which it said, would end the same way.
    async def run() -> None:
        budget = Budget(0.001)
        for worst in (0.00437, 0.006):
            with pytest.raises(BudgetError) as refused:
                await budget.reserve(worst)
            assert str(refused.value) == (
                "the budget of 0.001 USD is less than one call may cost (up to 0.0044 USD, if "
                "the reply is as long as allowed): raise it (--budget), or lower max_tokens of "
                "the judge"
            )

    asyncio.run(run())


def test_a_call_waits_for_what_those_in_flight_may_leave() -> None:
    async def run() -> None:
        budget = Budget(10.0)
        await budget.reserve(6.0)
        waiting = asyncio.create_task(budget.reserve(6.0))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(6.0, 1.0)
        await waiting
        with pytest.raises(BudgetError, match="budget of 10 USD is used up: one more"):
            await budget.reserve(9.5)

    asyncio.run(run())
