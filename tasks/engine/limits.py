"""Limits of a run: request and token rates, budget, Retry-After, circuit breaker.

:class:`RateLimits` keeps our own limits, which files of providers and judges set: concurrency,
requests and tokens per minute. Those of the provider show in its replies: ``client.py`` classifies
a 429, :func:`retry_after` reads how long to wait, :class:`CircuitBreaker` holds back further calls,
and ``queue.py`` tries again.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from aiolimiter import AsyncLimiter

from tasks.providers import CallLimits

BURST_SECONDS = 2.0
"""Share of a minute's allowance that may be used at once; all of it would allow double the rate."""

TOKEN_BURST_SECONDS = 6.0


class RateLimits:
    """Our own concurrency and rate limits of one provider or one judge."""

    def __init__(self, limits: CallLimits) -> None:
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._requests = _bucket(limits.requests_per_minute, BURST_SECONDS)
        self._tokens = _bucket(limits.tokens_per_minute, TOKEN_BURST_SECONDS)
        self.waiting = 0
        """Number of requests that wait for a rate."""

    async def acquire(self, tokens: float) -> None:
        """Wait for a concurrency slot and for the rates to allow a request."""
        if self._slots:
            await self._slots.acquire()
        self.waiting += 1
        try:
            if self._requests:
                await self._requests.acquire()
            if self._tokens:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
        except BaseException:
            self.release()
            raise
        finally:
            self.waiting -= 1

    def release(self) -> None:
        """Free the slot."""
        if self._slots:
            self._slots.release()


def _bucket(per_minute: int | None, burst: float) -> AsyncLimiter | None:
    if per_minute is None:
        return None
    size = max(1.0, per_minute * burst / 60)
    return AsyncLimiter(size, size * 60 / per_minute)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait; null if no header does.

    ``retry-after`` is a number of seconds or an HTTP date (RFC 9110, section 10.2.3).
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        text = str(headers.get(name) or "")
        try:
            seconds = float(text) / unit
        except ValueError:
            seconds = _seconds_until(text)
        if 0 <= seconds < math.inf:
            return seconds
    return None


def _seconds_until(text: str) -> float:
    """Return the seconds until an HTTP date; infinity if it is not one."""
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return math.inf


FAILURES_IN_A_ROW = 20
"""If every second call failed by chance, this would happen once in a million calls."""

PAUSES = 4
"""Each pause is twice as long as the one before."""

UNREACHED_IN_A_ROW = 3
PAUSES_UNREACHED = 2
"""For a provider that never answered and cannot be reached: most likely no server is running."""

LONGEST_RETRY_AFTER_SECONDS = 3600.0
"""Longest total wait for a provider that sends Retry-After and no replies."""

SHORT_SECONDS = 1.0
"""Shortest wait that Retry-After can express in whole seconds."""

REFUSALS_IN_A_ROW = 3
"""Number of short Retry-After waits in a row after which all calls wait, not only the refused one.

Suppose that a provider refuses one call in 25 for .2 s. If each refusal delayed all calls, 8 000
ballots with 64 in flight would take 48 s instead of 15 s at 20 ms a call, and 68 s instead of 41 s
at 200 ms (simulated once each). Three refusals in a row are rare: 16 s and 42 s. A longer wait
means that a limit was reached that all calls share.
"""

LONG_SECONDS = 10.0
"""Longer waits are reported, because nothing else explains why the run stands still."""


class GivenUpError(Exception):
    """The provider failed through all pauses, or asks to wait for too long."""


