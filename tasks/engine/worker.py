"""The worker process that makes the calls: requests in, replies out, one JSON object a line.

They are small, so that the flow can record each in the warehouse before it takes the next: draft
ballots, pack them into files within the budget, create a batch of each, look at it until it has
ended, collect its replies; and find the batch of a run that was killed while it made it.

A process of its own, so that importing litellm (seconds) and calling (milliseconds of CPU each) run
beside the flow's own work. It ends when its standard input does, so also when its parent is killed;
until then it keeps each reply in the run's journal before it tells it.
"""

import asyncio
import errno
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeVar
from uuid import uuid4

from tasks.engine import batches
from tasks.engine.client import call
from tasks.engine.journal import CallError, Journal, Reply
from tasks.engine.limits import LONGEST_RETRY_AFTER_SECONDS, BudgetError
from tasks.engine.litellm_adapter import load_litellm
from tasks.engine.queue import Engine, wait_seconds
from tasks.kit.memory import share_one_heap
from tasks.kit.printable import redact
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


class Run:
    """One run's engine and journal."""

    def __init__(
        self,
        tell: Callable[..., None],
        budget_usd: float | None = None,
        journal: str | None = None,
        committed_usd: float = 0.0,
    ) -> None:
        self.engine = Engine(call, budget_usd, lambda text: tell(notice=text))
        # What a process before this one, which died, may have spent.
        self.engine.budget.spent = committed_usd
        self.engine.budget.tell = lambda usd: tell(committed_usd=usd)
        self.steps = Steps(self.engine)
        self._judges: dict[str, Judge] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._fault: str | None = None
        """Why replies cannot be kept, so that nobody is asked any more."""
        self._path = Path(journal or "")
        self._journal: Journal | None = None
        if journal:
            with self._keeping():
                self._journal = Journal(self._path)
                self._syncing = asyncio.create_task(self._keep_syncing(self._journal))

    def meet(self, judge: Judge) -> None:
        """Take in who is going to be asked."""
        self._judges[judge.judge] = judge
        if self._fault:
            self.engine.stop(judge, self._fault)

    def begin(self, verb: str, request: dict[str, Any], out: BinaryIO) -> None:
        """Begin to do what a request says; it is answered in any case."""
        work = self._batch(request) if verb == "batch" else self._ask(request)
        task = asyncio.create_task(_serve(request["id"], work, out))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def end(self) -> None:
        """Leave the journal to whoever saves it, as soon as the last reply is in it."""
        await asyncio.gather(*self._working)
        if self._journal:
            self._syncing.cancel()
            self._journal.close()

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask, and keep what was replied."""
        judge = self._judges[request["judge"]]
        reply = await self.engine.ask(
            PROVIDERS[judge.provider].provider, judge, request["messages"], request["params"]
        )
        told = _told(request["id"], reply)
        # What cannot be kept here is told all the same: the flow saves it.
        if self._journal and not self._fault and reply.error is None:
            with self._keeping():
                self._journal.write(told)
        return told

    async def _batch(self, request: dict[str, Any]) -> dict[str, Any]:
        """Take a step with a batch."""
        judge = self._judges[request["judge"]]
        done = await self.steps.take(judge, request["step"], request["words"])
        return {"id": request["id"], "done": done}

    async def _keep_syncing(self, journal: Journal) -> None:
        with self._keeping():
            await journal.keep_syncing()

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Ask nobody any more if replies cannot be kept: they may be lost after they are paid."""
        try:
            yield
        except OSError as error:
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            # The first cause counts: what cannot be written cannot be synced either.
            self._fault = self._fault or (
                f"the journal {self._path} cannot be written: {error.strerror or error}. "
                f"{'Free space' if full else 'Make it writable'} and run again"
            )
            for judge in self._judges.values():
                self.engine.stop(judge, self._fault)


async def main() -> None:
    """Serve requests until standard input ends."""
    out = _replies()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**30)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    runs: dict[str, Run] = {}
    ending: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        request = json.loads(line)
        verb, name = request.pop("do"), request.pop("run", "")
        match verb:
            case "begin":
                runs[name] = Run(partial(_tell, out, name), **request)
            case "load":
                load_litellm()
            case "meet":
                runs[name].meet(Judge(**request["judge"]))
            case "end":
                task = asyncio.create_task(runs.pop(name).end())
                ending.add(task)
                task.add_done_callback(ending.discard)
            case _:
                runs[name].begin(verb, request, out)
    _leave()


async def _serve(number: str, work: Awaitable[dict[str, Any]], out: BinaryIO) -> None:
    try:
        told = json.dumps(await work)
    except Exception as error:  # noqa: BLE001 - else the flow would wait for ever
        text = redact(f"{type(error).__name__}: {error}")[:500]
        told = json.dumps(_told(number, Reply("", error=text)))
    _write(out, told)


def _tell(out: BinaryIO, run: str, **words: Any) -> None:
    _write(out, json.dumps({"run": run, **words}))


def _leave() -> NoReturn:
    """End at once: nobody listens any more, and the next run waits for the journal.

    What came is in there; to close connections and to unload litellm would take seconds.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _write(out: BinaryIO, line: str) -> None:
    out.write(line.encode() + b"\n")
    out.flush()


def _told(number: str, reply: Reply) -> dict[str, Any]:
    return {"id": number, **reply._asdict(), "cast_at": datetime.now(UTC).isoformat()}


def _replies() -> BinaryIO:
    """Take standard output for the replies alone; what a library prints goes to the errors."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


if __name__ == "__main__":
    share_one_heap()
    asyncio.run(main())
