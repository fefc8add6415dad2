"""Who nobody could connect to, in the words of each library that tries."""

import asyncio
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from provider_clients import close_clients

from tasks.engine import batches, client
from tasks.engine.client import unreached, without_objects
from tasks.engine.journal import CallError
from tasks.engine.queue import RequestSlot
from tasks.providers import Judge, Provider

# litellm and what it builds on warn about each other, which is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def closed() -> str:
    """Address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


async def _nothing() -> None:
    pass


@pytest.mark.parametrize("model", ["hosted_vllm/x", "openai/x", "ollama_chat/x", "batch"])
def test_a_refused_connection_names_the_address_and_no_object(closed: str, model: str) -> None:
    provider = Provider(api_base=closed)
    judge = Judge(judge="p/x", provider="p", model=model)

    async def ask() -> None:
        if model == "batch":
            batched = judge.model_copy(update={"model": "openai/x", "mode": "batch"})
            await batches.status_of(provider, batched, "batch_1")
        messages = [{"role": "user", "content": "Which?"}]
        slot = RequestSlot(_nothing, lambda: None)
        try:
            await client.call(provider, judge, messages, {}, slot)
        finally:
            await close_clients()

    with pytest.raises(CallError) as reported:
        asyncio.run(ask())
    assert (reported.value.unreached, reported.value.transient, reported.value.free) == (
        True,
        True,
        True,
    )
    said = str(reported.value)
    assert said.endswith(": connection refused")
    assert closed in said
    assert "SSL" not in said


class _Gateway(BaseHTTPRequestHandler):
    """Answers, and tells of a server behind it that does not."""

    def do_GET(self) -> None:
        reported = (
            "Cannot connect to host upstream:443 ssl:default [Connect call failed ('::1', 443)]"
        )
        body = json.dumps({"error": {"message": reported}}).encode()
        self.send_response(503)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_gateway_that_answers_was_reached() -> None:
    judge = Judge(judge="p/x", provider="p", model="openai/x", mode="batch")
    server = HTTPServer(("127.0.0.1", 0), _Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    provider = Provider(api_base=f"http://127.0.0.1:{server.server_port}/v1")

    async def look() -> None:
        try:
            await batches.status_of(provider, judge, "batch_1")
        finally:
            await close_clients()

    with pytest.raises(CallError, match="Cannot connect to host upstream") as reported:
        asyncio.run(look())
    server.shutdown()
    server.server_close()
    assert (reported.value.unreached, reported.value.transient) == (False, True)


def test_a_name_that_is_not_known_is_reported() -> None:
    error = RuntimeError("Connection error.")
    error.__cause__ = ExceptionGroup("all failed", [socket.gaierror(-2, "Name not known")])
    reported = unreached(error, Provider(api_base="http://nowhere.invalid/v1"))
    assert str(reported) == "no connection to http://nowhere.invalid/v1: Name not known"
    assert str(unreached(error, Provider())) == "no connection to the provider: Name not known"
    assert unreached(RuntimeError("Connection reset"), Provider()) is None


def test_objects_are_left_out() -> None:
    text = "Server disconnected: host x:443 ssl:<ssl.SSLContext object at 0x7fb72d4224e0> [gone]"
    assert without_objects(text) == "Server disconnected: host x:443 [gone]"