class CircuitBreaker:
    """Pauses a provider that fails persistently, and waits as long as Retry-After says.

    After each pause a single trial call decides whether calls go on.
    """

    def __init__(
        self, provider: str, pause_seconds: float, notify: Callable[[str], None] | None = None
    ) -> None:
        self._provider, self._pause_seconds = provider, pause_seconds
        self._notify = notify or (lambda _: None)
        self._ever_reached = False
        self._in_a_row = self._refusals = self._pauses = 0
        self._not_before = self._trial_at = 0.0
        self._waiting_since: float | None = None
        self._trial_available = False
        self._changed = asyncio.Event()
        self.paused = False
        self.given_up: str | None = None

    async def wait(self) -> bool:
        """Wait until calls are allowed; return whether the caller makes the trial call.

        Raise GivenUpError if the provider failed again after its last pause, or asks to wait for
        too long.
        """
        while not self.given_up:
            if self._must_wait():
                await self.sleep(self._not_before - _now())
            elif not self.paused:
                return False
            elif self._trial_available:
                self._trial_available = False
                return True
            else:
                await self._changed.wait()
        raise GivenUpError(self.given_up)

    def allows(self, *, trial: bool) -> bool:
        """Tell whether a call that has its slot may still be made."""
        return not self.given_up and not self._must_wait() and (trial or not self.paused)

    async def sleep(self, seconds: float) -> None:
        """Sleep; wake up early if the provider is given up."""
        until = _now() + seconds
        while not self.given_up and (left := until - _now()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    def succeed(self) -> None:
        """Record a reply, or an error that shows that the provider works."""
        self._in_a_row = self._refusals = 0
        self._waiting_since = None
        self._ever_reached = True
        if self.paused:
            self.paused, self._pauses = False, 0
            self._wake()

    def fail(
        self, error: str, *, trial: bool, retry_after: float | None = None, unreached: bool = False
    ) -> None:
        """Record a transient error; errors of calls that began before a pause do not prolong it.

        Parameters
        ----------
        retry_after
            Seconds to wait, as requested by the provider: no call is made earlier.
        unreached
            Whether no connection could be made. A provider that was never reached is given up
            after fewer attempts.
        """
        self._in_a_row += 1
        self._ever_reached = self._ever_reached or not unreached
        if retry_after:
            self._postpone(error, retry_after)
        if self.given_up:
            return
        failures, pauses = FAILURES_IN_A_ROW, PAUSES
        if not self._ever_reached:
            failures, pauses = UNREACHED_IN_A_ROW, PAUSES_UNREACHED
        if not trial and (self.paused or self._in_a_row < failures):
            return
        if not retry_after and self._pauses == pauses:
            self._give_up(self._reason(error))
            return
        self.paused = True
        pause = self._pause_seconds * 2**self._pauses
        # With Retry-After this is no persistent failure; the total wait is bounded elsewhere.
        if not retry_after:
            self._pauses += 1
            self._notify(
                f"{self._provider}: {error}; paused {pause:g} s, then tried with one call "
                f"(pause {self._pauses} of {pauses}, {self._in_a_row} failures in a row)"
            )
        self._trial_at = _now() + pause
        asyncio.get_running_loop().call_later(pause, self.return_trial)

    def waits_for(self) -> str:
        """Say what calls wait for now; empty if they do not wait."""
        now = _now()
        if now < self._not_before:
            return f"Retry-After, {self._not_before - now:.0f} s"
        if not self.paused or self.given_up:
            return ""
        left = self._trial_at - now
        tried = f"tried again in {left:.0f} s" if left > 0 else "one call tries"
        return f"circuit breaker open, {tried}"

    def return_trial(self) -> None:
        """Let another call make the trial, because this one was not made."""
        self._trial_available = True
        self._wake()

    def _must_wait(self) -> bool:
        return _now() < self._not_before

    def _postpone(self, error: str, seconds: float) -> None:
        now = _now()
        if self._waiting_since is None:
            self._waiting_since = now
        waited = now - self._waiting_since
        if waited + seconds > LONGEST_RETRY_AFTER_SECONDS:
            self._give_up(
                f"{self._provider} asks to wait {seconds:g} s (Retry-After), after {waited:.0f} s "
                f"without a reply; a run waits {LONGEST_RETRY_AFTER_SECONDS:g} s in all. It is "
                f"not called again in this run: run again later. Last error: {error}"
            )
            return
        self._refusals += 1
        if seconds > SHORT_SECONDS or self._refusals >= REFUSALS_IN_A_ROW:
            # Calls that were refused together have nearly the same wait: report it once.
            if now + seconds > self._not_before + LONG_SECONDS and seconds > LONG_SECONDS:
                self._notify(f"{self._provider} asks to wait {seconds:g} s (Retry-After): {error}")
            self._not_before = max(self._not_before, now + seconds)

    def _reason(self, error: str) -> str:
        """Return why the provider is given up, and the next step if it never answered."""
        if self._ever_reached:
            return (
                f"{self._provider} failed {self._in_a_row} times in a row, through {PAUSES} "
                f"pauses, and is not called again in this run. Last error: {error}"
            )
        return (
            f"{self._provider} never answered in {self._in_a_row} attempts: {error}. Start its "
            "server, correct api_base in its provider's file, or check the network; then run again"
        )

    def _give_up(self, reason: str) -> None:
        self.given_up = reason
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _now() -> float:
    return asyncio.get_running_loop().time()


STEP = 0.01
"""The committed amount is reported this share of the cap in advance, so that reports are rare."""


class BudgetError(Exception):
    """The call could exceed the budget."""


class Budget:
    """Lets a call start only if even its highest cost stays within the budget."""

    def __init__(self, usd: float | None) -> None:
        self._cap = usd
        self.spent = self._reserved = 0.0
        self._changed = asyncio.Event()
        self._reported = self._first_refused = 0.0
        self.report: Callable[[float], None] | None = None
        """Called with the highest total cost of all calls so far, before the next one begins."""

    async def reserve(self, worst: float) -> None:
        """Reserve the highest cost of a call; wait while calls in flight may free enough.

        Raise BudgetError if the amount spent leaves too little for this call.
        """
        while self._cap is not None and self.spent + self._reserved + worst > self._cap:
            if self.spent + worst > self._cap:
                raise self._used_up(worst)
            await self._changed.wait()
        self._commit(worst)

    def reserve_now(self, worst: float) -> None:
        """Reserve a highest cost without waiting, for batches, which may take hours.

        Raise BudgetError if the amounts spent and reserved leave too little.
        """
        if self._cap is not None and self.spent + self._reserved + worst > self._cap:
            raise self._used_up(worst)
        self._commit(worst)

    def _commit(self, worst: float) -> None:
        self._reserved += worst
        committed = self.spent + self._reserved
        if self._cap is not None and self.report and committed > self._reported:
            self._reported = min(committed + STEP * self._cap, self._cap)
            self.report(self._reported)

    def _used_up(self, worst: float) -> BudgetError:
        # The same text for all calls, so that a summary shows it once.
        self._first_refused = self._first_refused or worst
        if not self.spent + self._reserved:
            return BudgetError(
                f"the budget of {self._cap:g} USD is less than one call may cost (up to "
                f"{self._first_refused:.2g} USD, if the reply is as long as allowed): raise it "
                "(--budget), or lower max_tokens of the judge"
            )
        return BudgetError(
            f"the budget of {self._cap:g} USD is used up: one more call could exceed it. "
            "Each run may spend as much: run again, or raise it (--budget)"
        )

    def settle(self, worst: float, cost: float) -> None:
        """Replace a reserved amount by the actual cost."""
        self._reserved -= worst
        self.spent += cost
        self._changed.set()
        self._changed = asyncio.Event()
