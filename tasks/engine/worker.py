"""The worker process, which calls the providers: requests in, replies out, one JSON object a line.

It is a process of its own so that importing litellm (seconds) and calling it (milliseconds of CPU
time each) run beside the flow's work. It ends when its standard input does, so also when its parent
is killed. Each reply is in the run's journal before it is sent.
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

Json = dict[str, Any]
T = TypeVar("T")
SENDING_STEPS = {"draft", "pack", "create"}
SECONDS_BEFORE_SEARCHES = (0.0, 1.0, 3.0, 8.0)
SECONDS_BETWEEN_REPORTS = 1.0
"""A batch that was just created may not be listed yet."""


class _Draft(NamedTuple):
    messages: list[dict[str, str]]
    line: bytes


class BatchSteps:
    """The batches of one run, in steps so small that the flow can record each in the warehouse.

    Draft ballots, pack them into files within the budget, create a batch of each file, poll its
    status until it has ended, and collect its replies. ``find`` looks for the batch of a run that
    was killed while it was created.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._drafts: dict[str, dict[str, _Draft]] = {}
        self._dropped: dict[str, list[str]] = {}
        self._contents: dict[str, bytes] = {}
        self._worst: dict[str, dict[str, float]] = {}

    async def run(self, judge: Judge, step: str, arguments: Json) -> Json:
        """Run a step. If it fails, return the error; stop the judge if it cannot be asked."""
        steps = (self.draft, self.pack, self.create, self.find, self.status, self.collect)
        named: dict[str, Callable[..., Awaitable[Json]]] = {s.__name__: s for s in steps}
        try:
            return await named[step](judge, **arguments)
        except CallError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - otherwise the flow would wait for ever
            text = f"{type(error).__name__}: {error}"
            text = redact(text, PROVIDERS[judge.provider].provider.secret_variables)[:500]
            failure = CallError(text, transient=False, free=False)
        # A batch that cannot be read does not mean that the next one cannot be sent.
        stops = not failure.transient and (step in SENDING_STEPS or arguments.get("stop", False))
        text = self._engine.stop(judge, str(failure)) if stops else str(failure)
        return {"failure": text, "transient": failure.transient, "free": failure.free}

    async def draft(self, judge: Judge, ballots: list[Json]) -> Json:
        """Write the lines of ballots, with the bodies that single calls would send."""
        provider = PROVIDERS[judge.provider].provider
        self._require_not_stopped(judge)
        drafts = self._drafts.setdefault(judge.judge, {})
        for ballot in ballots:
            messages, ballot_id = ballot["messages"], ballot["ballot_id"]
            body, self._dropped[judge.judge] = await batches.request_body(
                provider, judge, messages, ballot["params"]
            )
            drafts[ballot_id] = _Draft(messages, batches.request_line(ballot_id, body))
        return {}

    async def pack(self, judge: Judge, drafted: int) -> Json:
        """Pack the drafted ballots that fit into the budget; return the files and the rest.

        If fewer than ``drafted`` are there, the process that drafted them died.
        """
        drafts = self._drafts.pop(judge.judge, {})
        if len(drafts) != drafted:
            return {"lost": True}
        worst: dict[str, float] = {}
        reason = None
        for ballot_id, draft in drafts.items():
            try:
                provider = PROVIDERS[judge.provider].provider
                worst[ballot_id] = self._engine.reserve_now(provider, judge, draft.messages)
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

    async def create(self, judge: Judge, batch: str) -> Json:
        """Upload a file and create its batch; return the provider's id.

        If it is unknown whether the provider created it, it is looked for before another attempt,
        so that nothing is paid for twice.
        """
        provider = PROVIDERS[judge.provider].provider
        content = self._contents.pop(batch, None)
        if content is None:
            # The process that packed it died before it was asked to send it.
            return {"provider_batch": None}
        try:
            self._require_not_stopped(judge)
            file = await _with_retries(
                provider.attempts, partial(batches.upload, provider, judge, batch, content)
            )
        except CallError as error:
            self._settle(batch, {})
            raise CallError(str(error), transient=error.transient) from error
        attempts = 0

        async def try_to_create() -> str:
            nonlocal attempts
            attempts += 1
            known = await _find_repeatedly(provider, judge, batch) if attempts > 1 else None
            return known or await batches.create(provider, judge, batch, file)

        try:
            return {"provider_batch": await _with_retries(provider.attempts, try_to_create)}
        except CallError as error:
            if error.free and attempts == 1:
                self._settle(batch, {})
                raise
            raise CallError(str(error), transient=error.transient, free=False) from error

    async def find(self, judge: Judge, batch: str, *, fresh: bool = False) -> Json:
        """Return the provider's id of a batch that may exist; null if it does not.

        A batch that may be ``fresh`` is looked for several times.
        """
        provider = PROVIDERS[judge.provider].provider
        search = _find_repeatedly if fresh else batches.find
        found = await _with_retries(provider.attempts, partial(search, provider, judge, batch))
        return {"provider_batch": found}

    async def status(self, judge: Judge, provider_batch: str) -> Json:
        """Return the state of a batch."""
        provider = PROVIDERS[judge.provider].provider
        status = await _with_retries(
            provider.attempts, partial(batches.status_of, provider, judge, provider_batch)
        )
        return status._asdict()

    async def collect(
        self, judge: Judge, batch: str, status: Json, ballots: list[str], *, stop: bool
    ) -> Json:
        """Return the replies of a batch that has ended.

        Raise CallError if the provider refused the whole batch, and the judge is to ``stop`` in
        that case.
        """
        provider = PROVIDERS[judge.provider].provider
        ended = batches.BatchStatus(**status)
        contents = [
            await _with_retries(provider.attempts, partial(batches.download, provider, judge, file))
            for file in ended.files
        ]
        found = batches.replies(provider, judge, ended, contents, ballots)
        self._settle(batch, {b: reply.cost_usd for b, reply in found.items() if not reply.error})
        if stop and ended.state == "failed":
            reason = f"its batch {ended.provider_batch} failed: {ended.error or 'no reason given'}"
            raise CallError(reason, transient=False)
        return {"replies": {ballot_id: reply._asdict() for ballot_id, reply in found.items()}}

    def _require_not_stopped(self, judge: Judge) -> None:
        if reason := self._engine.reason(judge):
            raise CallError(reason, transient=False)

    def _settle(self, batch: str, costs: dict[str, float | None]) -> None:
        """Replace each ballot's reserved amount by its cost; a ballot without a reply is free."""
        for ballot_id, worst in self._worst.pop(batch, {}).items():
            cost = costs.get(ballot_id, 0.0)
            self._engine.budget.settle(worst, worst if cost is None else cost)


