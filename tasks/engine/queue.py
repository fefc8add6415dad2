"""All calls of one run: limits, retries, pauses, the budget, and judges that are given up."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from tasks.engine.http import Door
from tasks.engine.journal import CallError, Reply
from tasks.engine.limits import Breaker, Budget, BudgetError, Gate, GivenUpError
from tasks.engine.litellm_adapter import highest_price
from tasks.providers import Judge, Provider

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
CHARACTERS_PER_TOKEN = 4
FRAME_TOKENS = 16
"""Around each message, at most."""
READINGS = 3
"""Whole answers to a ballot that may be no completion. Each may be charged, and where one is not
chance, as of an address that speaks another protocol, the next one is the same."""
REPLY_TOKENS = 80
"""Of a short comparison with a verdict."""

THINKING_TOKENS = 600
"""A guess at what a judge takes that thinks before it replies."""

SHORT_TOKENS = 1024
"""Who may take more than these is taken for one that thinks."""

Messages = list[dict[str, str]]
Call = Callable[[Provider, Judge, Messages, dict[str, Any], Door], Awaitable[Reply]]
"""One request, sent once through a door; raises ``CallError``, or why it was not sent."""

NO_LIMIT = 1024
MADE_READY = 0.25
"""Requests that are made while the slots are taken, as a share of these."""


class Desk:
    """What stands before one provider."""

    def __init__(self, name: str, provider: Provider, notify: Callable[[str], None] | None) -> None:
        self.provider = provider
        self.gate = Gate(provider)
        self.breaker = Breaker(name, provider.pause_seconds, notify)


class Passage:
    """What one attempt holds while it is with the provider: slots, money, perhaps the trial."""

    def __init__(self, desk: Desk, gate: Gate, budget: Budget, tokens: float, worst: float) -> None:
        self._desk, self._gate, self._budget = desk, gate, budget
        self._tokens, self._worst = tokens, worst
        self.trial = self.begun = False

    async def enter(self, check: Callable[[], None]) -> None:
        """Wait for the breaker, for both gates, the narrower first, and for the budget."""
        while not self.begun:
            check()
            self.trial = await self._desk.breaker.passage()
            await self._gate.enter(self._tokens)
            await self._desk.gate.enter(self._tokens)
            try:
                # It may have begun to pause, or been given up, while this call stood in line.
                if self._desk.breaker.lets_in(trial=self.trial):
                    check()
                    await self._budget.reserve(self._worst)
                    self.begun = True
            finally:
                if not self.begun:
                    self.leave()
                    self._hand_back()

    def leave(self) -> None:
        """Free the slots."""
        self._desk.gate.leave()
        self._gate.leave()

    def _hand_back(self) -> None:
        if self.trial:
            self._desk.breaker.hand_back()

    def end(self, cost: float | None) -> None:
        """Replace what was set aside by what the call cost; unknown: all that it can."""
        if self.begun:
            self._budget.settle(self._worst, self._worst if cost is None else cost)


class Lengths:
    """How many tokens a judge's replies take, for tokens per minute."""

    def __init__(self, judge: Judge) -> None:
        self.mean = float(guessed_tokens(judge))
        self._known = 0

    def learn(self, tokens: int | None) -> None:
        """Put the mean of the replies so far in the place of the guess."""
        if tokens is not None:
            self.mean = (self.mean * self._known + tokens) / (self._known + 1)
            self._known += 1


