"""Endpoints: environment variables that divert calls, and connections that fail."""

import os
import re
import socket
from collections.abc import Iterator

from tasks.engine.budget import route_of
from tasks.engine.redaction import redact
from tasks.engine.reply import CallError
from tasks.providers import Judge, Provider, api_base

OTHERS = {
    "bedrock": ["AWS_BEDROCK_RUNTIME_ENDPOINT", "BEDROCK_MANTLE_API_BASE"],
    "mistral": ["MISTRAL_AZURE_API_BASE"],
    "vertex_ai": ["VERTEXAI_API_BASE", "VERTEX_API_BASE"],
}
"""Beside ``ROUTE_API_BASE`` and ``ROUTE_BASE_URL``, which litellm reads for nearly every route."""

ALWAYS = "USE_LITELLM_PROXY"


def diverting(provider: Provider, judge: Judge) -> list[str]:
    """Return the variables that are set and would send a judge's calls elsewhere."""
    if provider.simulated:
        return []
    route = route_of(judge.model).removesuffix("_chat")
    names = [f"{route.upper()}_API_BASE", f"{route.upper()}_BASE_URL", *OTHERS.get(route, [])]
    # An address that the provider's file gives goes before all of these, but not before a proxy.
    return [name for name in [ALWAYS, *([] if api_base(provider) else names)] if _is_set(name)]


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in {"", "0", "false"}


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
            return CallError(redact(text, provider.secret_variables)[:500], passing=True, unreached=True)
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
