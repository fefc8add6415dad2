"""All calls of one run: limits, retries, pauses, the budget, and judges that are given up."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tasks.engine.journal import CallError, Reply
from tasks.engine.limits import Budget, BudgetError, CircuitBreaker, GivenUpError, RateLimits
from tasks.engine.litellm_adapter import highest_price
from tasks.providers import Judge, Provider

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
CHARACTERS_PER_TOKEN = 4
FRAME_TOKENS = 16
"""Most tokens that a provider adds around each message."""

UNREADABLE_REPLIES = 3
"""Attempts with an unreadable reply, per ballot.

Each may be charged, and some causes, such as a server with another protocol, do not go away.
"""

REPLY_TOKENS = 80
"""Typical length of a short comparison with a verdict."""

THINKING_TOKENS = 600
"""Assumed length of the reply of a judge that thinks first."""

SHORT_TOKENS = 1024
"""A judge with a higher limit is assumed to think first."""

MAX_BYTES = 2_000_000
"""Default limit of a response's size."""

NO_LIMIT = 1024
PREPARED = 0.25
"""Requests that are prepared while all slots are taken, as a share of the slots."""

Messages = list[dict[str, str]]


class RequestSlot:
    """One attempt's permission to send: acquired as the request is sent, released by its response.

    ``acquire`` and ``release`` belong to the queue; litellm holds no slot while it prepares a
    request or reads the response.
    """

    def __init__(self, acquire: Callable[[], Awaitable[None]], release: Callable[[], None]) -> None:
        self._acquire, self._release = acquire, release
        self._sent_at: float | None = None
        self.seconds: float | None = None
        """How long the provider took to respond."""
        self.refusal: Exception | None = None
        """Why the request was not sent, or its response not accepted."""
        self.response: tuple[int, bytes] | None = None
        """Status and body of the response."""
        self.timed_out = False
        self.max_bytes = MAX_BYTES
        """Limit of the response's size, decompressed."""
        self.needs_cost = True
        """Whether the cost that litellm computes is used."""
        self._timeout: asyncio.Timeout | None = None
        self._allowed = 0.0

    @asynccontextmanager
    async def time_limit(self, seconds: float) -> AsyncIterator[None]:
        """Cancel the block this long after the request was sent, unless the response is there.

        The timeout of the HTTP libraries is between two bytes: a slow stream would never end.
        """
        self._allowed = seconds
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                self._timeout = timeout
                yield
        finally:
            self._timeout, self.timed_out = None, timeout.expired()

    async def acquire(self) -> None:
        """Wait until the request may be sent.

        Raise CallError if it was sent before: the queue counts all attempts, so a library may not
        repeat one.
        """
        if self._sent_at is not None:
            error = sys.exception()
            cause = (
                f"{type(error).__name__}: {error}" if error else "the request would be sent twice"
            )
            self.refusal = CallError(cause, transient=True, free=False)
            raise self.refusal
        try:
            await self._acquire()
        except Exception as refusal:
            self.refusal = refusal
            raise
        self._sent_at = time.perf_counter()
        if self._timeout:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._allowed)

    async def send(self, body: bytes) -> None:
        """Wait until the request with this body may be sent."""
        del body
        await self.acquire()

    def release(self) -> None:
        """Let the next request be sent; further calls have no effect."""
        if self._sent_at is not None and self.seconds is None:
            self.seconds = time.perf_counter() - self._sent_at
            if self._timeout and not self._timeout.expired():
                self._timeout.reschedule(None)
            self._release()


Call = Callable[[Provider, Judge, Messages, dict[str, Any], RequestSlot], Awaitable[Reply]]
"""Send one request, once, when its slot allows; raise ``CallError``, or why it was not sent."""


class ProviderLimits:
    """Rate limits and circuit breaker of one provider."""

    def __init__(self, name: str, provider: Provider, notify: Callable[[str], None] | None) -> None:
        self.rates = RateLimits(provider)
        self.breaker = CircuitBreaker(name, provider.pause_seconds, notify)


