"""All calls of one run: limits, retries, pauses, the budget, and who is asked no more."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from tasks.providers import Judge, Provider
from tasks.providers._breaker import Breaker, GivenUpError
from tasks.providers._budget import Budget, BudgetError
from tasks.providers._limits import Gate
from tasks.providers._prices import price_of
from tasks.providers._reply import CallError, Reply

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 300.0
CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 80
"""Of a short comparison with a verdict, for tokens per minute."""

Messages = list[dict[str, str]]
Call = Callable[[Provider, Judge, Messages, dict[str, Any]], Awaitable[Reply]]
"""One request, tried once; raises ``CallError``."""


class Desk:
    """What stands before one provider."""

    def __init__(self, name: str, provider: Provider) -> None:
        self.provider = provider
        self.gate = Gate(provider)
        self.breaker = Breaker(name, provider.pause_seconds)


class Engine:
    """Asks judges on behalf of one run."""

    def __init__(self, call: Call, budget_usd: float | None = None) -> None:
        self._call = call
        self._budget = Budget(budget_usd)
        self._capped = budget_usd is not None
        self._desks: dict[str, Desk] = {}
        self._gates: dict[str, Gate] = {}
        self._stopped: dict[str, str] = {}

    async def ask(
        self, provider: Provider, judge: Judge, messages: Messages, params: dict[str, Any]
    ) -> Reply:
        """Ask until there is a reply, a permanent error, or no attempt left."""
        desk = self._desks.setdefault(judge.provider, Desk(judge.provider, provider))
        gate = self._gates.setdefault(judge.judge, Gate(judge))
        attempt = 1
        while True:
            try:
                reply = await self._ask_once(desk, gate, judge, messages, params)
            except CallError as error:
                if not error.passing:
                    first = self._stopped.setdefault(judge.judge, str(error))
                    return Reply("", attempts=attempt, error=f"{judge.judge} stopped: {first}")
                if attempt == provider.attempts:
                    return Reply("", attempts=attempt, error=str(error))
                await asyncio.sleep(wait_seconds(attempt, error.retry_after))
                attempt += 1
            except (GivenUpError, BudgetError) as error:
                return Reply("", attempts=attempt, error=f"not asked: {error}")
            else:
                return reply._replace(attempts=attempt)

    async def _ask_once(
        self, desk: Desk, gate: Gate, judge: Judge, messages: Messages, params: dict[str, Any]
    ) -> Reply:
        trial = await self._enter(desk, gate, judge, messages)
        asked = False
        try:
            if reason := self._stopped.get(judge.judge):
                raise CallError(reason, passing=False)
            worst = worst_case(desk.provider, judge, messages) if self._capped else 0.0
            await self._budget.reserve(worst)
            asked = True
            return await self._pay(desk, judge, messages, params, worst=worst, trial=trial)
        finally:
            if trial and not asked:
                desk.breaker.hand_back()
            desk.gate.leave()
            gate.leave()

    async def _enter(self, desk: Desk, gate: Gate, judge: Judge, messages: Messages) -> bool:
        """Wait for the breaker and for both gates, the narrower first; return if it is a trial."""
        tokens = sum(len(m["content"]) for m in messages) / CHARACTERS_PER_TOKEN + REPLY_TOKENS
        while True:
            if judge.judge in self._stopped:
                raise CallError(self._stopped[judge.judge], passing=False)
            trial = await desk.breaker.passage()
            await gate.enter(tokens)
            await desk.gate.enter(tokens)
            if trial or not desk.breaker.paused:
                return trial
            # It began to pause while this call stood in line.
            desk.gate.leave()
            gate.leave()

    async def _pay(
        self,
        desk: Desk,
        judge: Judge,
        messages: Messages,
        params: dict[str, Any],
        *,
        worst: float,
        trial: bool,
    ) -> Reply:
        # Until the provider has said otherwise, the call may have cost all that it can.
        cost = worst
        try:
            reply = await self._call(desk.provider, judge, messages, params)
            cost = worst if reply.cost_usd is None else reply.cost_usd
        except CallError as error:
            cost = 0.0 if error.free else worst
            if error.passing:
                desk.breaker.fail(str(error), trial=trial)
            else:
                desk.breaker.succeed()
            raise
        finally:
            self._budget.settle(worst, cost)
        desk.breaker.succeed()
        return reply


def wait_seconds(attempt: int, retry_after: float | None) -> float:
    """Return how long to wait after ``attempt``: exponential with full jitter, or as told."""
    # Jitter, not secrecy.
    drawn = random.uniform(0, min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (attempt - 1)))  # noqa: S311
    if retry_after is None:
        return drawn
    return min(retry_after, LONGEST_RETRY_AFTER_SECONDS) + drawn / 2


def worst_case(provider: Provider, judge: Judge, messages: Messages) -> float:
    """Return the most that one call can cost in US dollars.

    No tokenizer makes more tokens than there are bytes, give or take a frame around each message.
    """
    if provider.simulated:
        return 0.0
    price, longest = price_of(judge, simulated=False), most_tokens(judge)
    if price is None or longest is None:
        raise CallError(
            f"the cost of {judge.judge} has no bound, so a budget cannot hold. Give it "
            "usd_per_million and max_tokens in its provider's file",
            passing=False,
        )
    sent = sum(len(message["content"].encode("utf-8", "replace")) + 16 for message in messages)
    return sent * price.prompt + longest * price.completion


def most_tokens(judge: Judge) -> int | None:
    """Return how long a reply can get; null if nothing bounds it."""
    given = [judge.params.get(name) for name in ("max_completion_tokens", "max_tokens")]
    bounds = [bound for bound in given if isinstance(bound, int) and bound > 0]
    return min(bounds) if bounds else None
