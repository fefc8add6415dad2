"""Prefect's server for one user: python -m flows.serving.guarded_server PORT [REPORTS].

It ends when its standard input does. It refuses requests that are addressed to another host (DNS
rebinding) or sent by a page of another site; Prefect's own list of allowed origins only prevents
such a page from reading responses.
"""

import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from flows.publishing.served_files import ROOT, Send, ServedFiles, respond

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost")
POLICY_VIOLATION = 1008
ICONS = {
    "/ico/undefined.svg": "/ico/pending.svg",
    "/favicon-dark.ico": "/ico/favicon-dark.ico",
    "/favicon.ico": "/ico/favicon.ico",
}
"""What Prefect's pages ask for but lack, before they know the state of a run -> what is meant."""


def origins(port: int) -> list[str]:
    """Return the origins of the server's own pages."""
    return [f"http://{host}:{port}" for host in HOSTS]


class Guard:
    """ASGI middleware that refuses requests to other hosts and from other origins.

    It also serves the reports, if there are any to serve.
    """

    def __init__(self, app: App, port: int, reports: ServedFiles | None = None) -> None:
        self._app, self._reports = app, reports
        self._hosts = {*HOSTS, *(f"{host}:{port}" for host in HOSTS)}
        self._origins = set(origins(port))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or respond with 400."""
        if scope["type"] not in {"http", "websocket"} or not (wrong := self._wrong(scope)):
            if self._reports and scope["type"] == "http" and scope["path"].startswith(ROOT):
                await self._reports(scope, send)
            else:
                path = scope.get("path", "")
                meant = {**scope, "path": ICONS[path]} if path in ICONS else scope
                await self._app(meant, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            await respond(send, 400, wrong.encode())

    def _wrong(self, scope: Scope) -> str | None:
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "Invalid host header"
        # Browsers send the origin of the page; other programs send none.
        if any(origin not in self._origins for origin in _values(scope, b"origin")):
            return "Disallowed origin"
        # They load scripts from another host, which could read the UI's data in the browser.
        if scope["path"].rstrip("/").endswith(("/docs", "/redoc")):
            return "Not served. The API is described in /openapi.json"
        return None


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


def _exit_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Serve on this port until standard input ends."""
    threading.Thread(target=_exit_with_stdin, daemon=True).start()
    # Garbage collection while thousands of classes are created takes a tenth of the start.
    gc.disable()
    import uvicorn
    from prefect.server.api.server import create_app

    port, *folders = sys.argv[1:]
    # The server itself may ask for none, as with --no-auth.
    auth = os.environ.get("PREFECT_SERVER_API_AUTH_STRING")
    reports = ServedFiles(Path(folders[0]), auth) if folders else None
    app = Guard(create_app(), int(port), reports)
    gc.freeze()
    gc.enable()
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error", lifespan="on")


if __name__ == "__main__":
    main()
