"""The process that makes the calls: requests in, replies out, one JSON object a line.

A process of its own, so that importing litellm (seconds) and calling (milliseconds of CPU each) run
beside the flow's own work. It ends when its standard input does, so also when its parent is killed;
until then it keeps each reply in the run's journal before it tells it.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from tasks.providers import PROVIDERS, Judge
from tasks.providers._batch_steps import Steps
from tasks.providers._client import call, hang_up
from tasks.providers._engine import Engine
from tasks.providers._journal import Journal


class Run:
    """One run's engine and journal."""

    def __init__(self, budget_usd: float | None = None, journal: str | None = None) -> None:
        self.engine = Engine(call, budget_usd)
        self.journal = Journal(Path(journal)) if journal else None
        self.steps = Steps(self.engine)
        self.judges: dict[str, Judge] = {}
        self._syncing = asyncio.create_task(self.journal.keep_syncing()) if self.journal else None

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask, and keep what was replied."""
        judge = self.judges[request["judge"]]
        reply = await self.engine.ask(
            PROVIDERS[judge.provider].provider, judge, request["messages"], request["params"]
        )
        told = {
            "id": request["id"], **reply._asdict(), "cast_at": datetime.now(UTC).isoformat()
        }  # fmt: skip
        if self.journal and reply.error is None:
            self.journal.write(told)
        return told

    async def batch(self, request: dict[str, Any]) -> dict[str, Any]:
        """Take a step with a batch."""
        judge = self.judges[request["judge"]]
        done = await self.steps.take(judge, request["step"], request["words"])
        return {"id": request["id"], "done": done}


async def main() -> None:
    """Serve requests until standard input ends."""
    out = _replies()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**30)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    runs: dict[str, Run] = {}
    running: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        request = json.loads(line)
        match request.pop("do"):
            case "begin":
                name = request.pop("run")
                runs[name] = Run(**request)
            case "meet":
                judge = Judge(**request["judge"])
                runs[request["run"]].judges[judge.judge] = judge
            case verb:
                run = runs[request["run"]]
                work = run.batch(request) if verb == "batch" else run.ask(request)
                task = asyncio.create_task(_serve(work, out))
                running.add(task)
                task.add_done_callback(running.discard)
    await hang_up()


async def _serve(work: Awaitable[dict[str, Any]], out: BinaryIO) -> None:
    told = await work
    out.write(json.dumps(told).encode() + b"\n")
    out.flush()


def _replies() -> BinaryIO:
    """Take standard output for the replies alone; what a library prints goes to the errors."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


if __name__ == "__main__":
    asyncio.run(main())
