"""The process that makes the calls: requests in, replies out, one JSON object a line.

A process of its own, so that importing litellm (seconds) and calling (milliseconds of CPU each) run
beside the flow's own work. It ends when its standard input does, so also when its parent is killed.
"""

import asyncio
import json
import os
import sys
from typing import Any, BinaryIO

from tasks.providers import PROVIDERS
from tasks.providers._client import complete


async def main() -> None:
    """Serve requests until standard input ends."""
    out = _replies()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**30)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    limits = {name: asyncio.Semaphore(PROVIDERS[name].provider.concurrency) for name in PROVIDERS}
    running: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        request = json.loads(line)
        task = asyncio.create_task(_serve(request, limits[request["provider"]], out))
        running.add(task)
        task.add_done_callback(running.discard)


async def _serve(request: dict[str, Any], limit: asyncio.Semaphore, out: BinaryIO) -> None:
    provider = PROVIDERS[request["provider"]].provider
    async with limit:
        outcome = await complete(provider, request["model"], request["messages"], request["params"])
    reply = {"id": request["id"], **outcome._asdict()}
    out.write(json.dumps(reply).encode() + b"\n")
    out.flush()


def _replies() -> BinaryIO:
    """Take standard output for the replies alone; what a library prints goes to the errors."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


if __name__ == "__main__":
    asyncio.run(main())
