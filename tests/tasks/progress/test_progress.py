import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from flows.running.processes import run_in_thread
from tasks.progress import Status, current_status, duration, followed, per_time, step, usd
from tasks.progress.lines import Lines


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def status(clock: Clock) -> Status:
    return Status("audit mine", clock)


def test_rate_and_time_left_are_those_of_late(status: Status, clock: Clock) -> None:
    status.plan({"ada": 300, "bob": 300}, cap_usd=5.0)
    assert status.facts() == ["0 of 600 ballots (0 %)", "cost 0.00 of 5.00 USD"]
    for _ in range(20):
        clock.now += 1
        status.advance("ada", 5, 0.01)
    # 100 in 20 s, so 500 take 100 s.
    assert status.facts() == [
        "100 of 600 ballots (16 %)",
        "5/s",
        "1:40 left",
        "cost 0.20 of 5.00 USD",
    ]
    for _ in range(40):
        clock.now += 1
        status.advance("bob", 1, None)
    # The last 30 s count alone.
    assert status.facts()[1:] == ["1/s", "7:40 left", "cost not known"]
    status.finish("bob")
    assert status.counts() == (140, 340)
    status.end_asking()
    assert status.facts() == ["140 of 340 ballots (41 %)", "cost not known"]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0:00"), (59.6, "1:00"), (754, "12:34"), (7500, "2:05:00")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_small_numbers_are_not_zero() -> None:
    assert (per_time(312.4), per_time(0.25)) == ("312/s", "15.0/min")
    assert (usd(0), usd(0.0012), usd(12.345)) == ("0.00", "0.0012", "12.35")
    assert usd(8.8e-05) == "0.000088"


def test_lines_are_at_the_start_at_tenths_and_minutes_and_at_the_end(
    status: Status, clock: Clock
) -> None:
    said: list[str] = []
    lines = Lines(status, said.append)
    lines.tick()
    # Nothing has begun.
    assert said == []
    with followed(status):
        step("making pairs")
    lines.tick()
    assert said == ["audit mine: started"]
    status.plan({"ada": 40})
    for _ in range(8):
        clock.now += 1
        status.advance("ada")
        lines.tick()
    # The fourth and the eighth ballot are the first and the second tenth.
    assert said[1:] == [
        "audit mine: asking judges, 4 of 40 ballots (10 %), 1/s, 0:36 left, cost 0.00 USD",
        "audit mine: asking judges, 8 of 40 ballots (20 %), 1/s, 0:32 left, cost 0.00 USD",
    ]
    status.waits = lambda: {"emu": "Retry-After, 90 s"}
    for _ in range(61):
        clock.now += 1
        lines.tick()
    assert len(said) == 4
    assert said[3].endswith("cost 0.00 USD, emu: Retry-After, 90 s")
    status.end_asking()
    status.unanswered = 3
    lines.close()
    lines.close()
    done = "8 of 40 ballots (20 %), 3 without a reply"
    assert said[4:] == [f"audit mine: ended after 1:09, {done}, cost 0.00 USD"]


def test_what_fails_is_not_said_to_have_ended(status: Status) -> None:
    said: list[str] = []
    with pytest.raises(ValueError, match="wrong"), Lines(status, said.append):
        raise ValueError("wrong")
    assert said == []


def test_threads_and_coroutines_say_their_steps(status: Status) -> None:
    async def work() -> str:
        step("in a coroutine")
        return current_status().what

    def threads() -> Iterator[str]:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(copy_context().run, step, "in a thread").result()
            yield status.step

    with followed(status):
        assert run_in_thread(work) == "audit mine"
        assert status.step == "in a coroutine"
        assert list(threads()) == ["in a thread"]
        assert asyncio.run(work()) == "audit mine"
    step("of nobody")
    assert status.step == "in a coroutine"
