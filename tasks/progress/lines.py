"""Progress as lines, where there is no terminal: in a file, in CI, in the log of a flow run."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from tasks.progress import STARTING, Status, duration

SECONDS_BETWEEN_LINES = 60.0
TICK_SECONDS = 0.5


class Lines:
    """Writes a line at the start, at every tenth of the ballots or minute, and at the end.

    The start is the first step: a command that is used wrongly says that alone.
    """

    def __init__(self, status: Status, write: Callable[[str], None]) -> None:
        self._status, self._write = status, write
        self._tenths, self._started = 0, False
        self._written_at = status.clock()
        self._ended = threading.Event()
        self._ticking = threading.Thread(target=self._tick_on, daemon=True)

    def __enter__(self) -> Self:
        self._ticking.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # What failed says so itself.
        self.close(ended=error is None)

    def close(self, *, ended: bool = True) -> None:
        """Write the last line."""
        if self._ended.is_set():
            return
        self._ended.set()
        if ended:
            self._start()
            after = f"ended after {duration(self._status.seconds())}"
            self._write(f"{self._status.what}: {', '.join([after, *self._status.facts()])}")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing during the block."""
        yield

    def tick(self) -> None:
        """Write a line if another tenth of the ballots is done, or a minute has passed."""
        status, now = self._status, self._status.clock()
        if status.step == STARTING:
            return
        self._start()
        done, total = status.counts()
        tenths = 10 * done // total if total else 0
        if tenths > self._tenths or now - self._written_at >= SECONDS_BETWEEN_LINES:
            self._tenths, self._written_at = tenths, now
            parts = [status.step, *status.facts(), *status.waiting()]
            self._write(f"{status.what}: {', '.join(parts)}")

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._write(f"{self._status.what}: started")

    def _tick_on(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            self.tick()