class Attempt:
    """What one attempt holds while it is in flight: slots, reserved money, perhaps the trial."""

    def __init__(
        self,
        provider: ProviderLimits,
        judge: RateLimits,
        budget: Budget,
        *,
        tokens: float,
        worst: float,
    ) -> None:
        self._provider, self._judge, self._budget = provider, judge, budget
        self._tokens, self._worst = tokens, worst
        self.trial = self.begun = False

    async def begin(self, check: Callable[[], None]) -> None:
        """Wait for the breaker, the rates (the judge's first) and the budget."""
        while not self.begun:
            check()
            self.trial = await self._provider.breaker.wait()
            await self._judge.acquire(self._tokens)
            await self._provider.rates.acquire(self._tokens)
            try:
                # While this call waited, the provider may have been paused or given up.
                if self._provider.breaker.allows(trial=self.trial):
                    check()
                    await self._budget.reserve(self._worst)
                    self.begun = True
            finally:
                if not self.begun:
                    self.release()
                    if self.trial:
                        self._provider.breaker.return_trial()

    def release(self) -> None:
        """Free the slots."""
        self._provider.rates.release()
        self._judge.release()

    def settle(self, cost: float | None) -> None:
        """Replace the reserved amount by the cost; if it is unknown, by the highest cost."""
        if self.begun:
            self._budget.settle(self._worst, self._worst if cost is None else cost)


class ReplyLength:
    """Mean number of tokens of a judge's replies, for the rate of tokens per minute."""

    def __init__(self, judge: Judge) -> None:
        self.mean = float(expected_tokens(judge))
        self._known = 0

    def add(self, tokens: int | None) -> None:
        """Replace the assumed length by the mean of the replies so far."""
        if tokens is not None:
            self.mean = (self.mean * self._known + tokens) / (self._known + 1)
            self._known += 1


