"""Limits of a run: requests and tokens per minute, the budget, Retry-After, circuit breaker."""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from aiolimiter import AsyncLimiter

from tasks.providers import Limits

BURST_SECONDS = 2.0
"""Of a minute's allowance, what may be used at once: a full one would let double through."""

TOKEN_BURST_SECONDS = 6.0


class Gate:
    """The limits of one provider or one judge."""

    def __init__(self, limits: Limits) -> None:
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._requests = _bucket(limits.requests_per_minute, BURST_SECONDS)
        self._tokens = _bucket(limits.tokens_per_minute, TOKEN_BURST_SECONDS)

    async def enter(self, tokens: float) -> None:
        """Wait for a slot, and for the minute's allowance."""
        if self._slots:
            await self._slots.acquire()
        try:
            if self._requests:
                await self._requests.acquire()
            if self._tokens:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Free the slot."""
        if self._slots:
            self._slots.release()


def _bucket(per_minute: int | None, burst: float) -> AsyncLimiter | None:
    if per_minute is None:
        return None
    size = max(1.0, per_minute * burst / 60)
    return AsyncLimiter(size, size * 60 / per_minute)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait, whichever header says so.

    ``retry-after`` is a number of seconds or an HTTP date (RFC 9110, section 10.2.3).
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        text = str(headers.get(name) or "")
        try:
            seconds = float(text) / unit
        except ValueError:
            seconds = _until(text)
        if 0 <= seconds < math.inf:
            return seconds
    return None


def _until(text: str) -> float:
    """Return the seconds until an HTTP date; infinite if it is none."""
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return math.inf


FAULTS_IN_A_ROW = 20
"""By chance one call in two may fail, and this happens once in a million."""

PAUSES = 4
"""Each twice as long as the one before."""

UNREACHED_IN_A_ROW = 3
PAUSES_UNREACHED = 2
"""Of who has never answered, and cannot be connected to: most likely nobody is there."""

LONGEST_RETRY_AFTER_SECONDS = 3600.0
"""What a run waits, in all, for a provider that asks to wait and replies to nobody."""

MOMENT_SECONDS = 1.0
"""The least that the header can say in whole seconds."""

REFUSALS_IN_A_ROW = 3
"""Of those that ask for a moment, what holds everybody up, not only the refused ballot.

