"""An OpenAI-compatible provider that fails on purpose, to try faults without paying.

``python -m tasks.simulation.emulator --port 8080 --latency .2 --fault error=.1`` serves it on
loopback. It replies by formula (a hash of the request), so it is no model, and it counts its
requests: ``GET /stats``. Which request meets which fault depends on the seed and its number only.
"""

import asyncio
import json
import struct
import time
import zlib
from collections import Counter, deque
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

import click
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from tasks.kit.random_numbers import pick, uniform

REPLIES = ("Emulated: the first. [[A]]", "Emulated: the second. [[B]]", "Emulated: equal. [[C]]")
HOST = "127.0.0.1"
PORT, AMOUNT, SECONDS = click.IntRange(0, 65535), click.IntRange(min=0), click.FloatRange(min=0)
FAULTS = ("busy", "error", "hang", "reset", "truncated", "garbage", "mute", "endless", "bomb")
PART = b" " * 2**20
PARTS = 1024
"""Chunks of the oversized body (1 GiB limit)."""
GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
"""Deflate, without a file name, a time and a system."""
COMPRESSING = Lock()
"""Held while the body that inflates is made, so that requests at the same time make it once."""


class Behaviour(BaseModel):
    """How the provider behaves."""

    model_config = ConfigDict(extra="forbid")

    seed: int = 0
    replies: tuple[str, ...] = Field(default=REPLIES, min_length=1)
    """Texts that it replies with, one of them to each request."""
    latency: float = Field(default=0.0, ge=0)
    """Seconds until a reply."""
    faults: dict[str, float] = {}
    """Chance of each: ``busy`` is 429, ``error`` 500, ``hang`` no reply for ``hang_seconds``,
    ``reset`` a dropped connection, ``truncated`` half a body, ``garbage`` a body that is no JSON,
    ``mute`` a good reply without a verdict, ``endless`` a body that does not end (before a
    gigabyte), ``bomb`` one that inflates to a gigabyte."""
    retry_after: float = Field(default=0.2, ge=0)
    """Seconds named in ``Retry-After`` of a 429."""
    hang_seconds: float = Field(default=30.0, ge=0)
    requests_per_minute: int = Field(default=0, ge=0)
    """More get 429; 0: no limit."""
    tokens_per_minute: int = Field(default=0, ge=0)
    """Words of prompts; more get 429; 0: no limit."""
    refused: tuple[str, ...] = ()
    """Parameters that the model does not accept: 400."""


class Minute:
    """The amounts of the last minute."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, int]] = deque()
        self._sum = 0

    def holds(self, amount: int, limit: int) -> bool:
        """Tell whether the amount fits the limit (0: unlimited)."""
        while self._past and self._past[0][0] < time.monotonic() - 60:
            self._sum -= self._past.popleft()[1]
        return not limit or self._sum + amount <= limit

    def add(self, amount: int) -> None:
        """Count an amount."""
        self._past.append((time.monotonic(), amount))
        self._sum += amount


class Emulator:
    """The provider and its counts."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.counts: Counter[str] = Counter()
        self.prompts: Counter[int] = Counter()
        self.in_flight = self.most_in_flight = self.number = 0
        self.minute = {"requests": Minute(), "tokens": Minute()}
        self.asked_at: list[float] = []
        self.tokens: Counter[str] = Counter()

    def app(self) -> web.Application:
        """Return the routes."""
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/stats", self.stats)
        return app

    async def stats(self, _: web.Request) -> web.Response:
        """Return the counts: requests, replies, faults, prompts answered more than once."""
        return web.json_response(self.all_counts())

    def all_counts(self) -> dict[str, Any]:
        """Return the counts since the start."""
        spans = self.asked_at or [0.0]
        return {
            **self.counts,
            "requests": self.number,
            "most_in_flight": self.most_in_flight,
            "prompts": len(self.prompts),
            "most_replies_to_a_prompt": max(self.prompts.values(), default=0),
            "seconds": max(spans) - min(spans),
            # On the machine's monotonic clock, which its other processes have too.
            "first_at": min(spans),
            "last_at": max(spans),
            **self.tokens,
        }

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer one chat completion, or fail."""
        self.number += 1
        number = self.number
        self.asked_at = [*self.asked_at[:1], time.monotonic()]
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            body = await request.read()
            response = self._refuse(request, json.loads(body)) or await self._fail(request, number)
            if response is None:
                await asyncio.sleep(self.behaviour.latency)
                mute = self._fault(number) == "mute"
                response = web.json_response(self._reply(json.loads(body), mute=mute))
            self.asked_at = [*self.asked_at[:1], time.monotonic()]
            return response
        finally:
            self.in_flight -= 1

    def _refuse(self, _: web.Request, body: dict[str, Any]) -> web.Response | None:
        if refusal := self._refusal(body):
            return web.json_response(refusal[1], status=refusal[0])
        return self._busy() if self._too_many(body) else None

    def _refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Return status and error of a request that the model does not accept."""
        name = next((name for name in self.behaviour.refused if name in body), None)
        if name is None:
            return None
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        return 400, error_body(message, "unsupported_parameter", name)

    async def _fail(self, request: web.Request, number: int) -> web.StreamResponse | None:
        fault = self._fault(number)
        if fault is None or fault == "mute":
            return None
        self.counts[fault] += 1
        if fault == "busy":
            return self._busy()
        if fault == "error":
            return self._error(500, "The server had an error.", "server_error")
        if fault == "garbage":
            return web.Response(text="<html>bad gateway", content_type="text/html")
        if fault in {"endless", "bomb"}:
            return await self._pour(request, fault)
        if fault == "hang":
            await asyncio.sleep(self.behaviour.hang_seconds)
        if fault == "truncated":
            response = web.StreamResponse(headers={"Content-Length": "4000"})
            await response.prepare(request)
            await response.write(b'{"id": "cut", "choices": [{"mess')
        if request.transport:
            request.transport.abort()
        return web.Response()

    async def _pour(self, request: web.Request, fault: str) -> web.StreamResponse:
        """Send a body that is far too large, until the other side closes the connection."""
        if fault == "bomb":
            headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
            return web.Response(body=await asyncio.to_thread(_bomb), headers=headers)
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            for _ in range(PARTS):
                await response.write(PART)
        return response

    def _fault(self, number: int) -> str | None:
        drawn = uniform(self.behaviour.seed, "fault", number)
        for fault, chance in self.behaviour.faults.items():
            if drawn < chance:
                return fault
            drawn -= chance
        return None

    def _too_many(self, body: dict[str, Any]) -> bool:
        amounts = {
            "requests": (1, self.behaviour.requests_per_minute),
            "tokens": (_prompt_tokens(body), self.behaviour.tokens_per_minute),
        }
        if not all(self.minute[what].holds(*amount) for what, amount in amounts.items()):
            return True
        for what, (amount, _) in amounts.items():
            self.minute[what].add(amount)
        return False

    def _busy(self) -> web.Response:
        self.counts["refused_as_busy"] += 1
        headers = {"Retry-After": f"{self.behaviour.retry_after:g}"}
        return self._error(429, "Rate limit reached.", "rate_limit_exceeded", headers)

    def _error(
        self, status: int, message: str, code: str, headers: dict[str, str] | None = None
    ) -> web.Response:
        return web.json_response(error_body(message, code), status=status, headers=headers)

    def _reply(self, request: dict[str, Any], *, mute: bool = False) -> dict[str, Any]:
        # The same request may be written in several ways.
        body = json.dumps(request, sort_keys=True)
        text = "Emulated: no verdict." if mute else self._verdict(request, body)
        usage = {"prompt_tokens": _prompt_tokens(request), "completion_tokens": len(text.split())}
        self.counts["replies"] += 1
        self.prompts[hash(body)] += 1
        self.tokens.update(usage)
        return {
            "id": f"chatcmpl-{self.number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request["model"],
            "system_fingerprint": "fp_emulated",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }

    def _verdict(self, _: dict[str, Any], body: str) -> str:
        return pick(self.behaviour.replies, self.behaviour.seed, body)


