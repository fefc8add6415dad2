"""Reading an answer's body up to a limit: a body may be endless, or inflate to gigabytes."""

import zlib

import httpx

from tasks.providers._reply import CallError

ACCEPTED = "gzip, deflate"
"""Encodings that are asked for, since they can be inflated piece by piece."""

WINDOWS = {
    "": None, "identity": None, "gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16,
    "deflate": zlib.MAX_WBITS,
}  # fmt: skip


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
