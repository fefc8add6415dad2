"""Connection limits of the booth: maximum number, and a time-out for slow requests."""

import asyncio
import resource
import time
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from tasks.kit.command_line import print_notice

MOST = 256
"""Maximum number of connections; a voter's browser holds one or two for seconds."""

SPARED = 32
"""File descriptors for the warehouse, the journal and what libraries open."""

LEAST = 4
RECEIVE_SECONDS = 10.0
"""Time-out from the opening of a connection, or a request's first byte, to its last byte."""

SECONDS_BETWEEN_NOTES = 60.0
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nretry-after: 5\r\n"
    b"content-length: 33\r\nconnection: close\r\n\r\nToo many connections. Try again.\n"
)


def most_connections() -> int:
    """Return how many connections the free file descriptors allow; each may also read a file."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = sum(1 for _ in Path("/proc/self/fd" if Path("/proc").is_dir() else "/dev/fd").iterdir())
    free = allowed - held
    return max(LEAST, min(MOST, (free - SPARED) // 2))


def bounded(most: int) -> type[H11Protocol]:
    """Return uvicorn's protocol, limited to so many connections."""

    class Bounded(H11Protocol):
        """Rejects connections above the limit, and closes slow ones."""

        _refused = False
        _clock: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            if len(self.connections) >= most:
                self._refused = True
                transport.write(FULL)
                transport.close()
                return
            super().connection_made(transport)
            self._clock = self.loop.call_later(RECEIVE_SECONDS, self._give_up)

        def data_received(self, data: bytes) -> None:
            if self._refused:
                return
            super().data_received(data)
            cycle = self.cycle
            whole = cycle is not None and not cycle.more_body and not cycle.response_complete
            if whole and self._clock:
                self._clock.cancel()
                self._clock = None
            elif not whole and self._clock is None:
                self._clock = self.loop.call_later(RECEIVE_SECONDS, self._give_up)

        def eof_received(self) -> None:
            if not self._refused:
                super().eof_received()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._clock:
                self._clock.cancel()
            if not self._refused:
                super().connection_lost(exc)

        def _give_up(self) -> None:
            self._clock = None
            self.transport.abort()

    return Bounded


class LogOnceAMinute:
    """Prints an error of the event loop in one line, at most once a minute."""

    def __init__(self) -> None:
        self._printed: dict[str, float] = {}

    def __call__(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an error that asyncio would print with a traceback for each connection."""
        error = context.get("exception")
        text = f"{context.get('message', 'an error')}: {error}" if error else context["message"]
        now = time.monotonic()
        if now - self._printed.get(text, -SECONDS_BETWEEN_NOTES) >= SECONDS_BETWEEN_NOTES:
            self._printed = {text: now}
            print_notice(f"{text}. The booth continues.")
