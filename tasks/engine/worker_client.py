"""The flow's side of the worker process: start it, send requests, restart it if it dies."""

import asyncio
import atexit
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tasks.engine.journal import CallError, Reply, read_journal
from tasks.engine.litellm_adapter import worker_environment
from tasks.kit.exit_codes import ExitCode
from tasks.kit.printable import redact
from tasks.providers import Judge

Json = dict[str, Any]
Notify = Callable[[str], None]
WORKER = ("-m", "tasks.engine.worker")
"""Arguments of Python that start the worker."""

RESTARTS_IN_A_ROW = 3
"""Number of restarts of a worker that dies before it has answered anything."""

RESTARTS = 20
"""Number of restarts in one run: after each, the requests in flight are sent and paid again."""

FIRST_WAIT_SECONDS = 0.5
"""Pause before a restart; each further one in a row waits twice as long."""

STATEFUL_STEPS = {"draft", "pack", "create"}
"""Steps of a batch that need what the worker keeps in memory from earlier steps."""


class WorkerAnswer(NamedTuple):
    """The worker's answer to a request: a reply with its time, or the result of a batch step."""

    reply: Reply
    cast_at: datetime | None
    result: Json | None = None


class WorkerEndedError(Exception):
    """The worker ended before it answered the request ``number``."""

    def __init__(self, number: str, reason: str) -> None:
        super().__init__(reason)
        self.number = number


class WorkerError(RuntimeError):
    """The worker dies again and again, so that nothing can be asked."""

    exit_code = ExitCode.FAILED


class DraftsLostError(Exception):
    """The worker was restarted and has lost the drafts of a batch."""


class Session:
    """One run's use of the worker, which is restarted if it dies.

    It has its own limits, stops and budget. ``notify`` is called, in another thread, with the
    reason if nothing moves for a while.
    """

    def __init__(
        self,
        worker: "Worker",
        run: str = "",
        journal: Path | None = None,
        budget_usd: float | None = None,
        notify: Notify | None = None,
    ) -> None:
        self.run, self.notify = run, notify
        self._journal, self._budget_usd = journal, budget_usd
        self.committed_usd = 0.0
        """The highest possible cost of all calls so far."""
        self.waits: dict[str, str] = {}
        """What providers wait for now."""
        self._restarting = asyncio.Lock()
        self._restarts = self._in_a_row = 0
        self._journaled: dict[str, WorkerAnswer] = {}
        """Replies that a dead worker had journaled and not sent, by the request's number."""
        self._connect(worker)

    async def ask(
        self, judge: Judge, messages: list[dict[str, str]], params: Json, ballot_id: str
    ) -> WorkerAnswer:
        """Send one request and wait for its reply; ``params`` are added to the judge's own.

        Raise WorkerError if the worker dies again and again.
        """
        request = {
            "do": "ask",
            "run": self.run,
            "judge": judge.judge,
            "messages": messages,
            "params": params,
        }
        return await self._answer(judge, request, ballot_id)

    def close(self) -> None:
        """End the session, and the worker, which holds 170 MB, if no other session uses it."""
        self._worker.sessions.discard(self)
        if self._worker.sessions:
            self._worker.send({"do": "end", "run": self.run})
        else:
            self._worker.stop()

    async def batch(self, judge: Judge, step: str, **arguments: Any) -> Json:
        """Run a step of a batch (``BatchSteps`` in ``worker.py``) and return its result.

        Raises
        ------
        CallError
            If it failed.
        DraftsLostError
            If the worker died during a step that needs those before it.
        WorkerError
            If the worker dies again and again.
        """
        request = {"do": "batch", "run": self.run, "judge": judge.judge, "step": step}
        answer = await self._answer(
            judge, {**request, "arguments": arguments}, step, resend=step not in STATEFUL_STEPS
        )
        if answer.result is None:
            raise CallError(answer.reply.error or "no result", transient=True, free=False)
        if "failure" in answer.result:
            raise CallError(answer.result.pop("failure"), **answer.result)
        return answer.result

    async def _answer(
        self, judge: Judge, request: Json, name: str, *, resend: bool = True
    ) -> WorkerAnswer:
        """Return the answer to a request; ``resend`` it after a restart."""
        while True:
            worker = self._worker
            self._add_judge(judge)
            try:
                answer = await worker.request(request, name)
            except WorkerEndedError as ended:
                await self._restart(worker, str(ended))
                if journaled := self._journaled.pop(ended.number, None):
                    return journaled
                if not resend:
                    raise DraftsLostError(str(ended)) from ended
            else:
                self._in_a_row = 0
                return answer

    async def _restart(self, dead: "Worker", reason: str) -> None:
        """Start a new worker, unless another request has done so."""
        async with self._restarting:
            if self._worker is not dead:
                return
            if self._in_a_row == RESTARTS_IN_A_ROW or self._restarts == RESTARTS:
                raise WorkerError(
                    f"{reason}. It was restarted {self._restarts} times, the last "
                    f"{self._in_a_row} without an answer. Earlier results stand, and every reply "
                    "received is kept. Code -9 usually means that memory ran out (see the "
                    "system log); otherwise correct the error named first. Then run again"
                )
            await asyncio.sleep(FIRST_WAIT_SECONDS * 2**self._in_a_row)
            self._in_a_row += 1
            self._restarts += 1
            if self._journal:
                self._journaled |= await asyncio.to_thread(
                    _journaled, self._journal, dead.unanswered
                )
            unanswered = len(dead.unanswered - self._journaled.keys())
            if self.notify:
                self.notify(f"{reason}; restarted, {unanswered} requests are sent again")
            dead.sessions.discard(self)
            self._connect(shared_worker())

    def _connect(self, worker: "Worker") -> None:
        self._worker = worker
        self._known_judges: set[str] = set()
        worker.sessions.add(self)
        worker.send(
            {
                "do": "begin",
                "run": self.run,
                "budget_usd": self._budget_usd,
                "journal": None if self._journal is None else str(self._journal),
                "committed_usd": self.committed_usd,
            }
        )

    def _add_judge(self, judge: Judge) -> None:
        if judge.judge not in self._known_judges:
            self._known_judges.add(judge.judge)
            self._worker.send({"do": "judge", "run": self.run, "judge": judge.model_dump()})


