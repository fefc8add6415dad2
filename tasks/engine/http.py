"""The HTTP transport: request slots, response bodies up to a limit, failed connections."""

import asyncio
import re
import socket
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import httpx

from tasks.engine.journal import CallError
from tasks.kit.printable import redact
from tasks.providers import Provider, api_base

MOST_BYTES = 2_000_000
"""Of an answer that passes no door, such as a list of batches."""


COST, ANY_COST = "x-litellm-response-cost", "1e-300"
"""Header by which litellm's proxy reports a cost; given one, litellm does not compute it, which
takes a third of the CPU time of a call. With 0 it would look for a reason."""


class Door:
    """One attempt's way to the provider: entered as the request is sent, left with its answer."""

    def __init__(self, wait: Callable[[], Awaitable[None]], free: Callable[[], None]) -> None:
        self._wait, self._free = wait, free
        self._entered_at: float | None = None
        self.seconds: float | None = None
        """How long the provider took."""
        self.refusal: Exception | None = None
        """Why the request was not sent, or not sent on."""
        self.came: tuple[int, bytes] | None = None
        """Status and body of the answer."""
        self.late = False
        """Whether the answer took too long."""
        self.most_bytes = MOST_BYTES
        """How large the answer may be, inflated."""
        self.needs_cost = True
        """Whether the cost that litellm computes is used."""
        self._clock: asyncio.Timeout | None = None
        self._allowed = 0.0

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Break off so long after the entry, unless the answer is there.

        The libraries underneath allow as much between two bytes, so one that drips never ends.
        """
        self._allowed = seconds
        clock = asyncio.timeout(None)
        try:
            async with clock:
                self._clock = clock
                yield
        finally:
            self._clock, self.late = None, clock.expired()

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
        if self._clock:
            self._clock.reschedule(asyncio.get_running_loop().time() + self._allowed)

    async def send(self, body: bytes) -> None:
        """Wait until the request with this body may be sent."""
        del body
        await self.enter()

    def leave(self) -> None:
        """Let the next one in; once is enough."""
        if self._entered_at is not None and self.seconds is None:
            self.seconds = time.perf_counter() - self._entered_at
            if self._clock and not self._clock.expired():
                self._clock.reschedule(None)
            self._free()


class Preview(Door):
    """A door that keeps the body of the request and lets nothing through."""

    def __init__(self) -> None:
        super().__init__(self._refuse, lambda: None)
        self.body: bytes | None = None

    async def send(self, body: bytes) -> None:
        """Keep the body.

        Raises
        ------
        CallError
            Always, so that nothing is sent.
        """
        self.body = body
        await self._refuse()

    async def _refuse(self) -> None:
        raise CallError("this request is not sent by itself", passing=False)


def _cause() -> str:
    error = sys.exception()
    return f"{type(error).__name__}: {error}" if error else "the request would be sent twice"


door_of_call: ContextVar[Door | None] = ContextVar("door_of_call", default=None)
most_bytes_of_call: ContextVar[int] = ContextVar("most_bytes_of_call", default=MOST_BYTES)


async def _at_request(request: Any) -> None:
    request.headers["accept-encoding"] = ACCEPTED
    if door := door_of_call.get():
        await door.send(request.content)


async def _at_response(response: Any) -> None:
    door = door_of_call.get()
    try:
        # Where httpx and litellm look for what was read.
        response._content = await read_bounded(  # noqa: SLF001
            response, door.most_bytes if door else most_bytes_of_call.get()
        )
    except CallError as refusal:
        if door:
            door.refusal = refusal
        raise
    if door:
        door.came = response.status_code, response.content
        door.leave()
        if not door.needs_cost:
            response.headers[COST] = ANY_COST
        if response.has_redirect_location:
            door.refusal = CallError(_redirect(response), passing=False)
            raise door.refusal


def _redirect(response: Any) -> str:
    """Say where to ask instead; without what a link may hold in secret."""
    try:
        target = response.url.join(response.headers["location"])
    except ValueError:
        where = "an address that is none"
    else:
        where = str(target.copy_with(userinfo=b"", query=None, fragment=None))
    return (
        f"{response.url.host} answers {response.status_code} and redirects to {where}. A judge is "
        "asked at one address only: give that one as api_base"
    )


HOOKS: dict[str, list[Callable[..., object]]] = {
    "request": [_at_request],
    "response": [_at_response],
}
"""For an httpx client, whose calls pass the door of their context."""


ACCEPTED = "gzip, deflate"
"""Encodings that are asked for, since they can be inflated piece by piece."""

WINDOWS = {
    "": None,
    "identity": None,
    "gzip": zlib.MAX_WBITS | 16,
    "x-gzip": zlib.MAX_WBITS | 16,
    "deflate": zlib.MAX_WBITS,
}


async def read_bounded(response: httpx.Response, most_bytes: int) -> bytes:
    """Read and inflate a body. Where that fails, httpx closes the connection.

    Raises
    ------
    CallError
        If it is larger than allowed, cannot be inflated, or comes in an encoding that nobody
        asked for.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in WINDOWS:
        raise _invalid(f"the reply is encoded as {encoding[:40]!r}, but {ACCEPTED} was asked for")
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most_bytes:
        raise _too_large(most_bytes)
    body = _Body(WINDOWS[encoding], most_bytes)
    try:
        async for part in response.aiter_raw():
            body.take(part)
    except zlib.error as error:
        raise _invalid(f"the reply cannot be inflated: {error}") from error
    return bytes(body.content)


