"""One request to one model, by litellm: HTTP hooks, bounded response bodies, errors."""

import asyncio
import json
import os
import re
import socket
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any

from tasks.engine.journal import CallError, Reply
from tasks.engine.limits import retry_after
from tasks.engine.litellm_adapter import (
    is_priced,
    litellms_client,
    load_litellm,
    reply_of,
    supported,
    valid_text,
)
from tasks.engine.queue import MAX_BYTES, RequestSlot
from tasks.kit.printable import redact
from tasks.providers import Judge, Provider, api_base
from tasks.simulation.judge import simulated_reply

Params = dict[str, Any]

SHARED_CLIENT = {"openai", "azure"}
"""Routes that use one client for all providers (``litellm.aclient_session``)."""

LITELLMS_CLIENT = {"cohere", "cohere_chat"}
"""Routes that accept no client, so that our hooks are set on litellm's own."""

PERMANENT = {400, 401, 402, 403, 404, 405, 413, 422}
"""Status codes that another attempt does not change: bad key, unknown model, content policy.

All others are tried again, also a 429 (too many requests) unless it says ``OUT_OF_MONEY``. Its
Retry-After is read by ``limits.retry_after`` and honoured by ``Engine.ask`` (``queue.py``), and by
``limits.CircuitBreaker`` for all calls to the provider if the wait is long or repeated.
"""

NOT_CHARGED = PERMANENT | {409, 425, 429, *range(500, 600)} - {504, 524}
"""Status codes of requests that the provider refused, so does not charge for.

It may charge for one that timed out at a gateway (408, 504, 524).
"""

OUT_OF_MONEY = (b"insufficient_quota", b"billing_hard_limit", b"billing hard limit")
"""Parts of the body of a 429 that waiting does not resolve, because the account has no money."""

LITELLMS_ADVICE = re.compile(r"[^.;]*(litellm\.)?`?drop_params", re.IGNORECASE)
OUR_ADVICE = (
    "Leave it out of params, or give another value"
    ' (unsupported = "drop" leaves out what litellm can drop)'
)

_clients: dict[str, Any] = {}


async def call(
    provider: Provider,
    judge: Judge,
    messages: list[dict[str, str]],
    params: Params,
    slot: RequestSlot,
) -> Reply:
    """Send one request when its slot allows. litellm and the libraries under it do not retry.

    Raise CallError if there is no reply; its text is redacted. An exception of the slot is passed
    on.
    """
    slot.max_bytes = provider.max_reply_bytes
    dropped: list[str] = []
    try:
        if provider.simulated:
            await slot.acquire()
            reply = simulated_reply(judge, messages, {**judge.params, **params})
            slot.release()
            reply = reply._replace(seconds=slot.seconds or 0.0)
        else:
            request, dropped = request_of(provider, judge, messages, params)
            # A judge may have its own timeout.
            given = request["timeout"]
            own = isinstance(given, int | float)
            async with slot.time_limit(float(given) if own else provider.timeout_seconds):
                response = await send(request, judge, slot)
            slot.release()
            reply = reply_of(response, slot.seconds or 0.0, judge)
    except Exception as error:
        lost = None if slot.response else unreached(slot.refusal or error, provider)
        raise lost or slot.refusal or _error_of_call(error, provider, slot) from error
    return reply._replace(dropped_params=json.dumps(dropped) if dropped else None)


def request_of(
    provider: Provider, judge: Judge, messages: list[dict[str, str]], params: Params
) -> tuple[Params, list[str]]:
    """Return the arguments of litellm's call, and the parameters that are left out."""
    kept, dropped = supported(judge, {**judge.params, **params})
    request = {
        "timeout": provider.timeout_seconds,
        **_connection(provider),
        **kept,
        "model": judge.model,
        "messages": messages,
        "num_retries": 0,
        "max_retries": 0,
        # An empty list keeps litellm from making a log record of each call for callbacks, which we
        # do not have: a sixth of the CPU time of a call.
        "fallbacks": [],
    }
    return request, dropped


async def send(request: Params, judge: Judge, slot: RequestSlot) -> Any:
    """Send a request by litellm when its slot allows."""
    litellm, route = load_litellm(), _route(judge.model)
    slot.needs_cost = is_priced(judge.model) and not judge.usd_per_million
    current_slot.set(slot)
    if route in LITELLMS_CLIENT:
        # Should litellm use another client, `Engine` notices that the slot was not acquired.
        own = litellms_client(route, ssl_verify=request.get("ssl_verify"))
        own.client.event_hooks = HOOKS
    elif route not in SHARED_CLIENT:
        request["client"] = _client(judge.provider)
    else:
        litellm.aclient_session = _client("").client
    return await litellm.acompletion(**request)


def _client(provider: str) -> Any:
    """Return the client of a provider, or the shared one (an empty name), with our hooks."""
    if provider not in _clients:
        _clients[provider] = load_litellm().AsyncHTTPHandler(event_hooks=HOOKS)
    return _clients[provider]


