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
    """What came of one request, with all its attempts."""

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
    """Parameters that the model does not take and that were left out, as JSON."""
    first_token: str | None = None
    first_probability: float | None = None
    """The chance of the first token, where the provider tells log probabilities."""
    error: str | None = None
    """Set if there is no reply; then nothing else counts."""


class CallError(Exception):
    """A call that brought no reply."""

    def __init__(
        self,
        text: str,
        *,
        passing: bool,
        retry_after: float | None = None,
        free: bool = True,
        unreadable: bool = False,
        unreached: bool = False,
    ) -> None:
        super().__init__(text)
        self.passing = passing
        """Whether it may be gone the next time."""
        self.retry_after = retry_after
        """Seconds that the provider asks to wait."""
        self.free = free
        """Whether the provider surely takes no money for it: it refused, it did not vanish."""
        self.unreadable = unreadable
        """Whether a whole answer came that is no completion."""
        self.unreached = unreached
        """Whether there was no connection, so that nothing was sent."""


SECONDS_BETWEEN_SYNCS = 1.0


class Journal:
    """A file to which replies are appended: what is written survives the process at once.

    It survives the machine's power a second later. What cannot be written is an ``OSError``.
    """

    def __init__(self, path: Path) -> None:
        self._file = _open(path)
        self._unsynced = False
        size = os.fstat(self._file).st_size
        if size == 0:
            for folder in (path.parent, path.parent.parent):
                _sync_folder(folder)
        elif os.pread(self._file, 1, size - 1) != b"\n":
            # The machine went down, or the disk was full, in the middle of a line.
            self._append(b"\n")

    def write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        self._append(json.dumps(line).encode() + b"\n")

    def sync(self) -> None:
        """Let what was written survive the machine's power too."""
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
        """Leave the file to whoever saves it."""
        os.close(self._file)

    def _append(self, line: bytes) -> None:
        self._unsynced = True
        # A disk that is almost full takes a part.
        while line:
            line = line[os.write(self._file, line) :]


def read_journal(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Read what was written, and count the lines that hold no reply: cut, or of zeros."""
    lines = []
    unreadable = 0
    with path.open("rb") as file:
        for line in file:
            read = _parsed(line)
            if isinstance(read, dict):
                lines.append(read)
            elif line.strip():
                unreadable += 1
    return lines, unreadable


@contextmanager
def alone_with(path: Path) -> Iterator[bool]:
    """Keep writers away from a journal; false while one is at it.

    Raises
    ------
    FileNotFoundError
        If somebody else has just saved and removed it.
    """
    with path.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield os.path.samestat(os.fstat(file.fileno()), path.stat())


def _open(path: Path) -> int:
    """Open a journal and hold it: several runs of one id may write, while nobody removes it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            return file
        # Whoever held it has removed it.
        os.close(file)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file in a folder as durable as its content."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems do not do this for folders.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