class Engine:
    """Asks judges on behalf of one run; ``notify`` is told why nothing moves for a while."""

    def __init__(
        self,
        call: Call,
        budget_usd: float | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._call, self._notify = call, notify
        self.budget = Budget(budget_usd)
        self._capped = budget_usd is not None
        self._desks: dict[str, Desk] = {}
        self._gates: dict[str, Gate] = {}
        self._ready: dict[str, asyncio.Semaphore] = {}
        self._stopped: dict[str, str] = {}
        self._lengths: dict[str, Lengths] = {}

    async def ask(
        self, provider: Provider, judge: Judge, messages: Messages, params: dict[str, Any]
    ) -> Reply:
        """Ask until there is a reply, a permanent error, or no attempt left."""
        ready = self._ready.setdefault(judge.judge, _ready(provider, judge))
        attempt, unreadable = 1, 0
        while True:
            try:
                async with ready:
                    reply = await self._ask_once(provider, judge, messages, params)
            except CallError as error:
                if not error.passing:
                    return Reply("", attempts=attempt, error=self.stop(judge, str(error)))
                unreadable += error.unreadable
                if attempt == provider.attempts or unreadable == READINGS:
                    return Reply("", attempts=attempt, error=str(error))
                breaker = self._desk(provider, judge).breaker
                await breaker.rest(wait_seconds(attempt, error.retry_after))
                attempt += 1
            except (GivenUpError, BudgetError) as error:
                return Reply("", attempts=attempt, error=f"not asked: {error}")
            else:
                return reply._replace(attempts=attempt)

    def stop(self, judge: Judge, reason: str) -> str:
        """Ask a judge no more; return what to say of its ballots."""
        return f"{judge.judge} stopped: {self._stopped.setdefault(judge.judge, reason)}"

    def reason(self, judge: Judge) -> str | None:
        """Return why a judge is asked no more; null if it is."""
        return self._stopped.get(judge.judge)

    def take(self, provider: Provider, judge: Judge, messages: Messages) -> float:
        """Set the worst case of a ballot that waits for its batch aside; return it.

        Raises
        ------
        BudgetError
            If it does not fit under the cap now.
        CallError
            If nothing bounds its cost.
        """
        worst = worst_case(provider, judge, messages) if self._capped else 0.0
        self.budget.take(worst)
        return worst

    def settle(self, worst: float, cost: float) -> None:
        """Replace what was set aside by what a ballot cost."""
        self.budget.settle(worst, cost)

    def _desk(self, provider: Provider, judge: Judge) -> Desk:
        if judge.provider not in self._desks:
            self._desks[judge.provider] = Desk(judge.provider, provider, self._notify)
        return self._desks[judge.provider]

    async def _ask_once(
        self, provider: Provider, judge: Judge, messages: Messages, params: dict[str, Any]
    ) -> Reply:
        def check() -> None:
            if reason := self._stopped.get(judge.judge):
                raise CallError(reason, passing=False)

        check()
        desk = self._desk(provider, judge)
        gate = self._gates.setdefault(judge.judge, Gate(judge))
        lengths = self._lengths.setdefault(judge.judge, Lengths(judge))
        tokens = sum(len(m["content"]) for m in messages) / CHARACTERS_PER_TOKEN + lengths.mean
        worst = worst_case(provider, judge, messages) if self._capped else 0.0
        passage = Passage(desk, gate, self.budget, tokens, worst)
        door = Door(lambda: passage.enter(check), passage.leave)
        try:
            reply = await self._call(provider, judge, messages, params, door)
        except CallError as error:
            if passage.begun:
                _tell(desk.breaker, error, trial=passage.trial)
            passage.end(0.0 if error.free else None)
            raise
        finally:
            door.leave()
        if not passage.begun:
            raise CallError(f"{judge.judge} was asked past its limits", passing=False)
        desk.breaker.succeed()
        passage.end(reply.cost_usd)
        lengths.learn(reply.completion_tokens)
        return reply


def _tell(breaker: Breaker, error: CallError, *, trial: bool) -> None:
    if error.passing:
        breaker.fail(
            str(error),
            trial=trial,
            retry_after=error.retry_after,
            unreached=error.unreached,
        )
    else:
        breaker.succeed()


def _ready(provider: Provider, judge: Judge) -> asyncio.Semaphore:
    """Bound the requests of a judge that are made, so that one is there when a slot gets free."""
    slots = [limit for limit in (provider.concurrency, judge.concurrency) if limit]
    most = min(slots, default=NO_LIMIT)
    return asyncio.Semaphore(most + max(1, round(most * MADE_READY)))


def wait_seconds(attempt: int, retry_after: float | None) -> float:
    """Return how long to wait after ``attempt``: exponential with full jitter, or as told."""
    # Jitter, not secrecy.
    drawn = random.uniform(0, min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (attempt - 1)))  # noqa: S311
    if retry_after is None:
        return drawn
    return retry_after + drawn / 2


def worst_case(provider: Provider, judge: Judge, messages: Messages) -> float:
    """Return the most that one call can cost in US dollars.

    No tokenizer makes more tokens than there are bytes, give or take a frame around each message.
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
            passing=False,
        )
    return sent * price.prompt + longest * price.completion


def most_tokens(judge: Judge) -> int | None:
    """Return how long a reply can get; null if nothing bounds it."""
    given = [judge.params.get(name) for name in ("max_completion_tokens", "max_tokens")]
    bounds = [bound for bound in given if isinstance(bound, int) and bound > 0]
    # Where both are given, some models are sent the one, some the other, some both.
    return max(bounds) if bounds else None


def guessed_tokens(judge: Judge) -> int:
    """Return how many tokens a reply may take, where nobody knows."""
    longest = most_tokens(judge)
    thinks = judge.params.get("reasoning_effort", "none") not in {"none", "minimal"}
    if thinks or (longest or 0) > SHORT_TOKENS:
        return min(THINKING_TOKENS, longest or THINKING_TOKENS)
    return min(REPLY_TOKENS, longest or REPLY_TOKENS)