class Engine:
    """Asks judges for one run; calls ``notify`` with the reason if nothing moves for a while."""

    def __init__(
        self,
        call: Call,
        budget_usd: float | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._call, self._notify = call, notify
        self.budget = Budget(budget_usd)
        self._capped = budget_usd is not None
        self._providers: dict[str, ProviderLimits] = {}
        self._judges: dict[str, RateLimits] = {}
        self._prepared: dict[str, asyncio.Semaphore] = {}
        self._stopped: dict[str, str] = {}
        self._lengths: dict[str, ReplyLength] = {}

    async def ask(
        self, provider: Provider, judge: Judge, messages: Messages, params: dict[str, Any]
    ) -> Reply:
        """Ask until there is a reply, a permanent error, or no attempt left."""
        prepared = self._prepared.setdefault(judge.judge, _prepared(provider, judge))
        attempt, unreadable = 1, 0
        while True:
            try:
                async with prepared:
                    reply = await self._ask_once(provider, judge, messages, params)
            except CallError as error:
                if not error.transient:
                    return Reply("", attempts=attempt, error=self.stop(judge, str(error)))
                unreadable += error.unreadable
                if attempt == provider.attempts or unreadable == UNREADABLE_REPLIES:
                    return Reply("", attempts=attempt, error=str(error))
                breaker = self._limits_of(provider, judge).breaker
                await breaker.sleep(wait_seconds(attempt, error.retry_after))
                attempt += 1
            except (GivenUpError, BudgetError) as error:
                return Reply("", attempts=attempt, error=f"not asked: {error}")
            else:
                return reply._replace(attempts=attempt)

    def stop(self, judge: Judge, reason: str) -> str:
        """Stop asking a judge; return the error of its ballots."""
        return f"{judge.judge} stopped: {self._stopped.setdefault(judge.judge, reason)}"

    def reason(self, judge: Judge) -> str | None:
        """Return why a judge was stopped; null if it was not."""
        return self._stopped.get(judge.judge)

    def waits(self) -> dict[str, str]:
        """Return what each provider waits for now, of those that wait."""
        found = {}
        for name, limits in self._providers.items():
            own = [rates for judge, rates in self._judges.items() if judge.startswith(f"{name}/")]
            slowed = sum(rates.waiting for rates in (limits.rates, *own))
            limited = f"rate limit, {slowed} requests wait" if slowed else ""
            if why := limits.breaker.waits_for() or limited:
                found[name] = why
        return found

    def reserve_now(self, provider: Provider, judge: Judge, messages: Messages) -> float:
        """Reserve the highest cost of a ballot that waits for its batch; return that cost.

        Raises
        ------
        BudgetError
            If it does not fit into the budget now.
        CallError
            If nothing bounds its cost.
        """
        worst = worst_case(provider, judge, messages) if self._capped else 0.0
        self.budget.reserve_now(worst)
        return worst

    def _limits_of(self, provider: Provider, judge: Judge) -> ProviderLimits:
        name = judge.provider
        if name not in self._providers:
            self._providers[name] = ProviderLimits(name, provider, self._notify)
        return self._providers[name]

    async def _ask_once(
        self, provider: Provider, judge: Judge, messages: Messages, params: dict[str, Any]
    ) -> Reply:
        def check() -> None:
            if reason := self._stopped.get(judge.judge):
                raise CallError(reason, transient=False)

        check()
        limits = self._limits_of(provider, judge)
        rates = self._judges.setdefault(judge.judge, RateLimits(judge))
        length = self._lengths.setdefault(judge.judge, ReplyLength(judge))
        tokens = sum(len(m["content"]) for m in messages) / CHARACTERS_PER_TOKEN + length.mean
        worst = worst_case(provider, judge, messages) if self._capped else 0.0
        attempt = Attempt(limits, rates, self.budget, tokens=tokens, worst=worst)
        slot = RequestSlot(lambda: attempt.begin(check), attempt.release)
        try:
            reply = await self._call(provider, judge, messages, params, slot)
        except CallError as error:
            if attempt.begun and error.transient:
                limits.breaker.fail(
                    str(error),
                    trial=attempt.trial,
                    retry_after=error.retry_after,
                    unreached=error.unreached,
                )
            elif attempt.begun:
                limits.breaker.succeed()
            attempt.settle(0.0 if error.free else None)
            raise
        finally:
            slot.release()
        if not attempt.begun:
            raise CallError(f"{judge.judge} was called without its limits", transient=False)
        limits.breaker.succeed()
        attempt.settle(reply.cost_usd)
        length.add(reply.completion_tokens)
        return reply


def _prepared(provider: Provider, judge: Judge) -> asyncio.Semaphore:
    """Bound the prepared requests of a judge; a few more than slots keep all slots busy."""
    slots = [limit for limit in (provider.concurrency, judge.concurrency) if limit]
    most = min(slots, default=NO_LIMIT)
    return asyncio.Semaphore(most + max(1, round(most * PREPARED)))


def wait_seconds(attempt: int, retry_after: float | None) -> float:
    """Return how long to wait after ``attempt``: exponential with full jitter, or Retry-After."""
    # Jitter needs no cryptographic randomness.
    drawn = random.uniform(0, min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (attempt - 1)))  # noqa: S311
    return drawn if retry_after is None else retry_after + drawn / 2


def worst_case(provider: Provider, judge: Judge, messages: Messages) -> float:
    """Return the highest possible cost of one call in US dollars.

    No tokenizer makes more tokens than there are bytes, apart from a frame around each message.
    """
    if provider.simulated:
        return 0.0
    sent = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
    sent += FRAME_TOKENS * len(messages)
    price, longest = highest_price(judge, sent), most_tokens(judge)
    if price is None or longest is None:
        raise CallError(
            f"the cost of {judge.judge} has no bound, so a budget cannot hold. Give it "
            "usd_per_million and max_tokens in its provider's file",
            transient=False,
        )
    return sent * price.prompt + longest * price.completion


def most_tokens(judge: Judge) -> int | None:
    """Return the maximum length of a reply in tokens; null if nothing bounds it."""
    given = [judge.params.get(name) for name in ("max_completion_tokens", "max_tokens")]
    bounds = [bound for bound in given if isinstance(bound, int) and bound > 0]
    # If both are given, it depends on the model which of them is sent.
    return max(bounds) if bounds else None


def expected_tokens(judge: Judge) -> int:
    """Return the assumed length of a reply in tokens."""
    longest = most_tokens(judge)
    thinks = judge.params.get("reasoning_effort", "none") not in {"none", "minimal"}
    if thinks or (longest or 0) > SHORT_TOKENS:
        return min(THINKING_TOKENS, longest or THINKING_TOKENS)
    return min(REPLY_TOKENS, longest or REPLY_TOKENS)
