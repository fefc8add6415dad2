"""Replies on disk as they arrive, until they are in the warehouse."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS_BETWEEN_SYNCS = 1.0


class Journal:
    """A file to which replies are appended: what is written survives the process at once.

    It survives the machine's power a second later.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._unsynced = False

    def write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        os.write(self._file, json.dumps(line).encode() + b"\n")
        self._unsynced = True

    async def keep_syncing(self) -> None:
        """Flush to the disk each second, until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_SYNCS)
            if self._unsynced:
                self._unsynced = False
                await asyncio.to_thread(os.fsync, self._file)


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Read what was written; the last line may be cut."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)