A provider that sheds one call in 25 for .2 s would, with 64 in flight, be held all the time: 48 s
instead of 15 s for 8 000 ballots at 20 ms a call, 68 s instead of 41 s at 200 ms (simulated once
each). Three in a row are rare: 16 s and 42 s. Who asks for longer has met a limit, which all share.
"""


LONG_SECONDS = 10.0
"""A wait that is told: until then nothing moves, and nobody knows why."""


class GivenUpError(Exception):
    """The provider failed through all pauses, or asks to wait for too long."""


class Breaker:
    """Holds a provider for as long as it asks, and pauses it if it fails persistently.

    After each pause one call tries it out.
    """

    def __init__(
        self, provider: str, pause_seconds: float, notify: Callable[[str], None] | None = None
    ) -> None:
        self._provider, self._pause_seconds = provider, pause_seconds
        self._notify = notify or (lambda _: None)
        self._met = False
        """Whether anybody was there, ever."""
        self._in_a_row = self._refusals = self._pauses = 0
        self._not_before = 0.0
        self._waiting_since: float | None = None
        self._ticket = False
        self._news = asyncio.Event()
        self.paused = False
        self.given_up: str | None = None

    async def passage(self) -> bool:
        """Wait until calls may be made; tell whether this one tries the provider out.

        Raises
        ------
        GivenUpError
            If the provider failed again after its last pause, or asks to wait for too long.
        """
        while not self.given_up:
            if self._held():
                await self.rest(self._not_before - _now())
            elif not self.paused:
                return False
            elif self._ticket:
                self._ticket = False
                return True
            else:
                await self._news.wait()
        raise GivenUpError(self.given_up)

    def lets_in(self, *, trial: bool) -> bool:
        """Tell whether a call may be made now that it has its slot."""
        return not self.given_up and not self._held() and (trial or not self.paused)

    async def rest(self, seconds: float) -> None:
        """Sleep, unless the provider is given up meanwhile."""
        until = _now() + seconds
        while not self.given_up and (left := until - _now()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)

    def succeed(self) -> None:
        """Record a reply, or an error that tells that the provider works."""
        self._in_a_row = self._refusals = 0
        self._waiting_since = None
        self._met = True
        if self.paused:
            self.paused, self._pauses = False, 0
            self._tell()

    def fail(
        self,
        error: str,
        *,
        trial: bool,
        retry_after: float | None = None,
        unreached: bool = False,
    ) -> None:
        """Record a passing fault; those of calls that began before a pause prolong nothing.

        But nobody is asked before the time that a provider tells (``retry_after``, in seconds), and
        who was never connected to (``unreached``) is soon left alone.
        """
        self._in_a_row += 1
        self._met = self._met or not unreached
        if retry_after:
            self._hold(error, retry_after)
        if self.given_up:
            return
        faults, pauses = FAULTS_IN_A_ROW, PAUSES
        if not self._met:
            faults, pauses = UNREACHED_IN_A_ROW, PAUSES_UNREACHED
        if not trial and (self.paused or self._in_a_row < faults):
            return
        if not retry_after and self._pauses == pauses:
            self._give_up(self._persistently(error))
            return
        self.paused = True
        pause = self._pause_seconds * 2**self._pauses
        # A provider that says when to come back does not fail persistently; its hold is bounded.
        if not retry_after:
            self._pauses += 1
            self._notify(
                f"{self._provider}: {error}; paused {pause:g} s, then tried with one call "
                f"(pause {self._pauses} of {pauses}, {self._in_a_row} failures in a row)"
            )
        asyncio.get_running_loop().call_later(pause, self._try_out)

    def hand_back(self) -> None:
        """Return the trial unused."""
        self._try_out()

    def _held(self) -> bool:
        return _now() < self._not_before

    def _hold(self, error: str, seconds: float) -> None:
        now = _now()
        if self._waiting_since is None:
            self._waiting_since = now
        waited = now - self._waiting_since
        if waited + seconds > LONGEST_RETRY_AFTER_SECONDS:
            self._give_up(
                f"{self._provider} asks to wait {seconds:g} s (Retry-After), after {waited:.0f} s "
                f"without a reply; a run waits {LONGEST_RETRY_AFTER_SECONDS:g} s in all. It was "
                f"left alone: run again then. Last: {error}"
            )
            return
        self._refusals += 1
        if seconds > MOMENT_SECONDS or self._refusals >= REFUSALS_IN_A_ROW:
            # Those that were refused at the same time say much the same.
            if now + seconds > self._not_before + LONG_SECONDS and seconds > LONG_SECONDS:
                self._notify(f"{self._provider} asks to wait {seconds:g} s (Retry-After): {error}")
            self._not_before = max(self._not_before, now + seconds)

    def _persistently(self, error: str) -> str:
        if self._met:
            return (
                f"{self._provider} failed {self._in_a_row} times in a row, through {PAUSES} "
                f"pauses, and was left alone. Last: {error}"
            )
        return (
            f"{self._provider} never answered, and was left alone after {self._in_a_row} tries: "
            f"{error}. Start its server, correct api_base in its provider's file, or check the "
            "network; then run again"
        )

    def _give_up(self, reason: str) -> None:
        self.given_up = reason
        self._tell()

    def _try_out(self) -> None:
        self._ticket = True
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _now() -> float:
    return asyncio.get_running_loop().time()


STEP = 0.01


"""Share of the cap by which what may be spent is told in advance, so that it is told rarely."""


class BudgetError(Exception):
    """The call could cross the cap."""


class Budget:
    """Lets a call start only if even the dearest outcome stays below the cap."""

    def __init__(self, usd: float | None) -> None:
        self._cap = usd
        self.spent = self._reserved = 0.0
        self._news = asyncio.Event()
        self._told = 0.0
        self.tell: Callable[[float], None] | None = None
        """Is told the most that the calls begun so far can cost, before the next one begins."""

    async def reserve(self, worst: float) -> None:
        """Set the worst case of a call aside; wait while calls in flight may still free enough.

        Raises
        ------
        BudgetError
            If what was spent leaves too little for this call.
        """
        while self._cap is not None and self.spent + self._reserved + worst > self._cap:
            if self.spent + worst > self._cap:
                raise self._used_up()
            await self._news.wait()
        self._commit(worst)

    def take(self, worst: float) -> None:
        """Set a worst case aside at once: what else is set aside may be for hours.

        Raises
        ------
        BudgetError
            If what was spent and set aside leaves too little.
        """
        if self._cap is not None and self.spent + self._reserved + worst > self._cap:
            raise self._used_up()
        self._commit(worst)

    def _commit(self, worst: float) -> None:
        self._reserved += worst
        committed = self.spent + self._reserved
        if self._cap is not None and self.tell and committed > self._told:
            self._told = min(committed + STEP * self._cap, self._cap)
            self.tell(self._told)

    def _used_up(self) -> BudgetError:
        # The same words for all calls, so that a summary tells it once.
        return BudgetError(
            f"the budget of {self._cap:g} USD is used up: one more call could cross it. "
            "Raise it (--budget) and run again"
        )

    def settle(self, worst: float, cost: float) -> None:
        """Replace what was set aside by what the call cost."""
        self._reserved -= worst
        self.spent += cost
        self._news.set()
        self._news = asyncio.Event()
