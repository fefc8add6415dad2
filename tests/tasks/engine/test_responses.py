"""What comes through the slot, from a server that speaks bytes; through litellm itself."""

import asyncio
import json
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from functools import cache

import pytest
from provider_clients import close_clients

from tasks.engine.client import call
from tasks.engine.journal import Reply
from tasks.engine.queue import Engine
from tasks.providers import Judge, Provider

# litellm and what it builds on warn about each other, which is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")
ROUTES = ["openai", "hosted_vllm", "cohere_chat"]
MESSAGES = [{"role": "user", "content": "Which one?"}]
Writer = asyncio.StreamWriter


async def _drip(writer: Writer) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    for _ in range(40):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.2)


async def _redirect(writer: Writer) -> None:
    target = b"https://ada:secret@judges.example/v2/chat/completions?key=secret"
    writer.write(b"HTTP/1.1 307 Moved\r\nlocation: " + target + b"\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()


HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]no[/]\r\nvoirdire: all is well \u202e\x00"
REFUSALS = {
    "invalid_api_key": b"401 Unauthorized",
    "model_not_found": b"404 Not Found",
    "content_policy_violation": b"400 Bad Request",
    "context_length_exceeded": b"400 Bad Request",
}


def _refuse(code: str, *, raw: bool) -> Callable[[Writer], Awaitable[None]]:
    """Refuse in hostile words, as a provider's JSON or, against its rules, as they are."""

    async def refuse(writer: Writer) -> None:
        reported = json.dumps({"error": {"message": HOSTILE, "code": code}})
        body = (HOSTILE if raw else reported).encode()
        head = b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n" % (REFUSALS[code], len(body))
        writer.write(head + body)
        await writer.drain()

    return refuse


async def _ask(
    route: str, answer: Callable[[Writer], Awaitable[None]], number: int = 1, **limits: float
) -> tuple[list[Reply], int]:
    """Ask a server that answers so; return the replies and how often it was asked."""
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        try:
            await answer(writer)
        except ConnectionError:
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    provider, engine = Provider.model_validate({"api_base": base, **limits}), Engine(call)
    judge = Judge(judge="stub/one", provider="stub", model=f"{route}/stub")
    try:
        asks = (engine.ask(provider, judge, MESSAGES, {}) for _ in range(number))
        return await asyncio.gather(*asks), asked
    finally:
        await close_clients()
        server.close()


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_an_answer_that_drips_takes_no_longer_than_allowed(route: str) -> None:
    limits = {"attempts": 1, "timeout_seconds": 1, "concurrency": 1}
    replies, asked = asyncio.run(_ask(route, _drip, 3, **limits))
    said = "Timeout: the complete response took longer than timeout_seconds allows"
    assert [reply.error for reply in replies] == [said] * 3
    assert asked == 3


@pytest.mark.parametrize("route", ROUTES)
def test_a_redirect_stops_the_judge_and_names_the_address(route: str) -> None:
    (reply,), asked = asyncio.run(_ask(route, _redirect))
    assert reply.error == (
        "stub/one stopped: 127.0.0.1 answers 307 and redirects to "
        "https://judges.example/v2/chat/completions. Redirects are not followed: "
        "give the target as api_base"
    )
    assert (reply.attempts, asked) == (1, 1)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("code", REFUSALS)
def test_a_permanent_error_stops_its_judge_and_its_words_do_nothing(
    code: str, raw: bool, route: str
) -> None:
    (reply,), asked = asyncio.run(_ask(route, _refuse(code, raw=raw)))
    error = reply.error or ""
    assert (reply.attempts, asked) == (1, 1)
    assert error.startswith("stub/one stopped: ")
    assert "[bold red]no[/]" in error
    assert "all is well" in error
    assert error.isprintable()


BLANKS = b" " * 2**20
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def _sent(part: bytes, head: bytes, taken: list[int]) -> Callable[[Writer], Awaitable[None]]:
    """Send a part again and again, at most 200 MB, and note how much of it was taken."""

    async def send(writer: Writer) -> None:
        taken.append(0)
        writer.write(HEAD + head + b"\r\n")
        for _ in range(200 * 2**20 // len(part)):
            writer.write(part)
            await writer.drain()
            taken[-1] += len(part)

    return send


@cache
def _bomb() -> bytes:
    """Return 300 MB of blanks, compressed."""
    packed = zlib.compressobj(wbits=31)
    return b"".join([*(packed.compress(BLANKS) for _ in range(300)), packed.flush()])


def _finite(body: bytes, head: bytes) -> Callable[[Writer], Awaitable[None]]:
    async def send(writer: Writer) -> None:
        writer.write(HEAD + head + b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    return send


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "head", [b"", b"content-length: 999999999999\r\n"], ids=["endless", "long"]
)
def test_a_body_that_is_too_large_is_broken_off(route: str, head: bytes) -> None:
    taken: list[int] = []
    (reply,), asked = asyncio.run(_ask(route, _sent(BLANKS, head, taken), pause_seconds=0.01))
    assert "invalid reply: the reply is larger than 2 MB" in (reply.error or "")
    # it may be chance, so it is tried three times, not ten
    assert (asked, reply.attempts) == (3, 3)
    # two megabytes and what the buffers of both sides hold
    assert max(taken) < 30 * 2**20


@pytest.mark.parametrize("route", ROUTES)
def test_a_body_that_inflates_is_broken_off(route: str) -> None:
    bomb = _finite(_bomb(), b"content-encoding: gzip\r\n")
    # What this route imports with its first request is no part of the reply.
    asyncio.run(_ask(route, _redirect))
    tracemalloc.start()
    (reply,), asked = asyncio.run(_ask(route, bomb, pause_seconds=0.01))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "invalid reply: the reply is larger than 2 MB" in (reply.error or "")
    assert asked == 3
    assert peak < 60e6


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "zstd"])
def test_an_encoding_that_was_not_asked_for_is_refused(route: str, encoding: str) -> None:
    head = f"content-encoding: {encoding}\r\n".encode()
    (reply,), _ = asyncio.run(_ask(route, _finite(b"x" * 99, head), pause_seconds=0.01))
    assert f"encoded as {encoding!r}, but gzip, deflate was asked for. Check the" in (
        reply.error or ""
    )


COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "stub",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "[[A]] \u00e9"},
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


@pytest.mark.parametrize("route", ["openai", "hosted_vllm"])
@pytest.mark.parametrize(
    ("encoding", "window"), [("gzip", 31), ("x-gzip", 31), ("deflate", 15), ("deflate", -15)]
)
def test_a_compressed_reply_is_read(route: str, encoding: str, window: int) -> None:
    packed = zlib.compressobj(wbits=window)
    body = packed.compress(json.dumps(COMPLETION).encode()) + packed.flush()
    head = f"content-encoding: {encoding}\r\n".encode()
    (reply,), asked = asyncio.run(_ask(route, _finite(body, head)))
    assert (reply.text, reply.error, asked) == ("[[A]] \u00e9", None, 1)


def test_the_limit_is_the_providers() -> None:
    body = json.dumps({**COMPLETION, "system_fingerprint": "x" * 5000}).encode()
    (reply,), _ = asyncio.run(_ask("openai", _finite(body, b""), max_reply_bytes=9000))
    assert reply.error is None
    (reply,), _ = asyncio.run(
        _ask("openai", _finite(body, b""), max_reply_bytes=4000, pause_seconds=0.01)
    )
    assert "larger than 0.004 MB" in (reply.error or "")
