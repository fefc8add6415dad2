"""The flow's side of the calling process."""

import asyncio
import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future
from itertools import count
from typing import Any, NamedTuple

from tasks.providers import Judge


class Reply(NamedTuple):
    """What came of a request; see ``_client.Outcome``."""

    text: str
    model: str | None
    fingerprint: str | None
    finish_reason: str | None
    seconds: float
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    attempts: int
    error: str | None


class Caller:
    """A process that makes calls, started at once and stopped with this one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tasks.providers._worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        self._waiting: dict[int, Future[Reply]] = {}
        self._numbers = count()
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        for target in (self._write, self._read):
            threading.Thread(target=target, daemon=True).start()
        atexit.register(self.stop)

    async def ask(
        self, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any]
    ) -> Reply:
        """Send one request and wait for its reply."""
        number = next(self._numbers)
        future: Future[Reply] = Future()
        # So that it cannot be cancelled: whoever waits may go, the reader must not stumble over it.
        future.set_running_or_notify_cancel()
        self._waiting[number] = future
        request = {
            "id": number,
            "provider": judge.provider,
            "model": judge.model,
            "messages": messages,
            "params": params,
        }
        self._outbox.put(json.dumps(request).encode() + b"\n")
        if not self.alive:
            self._fail_all()
        reply = await asyncio.wrap_future(future)
        if judge.usd_per_million is None or reply.error is not None:
            return reply
        cost = judge.usd_per_million.cost(reply.prompt_tokens, reply.completion_tokens)
        return reply._replace(cost_usd=cost)

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
                pipe.flush()
            except BrokenPipeError:
                return

    def _read(self) -> None:
        for line in self._process.stdout or ():
            reply = json.loads(line)
            self._waiting.pop(reply.pop("id")).set_result(Reply(**reply))
        self._process.wait()
        self._fail_all()

    def _fail_all(self) -> None:
        error = (
            f"the calling process ended with code {self._process.returncode}; "
            "`python -m tasks.providers._worker` shows why"
        )
        nothing = Reply("", None, None, None, 0.0, None, None, None, 1, error)
        # Two threads may get here at once; each future goes to one of them.
        for number in list(self._waiting):
            if future := self._waiting.pop(number, None):
                future.set_result(nothing)


_callers: list[Caller] = []
_starting = threading.Lock()


def caller() -> Caller:
    """Return this process's caller, starting it on first use or after it died."""
    with _starting:
        if not _callers or not _callers[0].alive:
            _callers[:] = [Caller()]
        return _callers[0]
