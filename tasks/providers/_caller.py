"""The flow's side of the calling process."""

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

from tasks.providers import Judge
from tasks.providers._redact import redact
from tasks.providers._reply import CallError, Reply


class Told(NamedTuple):
    """A reply, and when it came."""

    reply: Reply
    cast_at: datetime | None
    done: dict[str, Any] | None = None
    """What came of a step with a batch, instead of a reply."""


Notify = Callable[[str], None]
WORKER = ("-m", "tasks.providers._worker")
"""What the calling process runs."""


class Line:
    """One run's line to the calling process."""

    def __init__(self, caller: "Caller", run: str, notify: Notify | None = None) -> None:
        self._caller, self.run = caller, run
        self._met: set[str] = set()
        self.notify = notify

    @property
    def cut_off(self) -> bool:
        """Whether the calling process ended before its time: a journal may hold more than came."""
        return self._caller.cut_off

    async def ask(
        self, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any], ballot_id: str
    ) -> Told:
        """Send one request and wait for its reply; ``params`` join those of the judge."""
        self._meet(judge)
        return await self._caller.ask(
            {"do": "ask", "run": self.run, "judge": judge.judge, "messages": messages,
             "params": params}, ballot_id,
        )  # fmt: skip

    def hang_up(self) -> None:
        """End the calling process if no other line to it is open: it holds 170 MB."""
        self._caller.lines.discard(self)
        if self._caller.lines:
            self._caller.send({"do": "end", "run": self.run})
        else:
            self._caller.stop()

    async def batch(self, judge: Judge, step: str, **words: Any) -> dict[str, Any]:
        """Take a step with a batch (``_batch_steps.py``) and return what came of it.

        Raises
        ------
        CallError
            If it failed.
        """
        self._meet(judge)
        request = {"do": "batch", "run": self.run, "judge": judge.judge, "step": step}
        told = await self._caller.ask({**request, "words": words}, step)
        if told.done is None:
            raise CallError(told.reply.error or "nothing was told", passing=True, free=False)
        if "fault" in told.done:
            raise CallError(told.done.pop("fault"), **told.done)
        return told.done

    def _meet(self, judge: Judge) -> None:
        if judge.judge not in self._met:
            self._met.add(judge.judge)
            self._caller.send({"do": "meet", "run": self.run, "judge": judge.model_dump()})


class Caller:
    """A process that makes calls, started at once and stopped with this one."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, *WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        self.lines: set[Line] = set()
        self._waiting: dict[str, asyncio.Future[Told]] = {}
        self._heard_all = False
        self.cut_off = False
        """Whether somebody waited in vain: the reply may be in the journal alone."""
        self._numbers = count()
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
        path = None if journal is None else str(journal)
        self.send({"do": "begin", "run": run, "journal": path, "budget_usd": budget_usd})
        line = Line(self, run, notify)
        self.lines.add(line)
        return line

    def send(self, request: dict[str, Any]) -> None:
        """Send a line that is not answered."""
        self._outbox.put(json.dumps(request).encode() + b"\n")

    async def ask(self, request: dict[str, Any], ballot_id: str) -> Told:
        """Send a line and wait for what is told."""
        # The same ballot may be asked by two runs of one process.
        number = f"{ballot_id}/{next(self._numbers)}"
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
        if "notice" in told:
            self._pass_on(**told)
            return
        number = told.pop("id")
        if "done" in told:
            self._tell(self._waiting.pop(number), Told(Reply(""), None, told["done"]))
            return
        reply = Told(cast_at=datetime.fromisoformat(told.pop("cast_at")), reply=Reply(**told))
        self._tell(self._waiting.pop(number), reply)

    def _pass_on(self, run: str, notice: str) -> None:
        for line in list(self.lines):
            if line.run == run and line.notify:
                line.notify(notice)

    def _fail_all(self) -> None:
        error = f"the calling process ended with code {self._process.returncode}: {self._last()}"
        # Two threads may get here at once; each future goes to one of them.
        for number in list(self._waiting):
            if future := self._waiting.pop(number, None):
                self.cut_off |= not future.done()
                self._tell(future, Told(Reply("", error=error), None))

    def _last(self) -> str:
        """Return the last line that the process complained with."""
        file = self._errors
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        lines = file.read().decode(errors="backslashreplace").splitlines()
        return redact(lines[-1])[:500] if lines else "it said nothing"

    @staticmethod
    def _tell(future: asyncio.Future[Told], told: Told) -> None:
        loop = future.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, future, told)


def _resolve(future: asyncio.Future[Told], told: Told) -> None:
    # Whoever waited may have been cancelled.
    if not future.done():
        future.set_result(told)


_callers: list[Caller] = []
_starting = threading.Lock()


def caller() -> Caller:
    """Return this process's caller, starting it on first use or after it died."""
    with _starting:
        if not _callers or not _callers[0].alive:
            _callers[:] = [Caller()]
        return _callers[0]
