"""When a request may be sent: a slot is held from then until its answer, not while it is made."""

import sys
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from tasks.providers._reply import CallError


class Door:
    """One attempt's way to the provider: entered as the request is sent, left with its answer."""

    def __init__(self, wait: Callable[[], Awaitable[None]], free: Callable[[], None]) -> None:
        self._wait, self._free = wait, free
        self._entered_at: float | None = None
        self.seconds: float | None = None
        """How long the provider took."""
        self.refusal: Exception | None = None
        """Why the request was not sent."""

    async def enter(self) -> None:
        """Wait until the request may be sent.

        Raises
        ------
        CallError
            If it was sent before: who counts the attempts must see each of them.
        """
        if self._entered_at is not None:
            self.refusal = CallError(_cause(), passing=True, free=False)
            raise self.refusal
        try:
            await self._wait()
        except Exception as refusal:
            self.refusal = refusal
            raise
        self._entered_at = time.perf_counter()

    def leave(self) -> None:
        """Let the next one in; once is enough."""
        if self._entered_at is not None and self.seconds is None:
            self.seconds = time.perf_counter() - self._entered_at
            self._free()


def _cause() -> str:
    error = sys.exception()
    return f"{type(error).__name__}: {error}" if error else "the request would be sent twice"


door_of_call: ContextVar[Door | None] = ContextVar("door_of_call", default=None)


async def _at_request(_: Any) -> None:
    if door := door_of_call.get():
        await door.enter()


async def _at_response(response: Any) -> None:
    if door := door_of_call.get():
        await response.aread()
        door.leave()


HOOKS: dict[str, list[Callable[..., object]]] = {
    "request": [_at_request],
    "response": [_at_response],
}
"""For an httpx client, whose calls pass the door of their context."""
