"""Retry opening a database file that another process has locked, and report the wait."""

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from warehouse._lock_holder import Holder, holder_of
from warehouse._saving import WarehouseError

FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.25
NOTICE_SECONDS = 5.0
"""A longer wait is reported once."""


class WarehouseBusyError(WarehouseError):
    """Another process kept the file locked for longer than this one waits."""

    exit_code = 1

    @classmethod
    def of(cls, path: Path, holder: Holder, seconds: float) -> Self:
        """Name the process that holds the lock, and the next step."""
        return cls(
            f"{path} was {holder} for more than the {seconds:g} s that this command waits. "
            f"{holder.advice}. Then run again."
        )


class LockedError(Exception):
    """The file is locked now."""


class LockNotices:
    """Report a long lock once, however many threads wait for the file."""

    def __init__(self, path: Path, tell: Callable[[str], None] | None) -> None:
        self._path, self._tell = path, tell or _print
        self._since: float | None = None
        self._notified = False
        self._lock = threading.Lock()

    def met(self, error: str, patience_seconds: float) -> None:
        """Record that the file was locked; report it if that has lasted long."""
        with self._lock:
            now = time.monotonic()
            self._since = now if self._since is None else self._since
            if self._notified or now - self._since < NOTICE_SECONDS:
                return
            self._notified = True
        holder = holder_of(self._path, error)
        self._tell(
            f"{self._path} is {holder}. Waiting up to {patience_seconds:g} s. {holder.advice}."
        )

    def free(self) -> None:
        """Record that the file could be opened; report the end of a reported lock."""
        with self._lock:
            since, notified = self._since, self._notified
            self._since, self._notified = None, False
        if notified and since is not None:
            self._tell(f"{self._path} is free again, after {time.monotonic() - since:.0f} s.")


class LockRetry:
    """Retries of one visit, with growing pauses until the time is up."""

    def __init__(self, path: Path, seconds: float, notices: LockNotices) -> None:
        self._path, self._seconds, self._notices = path, seconds, notices
        self._until = time.monotonic() + seconds
        self._pause = FIRST_PAUSE_SECONDS

    def wait(self, error: str) -> None:
        """Wait before the next try.

        Raises
        ------
        WarehouseBusyError
            If the time is up.
        """
        self._notices.met(error, self._seconds)
        if time.monotonic() >= self._until:
            raise WarehouseBusyError.of(self._path, holder_of(self._path, error), self._seconds)
        left = self._until - time.monotonic()
        time.sleep(min(self._pause * random.uniform(0.5, 1.5), max(left, 0.0)))  # noqa: S311 - jitter, not secrecy
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)


def _print(text: str) -> None:
    sys.stderr.write(f"voirdire: {text}\n")
    sys.stderr.flush()