@cache
def _route(model: str) -> str:
    return str(load_litellm().get_llm_provider(model=model)[1])


async def litellm_call(verb: str, provider: Provider, timeout: float, **arguments: Any) -> Any:
    """Call another function of litellm, such as ``acreate_batch``.

    Raise CallError if there is no complete response within ``timeout`` seconds; its text is
    redacted.
    """
    litellm = load_litellm()
    # litellm may keep the client that it makes here and use it for single calls.
    litellm.aclient_session = _client("").client
    arguments = {"timeout": timeout, **_connection(provider), **arguments}
    return await with_timeout(getattr(litellm, verb)(**arguments), provider, timeout)


async def with_timeout(work: Awaitable[Any], provider: Provider, seconds: float) -> Any:
    """Wait for a provider's response; every error, also a timeout, is a ``CallError``."""
    # The timeout of the HTTP libraries is between two bytes.
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            return await work
    except Exception as error:
        if timeout.expired():
            text = f"Timeout: the complete response took longer than {seconds:g} s"
            raise CallError(text, transient=True, free=False) from error
        raise unreached(error, provider) or call_error(error, provider) from error


def _connection(provider: Provider) -> dict[str, str]:
    """Return key and address: litellm would look for the key in variables of its own choice."""
    name = provider.key_variable
    key = os.environ.get(name, "").strip() if name else ""
    base = api_base(provider)
    # A user's own endpoint may need no key, but the client requires one. If other variables hold
    # the secrets (Bedrock signs its requests), a key would be sent instead of the signature.
    keyless = base and not name and not provider.variables
    return {
        **({"api_key": key or "none"} if key or keyless else {}),
        **({"api_base": base} if base else {}),
    }


COST, ANY_COST = "x-litellm-response-cost", "1e-300"
"""Header by which litellm's proxy reports a cost. If it is there, litellm does not compute the
cost, which takes a third of the CPU time of a call. With 0 it would compute the cost anyway."""

ACCEPTED = "gzip, deflate"
"""Encodings that can be decompressed piece by piece."""

GZIP = zlib.MAX_WBITS | 16
WINDOWS = {"": 0, "identity": 0, "gzip": GZIP, "x-gzip": GZIP, "deflate": zlib.MAX_WBITS}
"""Content encoding -> window of zlib; 0: not compressed."""

ZLIB_METHOD = 8
"""The last four bits of the first byte of zlib's header."""

current_slot: ContextVar[RequestSlot | None] = ContextVar("current_slot", default=None)
max_bytes_without_slot: ContextVar[int] = ContextVar("max_bytes_without_slot", default=MAX_BYTES)


async def _before_request(request: Any) -> None:
    request.headers["accept-encoding"] = ACCEPTED
    if slot := current_slot.get():
        await slot.send(request.content)


async def _after_response(response: Any) -> None:
    slot = current_slot.get()
    try:
        # httpx and litellm find the body there.
        response._content = await read_bounded(  # noqa: SLF001
            response, slot.max_bytes if slot else max_bytes_without_slot.get()
        )
    except CallError as refusal:
        if slot:
            slot.refusal = refusal
        raise
    if slot:
        slot.response = response.status_code, response.content
        slot.release()
        if not slot.needs_cost:
            response.headers[COST] = ANY_COST
        if response.has_redirect_location:
            slot.refusal = CallError(_redirect_text(response), transient=False)
            raise slot.refusal


HOOKS: dict[str, list[Callable[..., object]]] = {
    "request": [_before_request],
    "response": [_after_response],
}
"""Event hooks of httpx clients: requests wait for the slot of their context."""


def _redirect_text(response: Any) -> str:
    """Return the error of a redirect, with its target but without secrets in the link."""
    try:
        target = response.url.join(response.headers["location"])
    except ValueError:
        where = "an invalid address"
    else:
        where = str(target.copy_with(userinfo=b"", query=None, fragment=None))
    return (
        f"{response.url.host} answers {response.status_code} and redirects to {where}. Redirects "
        "are not followed: give the target as api_base"
    )


