"""The steps of a provider batch, in the worker process.

They are small, so that the flow can record each in the warehouse before it takes the next: draft
ballots, pack them into files within the budget, create a batch of each, look at it until it has
ended, collect its replies; and find the batch of a run that was killed while it made it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from tasks.engine import batches
from tasks.engine.budget import BudgetError
from tasks.engine.limits import LONGEST_RETRY_AFTER_SECONDS
from tasks.engine.queue import Engine, wait_seconds
from tasks.engine.redaction import redact
from tasks.engine.reply import CallError
from tasks.providers import PROVIDERS, Judge, Provider

Told = dict[str, Any]
T = TypeVar("T")
ASKING = {"draft", "pack", "create"}
SECONDS_BEFORE_LOOKS = (0.0, 1.0, 3.0, 8.0)
"""A batch that was made need not be listed at once."""


class _Drafted(NamedTuple):
    messages: list[dict[str, str]]
    line: bytes


class Steps:
    """One run's batches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._drafts: dict[str, dict[str, _Drafted]] = {}
        self._dropped: dict[str, list[str]] = {}
        self._contents: dict[str, bytes] = {}
        self._worst: dict[str, dict[str, float]] = {}

    async def take(self, judge: Judge, step: str, words: Told) -> Told:
        """Take a step; if it fails, tell the error, and stop the judge if it cannot be asked."""
        steps: dict[str, Callable[..., Awaitable[Told]]] = {
            "draft": self.draft,
            "pack": self.pack,
            "create": self.create,
            "find": self.find,
            "look": self.look,
            "collect": self.collect,
        }
        try:
            return await steps[step](judge, **words)
        except CallError as error:
            fault = error
        except Exception as error:  # noqa: BLE001 - else the flow would wait for ever
            text = f"{type(error).__name__}: {error}"
            text = redact(text, PROVIDERS[judge.provider].provider.secret_variables)[:500]
            fault = CallError(text, passing=False, free=False)
        # A batch that cannot be read says nothing of the next one.
        stops = not fault.passing and (step in ASKING or words.get("stop", False))
        text = self._engine.stop(judge, str(fault)) if stops else str(fault)
        return {"fault": text, "passing": fault.passing, "free": fault.free}

    async def draft(self, judge: Judge, ballots: list[Told]) -> Told:
        """Write the lines of ballots, as single calls would send them."""
        provider = PROVIDERS[judge.provider].provider
        self._require(judge)
        drafts = self._drafts.setdefault(judge.judge, {})
        for ballot in ballots:
            messages, ballot_id = ballot["messages"], ballot["ballot_id"]
            body, self._dropped[judge.judge] = await batches.request_body(
                provider, judge, messages, ballot["params"]
            )
            drafts[ballot_id] = _Drafted(messages, batches.request_line(ballot_id, body))
        return {}

    async def pack(self, judge: Judge, drafted: int) -> Told:
        """Put the drafted ballots that fit under the budget into files; tell which are too many.

        Where some of the ``drafted`` are missing, the process that had them died.
        """
        drafts = self._drafts.pop(judge.judge, {})
        if len(drafts) != drafted:
            return {"lost": True}
        worst: dict[str, float] = {}
        reason = None
        for ballot_id, draft in drafts.items():
            try:
                provider = PROVIDERS[judge.provider].provider
                worst[ballot_id] = self._engine.take(provider, judge, draft.messages)
            except BudgetError as error:
                reason = f"not asked: {error}"
                break
        packed = []
        for part in batches.split({ballot_id: drafts[ballot_id].line for ballot_id in worst}):
            batch = uuid4().hex
            self._contents[batch] = b"".join(drafts[ballot_id].line for ballot_id in part)
            self._worst[batch] = {ballot_id: worst[ballot_id] for ballot_id in part}
            packed.append({"batch": batch, "ballots": part})
        dropped = self._dropped.pop(judge.judge, [])
        return {
            "packed": packed,
            "left": [ballot_id for ballot_id in drafts if ballot_id not in worst],
            "reason": reason,
            "dropped_params": json.dumps(dropped) if dropped else None,
        }

    async def create(self, judge: Judge, batch: str) -> Told:
        """Bring a file to the provider and have it answered; return the id of the batch.

        Where it is not known whether the provider took it, it is looked for before it is tried
        again: nothing is paid twice.
        """
        provider = PROVIDERS[judge.provider].provider
        content = self._contents.pop(batch, None)
        if content is None:
            # The process that packed it died before it was told to send it.
            return {"provider_batch": None}
        try:
            self._require(judge)
            file = await _patiently(
                provider.attempts, partial(batches.upload, provider, judge, batch, content)
            )
        except CallError as error:
            self._release(batch)
            raise CallError(str(error), passing=error.passing) from error
        tried = 0

        async def try_to_create() -> str:
            nonlocal tried
            tried += 1
            known = await _find_patiently(provider, judge, batch) if tried > 1 else None
            return known or await batches.create(provider, judge, batch, file)

        try:
            return {"provider_batch": await _patiently(provider.attempts, try_to_create)}
        except CallError as error:
            if error.free and tried == 1:
                self._release(batch)
                raise
            raise CallError(str(error), passing=error.passing, free=False) from error

    async def find(self, judge: Judge, batch: str, *, fresh: bool = False) -> Told:
        """Return the provider's id of a batch that may have been made; null if it was not.

        One that may be ``fresh`` is looked for several times.
        """
        provider = PROVIDERS[judge.provider].provider
        look = _find_patiently if fresh else batches.find
        found = await _patiently(provider.attempts, partial(look, provider, judge, batch))
        return {"provider_batch": found}

    async def look(self, judge: Judge, provider_batch: str) -> Told:
        """Return how far a batch has come."""
        provider = PROVIDERS[judge.provider].provider
        seen = await _patiently(
            provider.attempts, partial(batches.look, provider, judge, provider_batch)
        )
        return seen._asdict()

    async def collect(
        self, judge: Judge, batch: str, seen: Told, ballots: list[str], *, stop: bool
    ) -> Told:
        """Return the replies of a batch that has ended.

        Raises
        ------
        CallError
            If the provider refused the whole batch, and the judge is to ``stop`` then.
        """
        provider = PROVIDERS[judge.provider].provider
        ended = batches.Seen(**seen)
        contents = [
            await _patiently(provider.attempts, partial(batches.download, provider, judge, file))
            for file in ended.files
        ]
        came = batches.replies(provider, judge, ended, contents, ballots)
        self._settle(batch, {b: reply.cost_usd for b, reply in came.items() if not reply.error})
        if stop and ended.state == "failed":
            reason = f"its batch {ended.provider_batch} failed: {ended.error or 'no reason given'}"
            raise CallError(reason, passing=False)
        return {"replies": {ballot_id: reply._asdict() for ballot_id, reply in came.items()}}

    def _require(self, judge: Judge) -> None:
        if reason := self._engine.reason(judge):
            raise CallError(reason, passing=False)

    def _settle(self, batch: str, costs: dict[str, float | None]) -> None:
        """Replace the worst case of each ballot by its cost; one without a reply costs nothing."""
        for ballot_id, worst in self._worst.pop(batch, {}).items():
            cost = costs.get(ballot_id, 0.0)
            self._engine.settle(worst, worst if cost is None else cost)

    def _release(self, batch: str) -> None:
        self._settle(batch, {})


async def _find_patiently(provider: Provider, judge: Judge, batch: str) -> str | None:
    """Return the provider's id of a batch; null if it was not made, as far as one can tell."""
    for seconds in SECONDS_BEFORE_LOOKS:
        await asyncio.sleep(seconds)
        if found := await batches.find(provider, judge, batch):
            return found
    return None


async def _patiently(attempts: int, work: Callable[[], Awaitable[T]]) -> T:
    """Do what may fail by chance, again if it does."""
    attempt = 1
    while True:
        try:
            return await work()
        except CallError as error:
            too_long = (error.retry_after or 0) > LONGEST_RETRY_AFTER_SECONDS
            if not error.passing or attempt == attempts or too_long:
                raise
            await asyncio.sleep(wait_seconds(attempt, error.retry_after))
            attempt += 1
