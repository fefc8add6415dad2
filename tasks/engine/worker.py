"""The worker process that makes the calls: requests in, replies out, one JSON object a line.

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
from typing import Any, BinaryIO, NoReturn

from tasks.engine.batch_steps import Steps
from tasks.engine.client import call
from tasks.engine.journal import Journal
from tasks.engine.litellm_adapter import load_litellm
from tasks.engine.queue import Engine
from tasks.engine.redaction import redact
from tasks.engine.reply import Reply
from tasks.kit.memory import share_one_heap
from tasks.providers import PROVIDERS, Judge


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