def _read_answer(line: Json) -> WorkerAnswer:
    """Read a reply as the worker writes it, without its ``id``."""
    return WorkerAnswer(cast_at=datetime.fromisoformat(line.pop("cast_at")), reply=Reply(**line))


def _journaled(journal: Path, numbers: set[str]) -> dict[str, WorkerAnswer]:
    """Return the replies in a journal to the requests of these numbers."""
    if not journal.exists():
        # The worker died before it created one.
        return {}
    lines, _ = read_journal(journal)
    return {
        number: _read_answer(line) for line in lines if (number := line.pop("id", "")) in numbers
    }


class Worker:
    """A worker process. It is started at once and stopped with this process."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, *WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=worker_environment(),
            start_new_session=True,
        )
        self.sessions: set[Session] = set()
        self._waiting: dict[str, asyncio.Future[WorkerAnswer]] = {}
        self._read_all = False
        self.unanswered: set[str] = set()
        """Numbers of the requests without an answer when the process ended."""
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        for target in (self._write, self._read):
            threading.Thread(target=target, daemon=True).start()
        atexit.register(self.stop)

    def load_litellm(self) -> None:
        """Let the worker import litellm now, which takes seconds, not with the first request."""
        self.send({"do": "load"})

    def send(self, request: Json) -> None:
        """Send a request that has no answer."""
        self._outbox.put(json.dumps(request).encode() + b"\n")

    async def request(self, request: Json, ballot_id: str) -> WorkerAnswer:
        """Send a request and wait for its answer.

        Raise WorkerEndedError if the process ends before it has answered.
        """
        # A ballot may be asked by two runs of this process, and again after a restart.
        number = f"{ballot_id}/{next(_numbers)}"
        future: asyncio.Future[WorkerAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.send({**request, "id": number})
        # Answers that arrived before the process ended come first.
        if self._read_all:
            self._fail_all()
        return await future

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Stop the process; requests without an answer are dropped."""
        self._outbox.put(None)
        self._process.terminate()
        self._process.wait(timeout=10)

    def _write(self) -> None:
        pipe = self._process.stdin
        while pipe and (line := self._outbox.get()) is not None:
            try:
                pipe.write(line)
                # Send a single line at once, and many lines together.
                if self._outbox.empty():
                    pipe.flush()
            except BrokenPipeError:
                return

    def _read(self) -> None:
        try:
            for line in self._process.stdout or ():
                try:
                    self._receive(line)
                except (AttributeError, KeyError, TypeError, ValueError):
                    # A process that dies while it writes leaves a part of a line. If it lives,
                    # the request that was answered by this line would wait for ever.
                    self._process.terminate()
        finally:
            # Also if reading failed while the process lives.
            self._process.terminate()
            self._process.wait()
            self._read_all = True
            self._fail_all()

    def _receive(self, line: bytes) -> None:
        message = json.loads(line)
        if "run" in message:
            self._forward(**message)
            return
        number = message.pop("id")
        if "result" in message:
            answer = WorkerAnswer(Reply(""), None, message["result"])
        else:
            answer = _read_answer(message)
        # The waiting request is removed only when the whole line could be read.
        self._resolve(self._waiting.pop(number), answer)

    def _forward(
        self,
        run: str,
        notice: str | None = None,
        committed_usd: float | None = None,
        waits: dict[str, str] | None = None,
    ) -> None:
        for session in list(self.sessions):
            if session.run != run:
                continue
            if committed_usd is not None:
                session.committed_usd = committed_usd
            if waits is not None:
                session.waits = waits
            if notice is not None and session.notify:
                session.notify(notice)

    def _fail_all(self) -> None:
        code = self._process.returncode
        reason = f"the worker process ended with code {code}: {self._last_error()}"
        # Two threads may get here at once; each future goes to one of them.
        self.unanswered |= self._waiting.keys()
        for number in list(self._waiting):
            if future := self._waiting.pop(number, None):
                self._resolve(future, WorkerEndedError(number, reason))

    def _last_error(self) -> str:
        """Return the last line of the process's standard error."""
        file = self._errors
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        lines = file.read().decode(errors="backslashreplace").splitlines()
        return redact(lines[-1])[:500] if lines else "no error message"

    @staticmethod
    def _resolve(
        future: asyncio.Future[WorkerAnswer], answer: WorkerAnswer | WorkerEndedError
    ) -> None:
        loop = future.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_set, future, answer)


def _set(future: asyncio.Future[WorkerAnswer], answer: WorkerAnswer | WorkerEndedError) -> None:
    # The waiting task may have been cancelled.
    if future.done():
        return
    if isinstance(answer, WorkerEndedError):
        future.set_exception(answer)
    else:
        future.set_result(answer)


_numbers = count()
_workers: list[Worker] = []
_starting = threading.Lock()


def shared_worker() -> Worker:
    """Return this process's worker; start it on first use, or after it died."""
    with _starting:
        if not _workers or not _workers[0].alive:
            _workers[:] = [Worker()]
        return _workers[0]
