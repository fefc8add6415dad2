"""The run's side of the worker process."""

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
from tasks.kit.printable import redact
from tasks.providers import Judge


class Told(NamedTuple):
    """A reply, and when it came."""

    reply: Reply
    cast_at: datetime | None
    done: dict[str, Any] | None = None
    """What came of a step with a batch, instead of a reply."""


def told_of(line: dict[str, Any]) -> Told:
    """Read a reply as the calling process writes it, without its ``id``."""
    return Told(cast_at=datetime.fromisoformat(line.pop("cast_at")), reply=Reply(**line))


Notify = Callable[[str], None]
WORKER = ("-m", "tasks.engine.worker")
"""What the calling process runs."""

RESTARTS_IN_A_ROW = 3
"""Of a calling process that dies before it has answered anything."""

RESTARTS = 20
"""In one run: each death repeats, and pays again, what was in flight."""

FIRST_WAIT_SECONDS = 0.5
"""Before a restart; each further one in a row waits twice as long."""


STATEFUL_STEPS = {"draft", "pack", "create"}
"""Steps with a batch that rest on what the calling process remembers of the steps before."""


class EndedError(Exception):
    """The calling process ended before it answered the request ``number``."""

    def __init__(self, number: str, reason: str) -> None:
        super().__init__(reason)
        self.number = number


class WorkerError(RuntimeError):
    """The calling process keeps dying, so that nothing can be asked."""

    exit_code = 1


class DraftsLostError(Exception):
    """The calling process was restarted and remembers no drafted batch."""


class Line:
    """One run's line to the calling process, which is started anew if it dies."""

    def __init__(
        self,
        caller: "Caller",
        run: str,
        journal: Path | None = None,
        budget_usd: float | None = None,
        notify: Notify | None = None,
    ) -> None:
        self.run, self.notify = run, notify
        self._journal, self._budget_usd = journal, budget_usd
        self.committed_usd = 0.0
        """The most that the calls begun so far can have cost."""
        self._restarting = asyncio.Lock()
        self._restarts = self._in_a_row = 0
        self._kept: dict[str, Told] = {}
        """Replies that a dead process had journaled and not told, by the request's number."""
        self._connect(caller)

    async def ask(
        self, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any], ballot_id: str
    ) -> Told:
        """Send one request and wait for its reply; ``params`` join those of the judge.

        Raises
        ------
        WorkerError
            If the calling process keeps dying.
        """
        request = {
            "do": "ask",
            "run": self.run,
            "judge": judge.judge,
            "messages": messages,
            "params": params,
        }
        return await self._answer(judge, request, ballot_id)

    def hang_up(self) -> None:
        """End the calling process if no other line to it is open: it holds 170 MB."""
        self._caller.lines.discard(self)
        if self._caller.lines:
            self._caller.send({"do": "end", "run": self.run})
        else:
            self._caller.stop()

    async def batch(self, judge: Judge, step: str, **words: Any) -> dict[str, Any]:
        """Take a step with a batch (``Steps`` in ``worker.py``) and return what came of it.

        Raises
        ------
        CallError
            If it failed.
        DraftsLostError
            If the calling process died during a step that rests on those before it.
        WorkerError
            If the calling process keeps dying.
        """
        request = {"do": "batch", "run": self.run, "judge": judge.judge, "step": step}
        told = await self._answer(
            judge, {**request, "words": words}, step, again=step not in STATEFUL_STEPS
        )
        if told.done is None:
            raise CallError(told.reply.error or "nothing was told", passing=True, free=False)
        if "fault" in told.done:
            raise CallError(told.done.pop("fault"), **told.done)
        return told.done

    async def _answer(
        self, judge: Judge, request: dict[str, Any], name: str, *, again: bool = True
    ) -> Told:
        """Return the answer to a request; one that a dead process left is sent ``again``."""
        while True:
            caller = self._caller
            self._meet(judge)
            try:
                told = await caller.ask(request, name)
            except EndedError as ended:
                await self._restart(caller, str(ended))
                if kept := self._kept.pop(ended.number, None):
                    return kept
                if not again:
                    raise DraftsLostError(str(ended)) from ended
            else:
                self._in_a_row = 0
                return told

    async def _restart(self, dead: "Caller", reason: str) -> None:
        """Start the calling process anew, unless another request has done so."""
        async with self._restarting:
            if self._caller is not dead:
                return
            if self._in_a_row == RESTARTS_IN_A_ROW or self._restarts == RESTARTS:
                raise WorkerError(
                    f"{reason}. It was restarted {self._restarts} times, the last "
                    f"{self._in_a_row} without an answer. Earlier results stay, and every reply "
                    "that came is kept. See to the cause (memory?) and run again"
                )
            await asyncio.sleep(FIRST_WAIT_SECONDS * 2**self._in_a_row)
            self._in_a_row += 1
            self._restarts += 1
            if self._journal:
                self._kept |= await asyncio.to_thread(_journaled, self._journal, dead.unanswered)
            unanswered = len(dead.unanswered - self._kept.keys())
            if self.notify:
                self.notify(f"{reason}; restarted, {unanswered} requests are sent again")
            dead.lines.discard(self)
            self._connect(caller())

    def _connect(self, caller: "Caller") -> None:
        self._caller = caller
        self._met: set[str] = set()
        caller.lines.add(self)
        caller.send(
            {
                "do": "begin",
                "run": self.run,
                "budget_usd": self._budget_usd,
                "journal": None if self._journal is None else str(self._journal),
                "committed_usd": self.committed_usd,
            }
        )

    def _meet(self, judge: Judge) -> None:
        if judge.judge not in self._met:
            self._met.add(judge.judge)
            self._caller.send({"do": "meet", "run": self.run, "judge": judge.model_dump()})


