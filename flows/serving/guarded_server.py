"""Prefect's server for one user of this machine: python -m flows.serving.guarded_server PORT.

It ends with its standard input. Requests that were addressed to another host (DNS rebinding), or
that a page of another site sends, are refused: Prefect's own list of origins only keeps a page from
reading answers.
"""

import os
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost")
POLICY_VIOLATION = 1008


def origins(port: int) -> list[str]:
    """Return the origins of the server's own pages."""
    return [f"http://{host}:{port}" for host in HOSTS]


class Guard:
    """Refuse requests to other hosts and from other origins."""

    def __init__(self, app: App, port: int) -> None:
        self._app = app
        self._hosts = {*HOSTS, *(f"{host}:{port}" for host in HOSTS)}
        self._origins = set(origins(port))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with 400."""
        if scope["type"] not in {"http", "websocket"} or not (wrong := self._wrong(scope)):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 400, "headers": headers})
            await send({"type": "http.response.body", "body": wrong.encode()})

    def _wrong(self, scope: Scope) -> str | None:
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "Invalid host header"
        # A browser names the page that asks; other programs name none.
        if any(origin not in self._origins for origin in _values(scope, b"origin")):
            return "Disallowed origin"
        # They load scripts of another host, which could read what the UI keeps in the browser.
        if scope["path"].rstrip("/").endswith(("/docs", "/redoc")):
            return "Not served; the description of the API is /openapi.json"
        return None


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Serve on this port until standard input ends."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    import uvicorn
    from prefect.server.api.server import create_app

    port = int(sys.argv[1])
    uvicorn.run(
        Guard(create_app(), port),
        host="127.0.0.1",
        port=port,
        log_level="error",
        lifespan="on",
    )


if __name__ == "__main__":
    main()