async def read_bounded(response: Any, max_bytes: int) -> bytes:
    """Read and decompress the body of an httpx response.

    Raise CallError if it is too large, cannot be decompressed, or has an encoding that was not
    requested.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in WINDOWS:
        raise _invalid(
            f"the reply is encoded as {encoding[:40]!r}, but {ACCEPTED} was asked for. Check the "
            "gateway or proxy before the provider, which must respect Accept-Encoding"
        )
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    content, received = bytearray(), 0
    decompressor = WINDOWS[encoding] and zlib.decompressobj(WINDOWS[encoding])
    try:
        async for part in response.aiter_raw():
            if encoding == "deflate" and not received and part[0] % 16 != ZLIB_METHOD:
                # Some servers send deflate without its zlib header.
                decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            # Bytes after the end of a compressed body count too.
            received += len(part)
            room = max_bytes - len(content) + 1
            content += decompressor.decompress(part, room) if decompressor else part
            if max(len(content), received) > max_bytes:
                raise _too_large(max_bytes)
    except zlib.error as error:
        raise _invalid(
            f"the reply cannot be decompressed: {error}. Check the gateway or proxy before the "
            "provider, which may have changed it"
        ) from error
    return bytes(content)


def _too_large(max_bytes: int) -> CallError:
    return _invalid(
        f"the reply is larger than {max_bytes / 1e6:g} MB, so the connection was closed "
        "(max_reply_bytes in its provider's file)"
    )


def _invalid(text: str) -> CallError:
    # The provider may charge for it, and the next attempt may succeed.
    return CallError(f"invalid reply: {text}", transient=True, free=False, unreadable=True)


def _error_of_call(error: Exception, provider: Provider, slot: RequestSlot) -> CallError:
    """Classify the error of a request, given the response that its slot has seen."""
    if slot.timed_out:
        return CallError(
            "Timeout: the complete response took longer than timeout_seconds allows",
            transient=True,
            free=False,
        )
    found = call_error(error, provider)
    status, body = slot.response or (0, b"")
    if status == 429 and any(part in body.lower() for part in OUT_OF_MONEY):
        return CallError(f"{found} (no money left: waiting does not help)", transient=False)
    if not found.transient or not 200 <= status < 300:
        return found
    # The provider responded, so it may charge.
    if not _is_json(body):
        return CallError(str(found), transient=True, free=False)
    text = f"no completion came (check api_base and model), but {body.decode(errors='replace')}"
    shown = redact(text, provider.secret_variables)[:500]
    return CallError(shown, transient=True, free=False, unreadable=True)


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def call_error(error: Exception, provider: Provider) -> CallError:
    """Classify an error; it is transient unless it is known to be permanent."""
    if provider.simulated:
        return CallError(_text_of(error, provider)[:500], transient=False)
    known = load_litellm().exceptions
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", {})
    lost = isinstance(error, known.Timeout | known.APIConnectionError)
    # litellm raises its own error, without a status, if there is no key or no such model.
    unauthorised = isinstance(error, known.AuthenticationError)
    permanent = unauthorised or (status in PERMANENT and not lost)
    text = _text_of(error, provider)
    if isinstance(error, known.UnsupportedParamsError):
        # litellm advises to change its own settings, which are fixed here.
        text = f"{LITELLMS_ADVICE.split(text, maxsplit=1)[0].rstrip(' .,;')}. {OUR_ADVICE}"
    return CallError(
        text[:500],
        transient=not permanent,
        retry_after=retry_after(headers),
        free=not lost and status in NOT_CHARGED,
    )


def _text_of(error: Exception, provider: Provider) -> str:
    # litellm appends the traceback of an error that is not an HTTP status.
    text = f"{type(error).__name__}: {valid_text(str(error))}".split("\nTraceback", maxsplit=1)[0]
    return redact(without_objects(text), provider.secret_variables)


NO_CONNECTION = re.compile(r"Cannot connect to host (?P<host>\S+) ssl:[^\[]* \[(?P<reason>.*?)\]")
"""Text of aiohttp, which litellm uses, for a connection that could not be made."""

REFUSED = "Connect call failed"
"""How Python's reason begins if the connection was refused."""

SSL_OBJECT = re.compile(r" ssl:(<[^>]*>|\w+)")


def without_objects(text: str) -> str:
    """Remove the representation of SSL objects from an error's text."""
    return SSL_OBJECT.sub("", text)


def unreached(error: BaseException, provider: Provider) -> CallError | None:
    """Return the error of a connection that could not be made; null if it is another error."""
    import httpx

    causes = list(_causes(error))
    # A gateway may report a connection that it could not make itself.
    if any(isinstance(cause, httpx.HTTPStatusError) for cause in causes):
        return None
    for cause in causes:
        if found := _no_connection(cause):
            host, reason = found
            base = api_base(provider)
            known = f"{host} (api_base {base})" if host and base else host or base
            text = f"no connection to {known or 'the provider'}: {reason}"
            return CallError(
                redact(text, provider.secret_variables)[:500], transient=True, unreached=True
            )
    return None


def _no_connection(error: BaseException) -> tuple[str, str] | None:
    """Return the host, if it is named, and the reason why there is no connection."""
    if found := NO_CONNECTION.search(str(error)):
        host, reason = found["host"], found["reason"]
        return host, "connection refused" if reason.startswith(REFUSED) else reason
    if isinstance(error, ConnectionRefusedError):
        return "", "connection refused"
    if isinstance(error, socket.gaierror):
        return "", error.strerror or str(error)
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes; of a group, the first error."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__
