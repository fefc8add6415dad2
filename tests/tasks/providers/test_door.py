"""What comes through the door, from a server that speaks bytes; through litellm itself."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import pytest

from tasks.providers import Judge, Provider
from tasks.providers._client import call, hang_up
from tasks.providers._engine import Engine
from tasks.providers._reply import Reply

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
        told = json.dumps({"error": {"message": HOSTILE, "code": code}})
        body = (HOSTILE if raw else told).encode()
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
        await hang_up()
        server.close()


@pytest.mark.parametrize("route", ROUTES)
def test_an_answer_that_drips_takes_no_longer_than_allowed(route: str) -> None:
    began = time.monotonic()
    # each waits for its slot for as long as the ones before it take
    limits = {"attempts": 1, "timeout_seconds": 1, "concurrency": 1}
    replies, asked = asyncio.run(_ask(route, _drip, 3, **limits))
    said = "Timeout: the whole answer took longer than timeout_seconds allows"
    assert [reply.error for reply in replies] == [said] * 3
    assert asked == 3
    assert 3 <= time.monotonic() - began < 6


@pytest.mark.parametrize("route", ROUTES)
def test_a_redirect_stops_the_judge_and_names_the_address(route: str) -> None:
    (reply,), asked = asyncio.run(_ask(route, _redirect))
    assert reply.error == (
        "stub/one stopped: 127.0.0.1 answers 307 and redirects to "
        "https://judges.example/v2/chat/completions. A judge is asked at one address only: give "
        "that one as api_base"
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