def _journaled(journal: Path, numbers: set[str]) -> dict[str, Told]:
    """Return the replies to the requests of these numbers that are in a journal."""
    if not journal.exists():
        # The process died before it had one.
        return {}
    lines, _ = read_journal(journal)
    return {number: told_of(line) for line in lines if (number := line.pop("id", "")) in numbers}


class Caller:
    """A process that makes calls, started at once and stopped with this one."""

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
        self.lines: set[Line] = set()
        self._waiting: dict[str, asyncio.Future[Told]] = {}
        self._heard_all = False
        self.unanswered: set[str] = set()
        """Numbers of the requests that the process left when it ended."""
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        for target in (self._write, self._read):
            threading.Thread(target=target, daemon=True).start()
        atexit.register(self.stop)

    def begin(
        self,
        run: str = "",
        journal: Path | None = None,
        budget_usd: float | None = None,
        notify: Notify | None = None,
    ) -> Line:
        """Open a line for a run, with limits, stops and a budget of its own.

        ``notify`` is told, in another thread, why nothing moves for a while.
        """
        return Line(self, run, journal, budget_usd, notify)

    def load_litellm(self) -> None:
        """Import litellm at once, which takes seconds; otherwise the first real request does."""
        self.send({"do": "load"})

    def send(self, request: dict[str, Any]) -> None:
        """Send a line that is not answered."""
        self._outbox.put(json.dumps(request).encode() + b"\n")

    async def ask(self, request: dict[str, Any], ballot_id: str) -> Told:
        """Send a line and wait for what is told.

        Raises
        ------
        EndedError
            If the process ends before.
        """
        # The same ballot may be asked by two runs of one process, and again after a restart.
        number = f"{ballot_id}/{next(_numbers)}"
        future: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.send({**request, "id": number})
        # What the process said before it ended is told first.
        if self._heard_all:
            self._fail_all()
        return await future

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process; what it has not answered is given up."""
        self._outbox.put(None)
        self._process.terminate()
        self._process.wait(timeout=10)

    def _write(self) -> None:
        pipe = self._process.stdin
        while pipe and (line := self._outbox.get()) is not None:
            try:
                pipe.write(line)
                # A line alone is sent at once, many are sent together.
                if self._outbox.empty():
                    pipe.flush()
            except BrokenPipeError:
                return

    def _read(self) -> None:
        try:
            for line in self._process.stdout or ():
                try:
                    self._hear(line)
                except (AttributeError, KeyError, TypeError, ValueError):
                    # A process that dies in the middle of a line leaves a part; if it lives, whom
                    # the line was for would wait for ever.
                    self._process.terminate()
        finally:
            # Also where nobody hears it any more, though it lives.
            self._process.terminate()
            self._process.wait()
            self._heard_all = True
            self._fail_all()

    def _hear(self, line: bytes) -> None:
        told = json.loads(line)
        if "run" in told:
            self._pass_on(**told)
            return
        number = told.pop("id")
        if "done" in told:
            self._tell(self._waiting.pop(number), Told(Reply(""), None, told["done"]))
            return
        # Who waits is told when all of the line could be read.
        reply = told_of(told)
        self._tell(self._waiting.pop(number), reply)

    def _pass_on(
        self, run: str, notice: str | None = None, committed_usd: float | None = None
    ) -> None:
        for line in list(self.lines):
            if line.run != run:
                continue
            if committed_usd is not None:
                line.committed_usd = committed_usd
            if notice is not None and line.notify:
                line.notify(notice)

    def _fail_all(self) -> None:
        code = self._process.returncode
        reason = f"the calling process ended with code {code}: {self._last()}"
        # Two threads may get here at once; each future goes to one of them.
        self.unanswered |= self._waiting.keys()
        for number in list(self._waiting):
            if future := self._waiting.pop(number, None):
                self._tell(future, EndedError(number, reason))

    def _last(self) -> str:
        """Return the last line that the process complained with."""
        file = self._errors
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        lines = file.read().decode(errors="backslashreplace").splitlines()
        return redact(lines[-1])[:500] if lines else "it said nothing"

    @staticmethod
    def _tell(future: asyncio.Future[Told], told: Told | EndedError) -> None:
        loop = future.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, future, told)


def _resolve(future: asyncio.Future[Told], told: Told | EndedError) -> None:
    # Whoever waited may have been cancelled.
    if future.done():
        return
    if isinstance(told, EndedError):
        future.set_exception(told)
    else:
        future.set_result(told)


_numbers = count()
_callers: list[Caller] = []
_starting = threading.Lock()


def caller() -> Caller:
    """Return this process's caller, starting it on first use or after it died."""
    with _starting:
        if not _callers or not _callers[0].alive:
            _callers[:] = [Caller()]
        return _callers[0]
