"""How long is waited for a database file that another process holds, and who is told."""

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from warehouse._holder import Holder, holder_of
from warehouse._saving import WarehouseError

FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.25
NOTICE_SECONDS = 5.0
"""Whoever waits longer than this is told why."""


class WarehouseBusyError(WarehouseError):
    """Another process held the file open for longer than this one waits."""

    exit_code = 1

    @classmethod
    def of(cls, path: Path, holder: Holder, seconds: float) -> Self:
        """Name the holder, and what to do."""
        return cls(
            f"{path} was {holder}, longer than the {seconds:g} s that are waited for it. "
            f"{holder.advice}. Then run again."
        )


class LockedError(Exception):
    """The file is locked now."""


class Busy:
    """Tells once for each time that a file is held open for long, whoever waits for it."""

    def __init__(self, path: Path, tell: Callable[[str], None] | None) -> None:
        self._path, self._tell = path, tell or _print
        self._since: float | None = None
        self._told = False
        self._lock = threading.Lock()

    def met(self, error: str, patience_seconds: float) -> None:
        """Note that the file was locked."""
        with self._lock:
            now = time.monotonic()
            self._since = now if self._since is None else self._since
            if self._told or now - self._since < NOTICE_SECONDS:
                return
            self._told = True
        holder = holder_of(self._path, error)
        self._tell(
            f"{self._path} is {holder}; waiting for it, up to {patience_seconds:g} s. "
            f"{holder.advice}."
        )

    def free(self) -> None:
        """Note that the file could be opened."""
        with self._lock:
            since, told = self._since, self._told
            self._since, self._told = None, False
        if told and since is not None:
            self._tell(f"{self._path} is free again, after {time.monotonic() - since:.0f} s.")


class Patience:
    """The tries of one visit."""

    def __init__(self, path: Path, seconds: float, busy: Busy) -> None:
        self._path, self._seconds, self._busy = path, seconds, busy
        self._until = time.monotonic() + seconds
        self._pause = FIRST_PAUSE_SECONDS

    def wait(self, error: str) -> None:
        """Wait a moment before the next try.

        Raises
        ------
        WarehouseBusyError
            If that was the last one.
        """
        self._busy.met(error, self._seconds)
        if time.monotonic() >= self._until:
            raise WarehouseBusyError.of(self._path, holder_of(self._path, error), self._seconds)
        left = self._until - time.monotonic()
        time.sleep(min(self._pause * random.uniform(0.5, 1.5), max(left, 0.0)))  # noqa: S311 - jitter, not secrecy
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)


def _print(text: str) -> None:
    sys.stderr.write(f"voirdire: {text}\n")
    sys.stderr.flush()