def _bomb() -> bytes:
    """Return a gigabyte of blanks, compressed to a megabyte, which takes half a second once."""
    with COMPRESSING:
        return _compressed()


@cache
def _compressed() -> bytes:
    packed = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    # After a full flush nothing refers to what came before, so one part can be repeated.
    part = packed.compress(PART) + packed.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(PARTS):
        checksum = zlib.crc32(PART, checksum)
    ends = packed.flush() + struct.pack("<LL", checksum, PARTS * len(PART) % 2**32)
    return GZIP_HEADER + part * PARTS + ends


def _prompt_tokens(request: dict[str, Any]) -> int:
    return sum(len(str(message["content"]).split()) for message in request["messages"])


def error_body(message: str, code: str, param: str | None = None) -> dict[str, Any]:
    """Return an error as OpenAI words it."""
    kind = code if param is None else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "code": code, "param": param}}


@click.command()
@click.option("--port", type=PORT, default=0, help="0 takes a free one; it is printed.")
@click.option("--latency", type=SECONDS, default=0.0, help="Seconds until a reply.")
@click.option("--fault", "faults", multiple=True, help=f"NAME=CHANCE; one of {', '.join(FAULTS)}.")
@click.option("--reply", "replies", multiple=True, help="A text to reply with (repeatable).")
@click.option("--seed", default=0, help="Of replies and faults.")
@click.option("--requests-per-minute", type=AMOUNT, default=0, help="More get 429; 0: no limit.")
@click.option("--tokens-per-minute", type=AMOUNT, default=0, help="Words of prompts; more get 429.")
@click.option("--refuse", "refused", multiple=True, help="Name of a parameter that gets 400.")
def main(port: int, faults: tuple[str, ...], replies: tuple[str, ...], **behaviour: Any) -> None:
    """Serve the emulator on loopback until interrupted."""
    behaviour["replies"] = replies or REPLIES
    run(Emulator(Behaviour(faults=dict(map(_chance, faults)), **behaviour)), port)


def run(emulator: Emulator, port: int) -> None:
    """Serve an emulator on loopback until interrupted."""
    try:
        asyncio.run(_serve(emulator, port))
    except OSError as error:
        raise click.ClickException(
            f"cannot serve on port {port} of {HOST}: {error}. Stop the program on that port, or "
            "take another port (--port 0: a free one)."
        ) from error


def _chance(fault: str) -> tuple[str, float]:
    name, _, chance = fault.partition("=")
    try:
        if name in FAULTS and 0 <= float(chance) <= 1:
            return name, float(chance)
    except ValueError:
        pass
    raise click.BadParameter(f"{fault!r} is not NAME=CHANCE, such as {FAULTS[0]}=.1")


async def _serve(emulator: Emulator, port: int) -> None:
    runner = web.AppRunner(emulator.app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, HOST, port)
    await site.start()
    address = runner.addresses[0]
    click.echo(f"http://{address[0]}:{address[1]}/v1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