class _Body:
    """What has come of a body, inflated."""

    def __init__(self, window: int | None, most_bytes: int) -> None:
        self.content = bytearray()
        self._window, self._most_bytes = window, most_bytes
        self._inflate = None if window is None else zlib.decompressobj(window)
        self._came = 0

    def take(self, part: bytes) -> None:
        """Add a part, but never much more than is allowed."""
        # What comes after the end of a compressed body counts too.
        self._came += len(part)
        if self._inflate is None:
            self.content += part
        while self._inflate and part and not self._inflate.eof:
            room = self._most_bytes - len(self.content) + 1
            try:
                self.content += self._inflate.decompress(part, room)
            except zlib.error:
                if self._window != zlib.MAX_WBITS or self._came > len(part):
                    raise
                # Some servers send what they call deflate without its head.
                self._window = -zlib.MAX_WBITS
                self._inflate = zlib.decompressobj(self._window)
                continue
            part = self._inflate.unconsumed_tail
            if len(self.content) > self._most_bytes:
                break
        if max(len(self.content), self._came) > self._most_bytes:
            raise _too_large(self._most_bytes)


def _too_large(most_bytes: int) -> CallError:
    return _invalid(
        f"the reply is larger than {most_bytes / 1e6:g} MB, so it was broken off "
        "(max_reply_bytes in its provider's file)"
    )


def _invalid(text: str) -> CallError:
    # It may be charged, and the next one may be another.
    return CallError(f"invalid reply: {text}", passing=True, free=False, unreadable=True)


NO_CONNECTION = re.compile(r"Cannot connect to host (?P<host>\S+) ssl:[^\[]* \[(?P<reason>.*?)\]")


"""As aiohttp says it, which litellm connects by and whose words it passes on."""


REFUSED = "Connect call failed"


"""How Python begins what it says of a connection that the other side, or the way there, refuses."""


SSL = re.compile(r" ssl:(<[^>]*>|\w+)")


def unreached(error: BaseException, provider: Provider) -> CallError | None:
    """Say who could not be reached, and why; null if the error is another one."""
    # Not at the top: `plan` and the start of an audit need other functions of this file.
    import httpx

    causes = list(_causes(error))
    # A gateway that answers may tell of a connection that it could not make itself.
    if any(isinstance(cause, httpx.HTTPStatusError) for cause in causes):
        return None
    for cause in causes:
        if found := _reason(cause):
            host, reason = found
            base = api_base(provider)
            known = f"{host} (api_base {base})" if host and base else host or base
            text = f"no connection to {known or 'the provider'}: {reason}"
            return CallError(
                redact(text, provider.secret_variables)[:500], passing=True, unreached=True
            )
    return None


def without_objects(text: str) -> str:
    """Leave out how Python prints what a connection is encrypted with."""
    return SSL.sub("", text)


def _reason(error: BaseException) -> tuple[str, str] | None:
    """Return who is named, if anybody is, and why there is no connection."""
    if found := NO_CONNECTION.search(str(error)):
        host, reason = found["host"], found["reason"]
        return host, "connection refused" if reason.startswith(REFUSED) else reason
    if isinstance(error, ConnectionRefusedError):
        return "", "connection refused"
    if isinstance(error, socket.gaierror):
        return "", error.strerror or str(error)
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it; of several attempts at once, the first."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__