async def _find_repeatedly(provider: Provider, judge: Judge, batch: str) -> str | None:
    """Return the provider's id of a batch; null if it is not listed after several searches."""
    for seconds in SECONDS_BEFORE_SEARCHES:
        await asyncio.sleep(seconds)
        if found := await batches.find(provider, judge, batch):
            return found
    return None


async def _with_retries(attempts: int, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work; after a transient error try again."""
    attempt = 1
    while True:
        try:
            return await work()
        except CallError as error:
            too_long = (error.retry_after or 0) > LONGEST_RETRY_AFTER_SECONDS
            if not error.transient or attempt == attempts or too_long:
                raise
            await asyncio.sleep(wait_seconds(attempt, error.retry_after))
            attempt += 1


class Run:
    """The engine and the journal of one run."""

    def __init__(
        self,
        send: Callable[..., None],
        budget_usd: float | None = None,
        journal: str | None = None,
        committed_usd: float = 0.0,
    ) -> None:
        self.engine = Engine(call, budget_usd, lambda text: send(notice=text))
        # What an earlier worker process, which died, may have spent.
        self.engine.budget.spent = committed_usd
        self.engine.budget.report = lambda usd: send(committed_usd=usd)
        self._send, self._waits = send, dict[str, str]()
        self._reporting = asyncio.create_task(self._keep_reporting())
        self.steps = BatchSteps(self.engine)
        self._judges: dict[str, Judge] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._journal_error: str | None = None
        """Why replies cannot be journaled, so that no judge is asked any more."""
        self._path = Path(journal or "")
        self._journal: Journal | None = None
        if journal:
            with self._journal_errors():
                self._journal = Journal(self._path)
                self._syncing = asyncio.create_task(self._keep_syncing(self._journal))

    def add_judge(self, judge: Judge) -> None:
        """Register a judge that will be asked."""
        self._judges[judge.judge] = judge
        if self._journal_error:
            self.engine.stop(judge, self._journal_error)

    def start(self, verb: str, request: Json, out: BinaryIO) -> None:
        """Start to work on a request, which is answered in any case."""
        work = self._batch(request) if verb == "batch" else self._ask(request)
        task = asyncio.create_task(_answer(request["id"], work, out))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def end(self) -> None:
        """Release the journal as soon as the last reply is in it."""
        await asyncio.gather(*self._working)
        self._reporting.cancel()
        if self._journal:
            self._syncing.cancel()
            self._journal.close()

    async def _ask(self, request: Json) -> Json:
        """Ask a judge, and journal its reply."""
        judge = self._judges[request["judge"]]
        reply = await self.engine.ask(
            PROVIDERS[judge.provider].provider, judge, request["messages"], request["params"]
        )
        answer = _answer_line(request["id"], reply)
        # A reply that cannot be journaled is sent all the same: the flow saves it.
        if self._journal and not self._journal_error and reply.error is None:
            with self._journal_errors():
                self._journal.write(answer)
        return answer

    async def _batch(self, request: Json) -> Json:
        """Run a step of a batch."""
        judge = self._judges[request["judge"]]
        result = await self.steps.run(judge, request["step"], request["arguments"])
        return {"id": request["id"], "result": result}

    async def _keep_reporting(self) -> None:
        """Report each second what providers wait for, if it has changed."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_REPORTS)
            if (waits := self.engine.waits()) != self._waits:
                self._waits = waits
                self._send(waits=waits)

    async def _keep_syncing(self, journal: Journal) -> None:
        with self._journal_errors():
            await journal.keep_syncing()

    @contextmanager
    def _journal_errors(self) -> Iterator[None]:
        """Stop all judges if the journal cannot be written: replies that are paid could be lost."""
        try:
            yield
        except OSError as error:
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            # Keep the first cause: what cannot be written cannot be synced either.
            self._journal_error = self._journal_error or (
                f"the journal {self._path} cannot be written: {error.strerror or error}. "
                f"{'Free space' if full else 'Make it writable'} and run again"
            )
            for judge in self._judges.values():
                self.engine.stop(judge, self._journal_error)


async def main() -> None:
    """Serve requests until standard input ends."""
    out = _reply_stream()
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
                # The user may have changed them since an earlier run of this process.
                PROVIDERS.read_own()
                runs[name] = Run(partial(_send, out, name), **request)
            case "load":
                load_litellm()
            case "judge":
                runs[name].add_judge(Judge(**request["judge"]))
            case "end":
                task = asyncio.create_task(runs.pop(name).end())
                ending.add(task)
                task.add_done_callback(ending.discard)
            case _:
                runs[name].start(verb, request, out)
    _exit()


async def _answer(number: str, work: Awaitable[Json], out: BinaryIO) -> None:
    try:
        line = json.dumps(await work)
    except Exception as error:  # noqa: BLE001 - otherwise the flow would wait for ever
        text = redact(f"{type(error).__name__}: {error}")[:500]
        line = json.dumps(_answer_line(number, Reply("", error=text)))
    _write(out, line)


def _send(out: BinaryIO, run: str, **message: Any) -> None:
    """Send a message of a run that answers no request."""
    _write(out, json.dumps({"run": run, **message}))


def _exit() -> NoReturn:
    """Exit at once: the next run waits for the journal, and all replies are in it.

    Closing connections and unloading litellm would take seconds.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _write(out: BinaryIO, line: str) -> None:
    out.write(line.encode() + b"\n")
    out.flush()


def _answer_line(number: str, reply: Reply) -> Json:
    return {"id": number, **reply._asdict(), "cast_at": datetime.now(UTC).isoformat()}


def _reply_stream() -> BinaryIO:
    """Reserve standard output for replies; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


if __name__ == "__main__":
    share_one_heap()
    asyncio.run(main())
