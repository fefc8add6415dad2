"""Retry opening a database file that another process has locked, and name that process."""

import random
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from warehouse._saving import WarehouseError

DOING = {"READ": " for reading", "WRITE": " for writing", None: ""}
LONGEST_NAME = 80


class Holder(NamedTuple):
    """A process that keeps a database file locked."""

    pid: int | None
    command: str
    """Program and script, without arguments, which may hold secrets."""
    mode: str | None
    """READ or WRITE; null if the system does not say."""

    @property
    def ours(self) -> bool:
        """Whether it is a command of this project."""
        return bool(re.search(r"\bvoirdire\b|\bflows\.\w+|\bbooth\b", self.command))

    def __str__(self) -> str:
        """Return the middle of a sentence: "held open by process 7 (python x.py) for reading"."""
        if self.pid is None:
            return "held open by another process"
        name = f" ({self.command})" if self.command else ""
        return f"held open by process {self.pid}{name}{DOING[self.mode]}"

    @property
    def advice(self) -> str:
        """The next step, as a sentence without a full stop."""
        if self.ours:
            return "Wait until that command has ended"
        return (
            "Close that session. `voirdire sql` reads results without holding the file, and "
            "`voirdire snapshot` makes a copy for other tools"
        )


def holder_of(path: Path, error: str) -> Holder:
    """Return the process that holds a database file, from DuckDB's error and /proc/locks."""
    locks = _locks(path)
    pid = _named_in(error) or next(iter(locks), None)
    return Holder(pid, _command(pid) if pid else "", locks.get(pid) if pid else None)


def _named_in(error: str) -> int | None:
    said = re.search(r"PID (\d+)", error)
    return int(said[1]) if said else None


def _locks(path: Path) -> dict[int, str]:
    """Return the modes of the locks on a file by process; empty where there is no /proc."""
    try:
        inode = path.stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    # "1: POSIX  ADVISORY  READ 4711 08:01:1234 0 EOF"; waiting ones have an arrow.
    fields = [line.split() for line in lines if "->" not in line]
    return {
        int(pid): mode
        for _, _, _, mode, pid, place, *_ in fields
        if place.rsplit(":", 1)[-1] == str(inode) and int(pid) > 0
    }


def _command(pid: int) -> str:
    """Return a process's program and its script or module."""
    process = Path(f"/proc/{pid}")
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    named = [Path(words[0]).name]
    match words[1:]:
        case ["-m", module, *_]:
            named += ["-m", module]
        case [script, *_] if script.endswith(".py") or Path(script).name == "voirdire":
            named.append(Path(script).name)
    shown = " ".join(named)[:LONGEST_NAME]
    return "".join(c if c.isprintable() else "?" for c in shown)


FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.25
NOTICE_SECONDS = 5.0
"""A longer wait is reported, and reported again if another process has the file then."""


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
    """Report a long lock once for each holder, however many threads wait for the file."""

    def __init__(self, path: Path, tell: Callable[[str], None] | None) -> None:
        self._path, self._tell = path, tell or _print
        self._since: float | None = None
        self._reported: float | None = None
        """When the lock was reported last."""
        self._named: set[int | None] = set()
        self._lock = threading.Lock()

    def met(self, error: str, patience_seconds: float | None) -> None:
        """Record that the file was locked; report it if that has lasted long.

        ``patience_seconds`` is null if the caller tries again afterwards.
        """
        with self._lock:
            now = time.monotonic()
            self._since = now if self._since is None else self._since
            last = self._since if self._reported is None else self._reported
            if _named_in(error) in self._named or now - last < NOTICE_SECONDS:
                return
            self._named.add(_named_in(error))
            self._reported = now
        holder = holder_of(self._path, error)
        most = "" if patience_seconds is None else f" up to {patience_seconds:g} s"
        self._tell(f"{self._path} is {holder}. Waiting{most}. {holder.advice}.")

    def free(self) -> None:
        """Record that the file could be opened; report the end of a reported lock."""
        with self._lock:
            since, reported = self._since, self._reported
            self._since = self._reported = None
            self._named.clear()
        if reported is not None and since is not None:
            self._tell(f"{self._path} is free again, after {time.monotonic() - since:.0f} s.")


class LockRetry:
    """Retries of one visit, with growing pauses until the time is up.

    If the caller tries ``again`` after that, notices do not say how long it waits.
    """

    def __init__(self, path: Path, seconds: float, notices: LockNotices, *, again: bool) -> None:
        self._path, self._seconds, self._notices, self._again = path, seconds, notices, again
        self._until = time.monotonic() + seconds
        self._pause = FIRST_PAUSE_SECONDS

    def wait(self, error: str) -> None:
        """Wait before the next try.

        Raise WarehouseBusyError if the time is up.
        """
        self._notices.met(error, None if self._again else self._seconds)
        if time.monotonic() >= self._until:
            raise WarehouseBusyError.of(self._path, holder_of(self._path, error), self._seconds)
        left = self._until - time.monotonic()
        time.sleep(min(self._pause * random.uniform(0.5, 1.5), max(left, 0.0)))  # noqa: S311 - jitter, not secrecy
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)


def _print(text: str) -> None:
    line = f"voirdire: {text}"
    if sys.stderr.isatty():
        # As other messages: broken at spaces, paths whole.
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
