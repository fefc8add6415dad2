"""Replies, errors, and the journal that keeps replies on disk until the warehouse has them."""

import asyncio
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """The reply to one request, or the error that ended its attempts."""

    text: str
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    seconds: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    attempts: int = 1
    dropped_params: str | None = None
    """Parameters that were left out because the model does not support them, as JSON."""
    first_token: str | None = None
    first_probability: float | None = None
    """Probability of the first token, if the provider reports log probabilities."""
    error: str | None = None
    """Why there is no reply; null if there is one."""


class CallError(Exception):
    """A call that failed."""

    def __init__(
        self,
        text: str,
        *,
        transient: bool,
        retry_after: float | None = None,
        free: bool = True,
        unreadable: bool = False,
        unreached: bool = False,
    ) -> None:
        super().__init__(text)
        self.transient = transient
        """Whether another attempt may succeed."""
        self.retry_after = retry_after
        """Seconds to wait, as requested by the provider."""
        self.free = free
        """Whether the provider certainly does not charge for it, because it refused the request."""
        self.unreadable = unreadable
        """Whether a complete response arrived that is not a completion."""
        self.unreached = unreached
        """Whether no connection could be made, so that nothing was sent."""


SECONDS_BETWEEN_SYNCS = 1.0


class Journal:
    """Append replies to a file.

    A written reply survives a crash of the process at once, and a power failure after a second.
    Methods raise ``OSError`` if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._file = _open(path)
        self._unsynced = False
        size = os.fstat(self._file).st_size
        if size == 0:
            for folder in (path.parent, path.parent.parent):
                _sync_folder(folder)
        elif os.pread(self._file, 1, size - 1) != b"\n":
            # The last line was cut off by a crash or a full disk.
            self._append(b"\n")

    def write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        self._append(json.dumps(line).encode() + b"\n")

    def sync(self) -> None:
        """Flush to the disk, so that written lines survive a power failure."""
        self._unsynced = False
        os.fsync(self._file)

    async def keep_syncing(self) -> None:
        """Flush to the disk each second, until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_SYNCS)
            if self._unsynced:
                self._unsynced = False
                await asyncio.to_thread(os.fsync, self._file)

    def close(self) -> None:
        """Close the file and release its lock."""
        os.close(self._file)

    def _append(self, line: bytes) -> None:
        self._unsynced = True
        # An almost full disk may accept only a part.
        while line:
            line = line[os.write(self._file, line) :]


def read_journal(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the lines, and the number of unreadable ones (cut off, or filled with zeros)."""
    lines = []
    unreadable = 0
    with path.open("rb") as file:
        for line in file:
            read = parsed(line)
            if isinstance(read, dict):
                lines.append(read)
            elif line.strip():
                unreadable += 1
    return lines, unreadable


@contextmanager
def exclusive_lock(path: Path) -> Iterator[bool]:
    """Lock a journal against writers; yield false if one has it open.

    Raise FileNotFoundError if another process has just saved and removed it.
    """
    with path.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield os.path.samestat(os.fstat(file.fileno()), path.stat())


def _open(path: Path) -> int:
    """Open a journal with a shared lock: several writers are allowed, and nobody may remove it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            return file
        # It was removed in the meantime.
        os.close(file)


def _sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that the names of its new files are durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems do not support this for folders.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)


def parsed(line: bytes) -> Any:
    """Return the value of a line of JSON; None if it is not valid JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
