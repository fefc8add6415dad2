"""Reports that `voirdire serve` offers, read-only, at the address of its Prefect UI.

A link holds a key to its one file, made from the server's authentication string: browsers send that
string with the UI's own requests only, not for a link or a picture.
"""

import asyncio
import hashlib
import hmac
import os
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from flows.publishing.report_files import other_report
from flows.serving.access import own_server
from warehouse.path_checks import DEFAULT

ROOT = "/reports/"
NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}\.html|pictures/[0-9a-f-]{36}/[a-z0-9_-]{1,80}\.svg")
"""Files that are served; no name leads out of the folder."""
KINDS = {".html": b"text/html; charset=utf-8", ".svg": b"image/svg+xml"}
HEADERS = {
    # In a sandbox, a page has an origin of its own: it can read nothing of the Prefect UI, such as
    # the authentication string that the browser stores.
    b"content-security-policy": b"sandbox allow-scripts allow-downloads allow-popups "
    b"allow-popups-to-escape-sandbox; connect-src 'none'; form-action 'none'; base-uri 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    # The address holds the key.
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
CHALLENGE = {b"www-authenticate": b'Basic realm="voirdire"'}

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class ServedFiles:
    """The reports and pictures in a folder, as an ASGI application."""

    def __init__(self, folder: Path, auth: str | None) -> None:
        self._folder, self._auth = folder, auth

    async def __call__(self, scope: MutableMapping[str, Any], send: Send) -> None:
        """Send the file that a request names, if it may have it."""
        name = scope["path"].removeprefix(ROOT)
        if not self._may(scope, name):
            why = b"This link is not valid. Log in, or open it from the run's page."
            await respond(send, 401, why, CHALLENGE)
        elif scope["method"] not in {"GET", "HEAD"}:
            await respond(send, 405, b"Only GET and HEAD are allowed.", {b"allow": b"GET, HEAD"})
        elif (content := await asyncio.to_thread(self._read, name)) is None:
            await respond(send, 404, b"There is no such report.")
        else:
            more = {b"content-type": KINDS[Path(name).suffix], **HEADERS}
            await respond(send, 200, b"" if scope["method"] == "HEAD" else content, more)

    def _may(self, scope: MutableMapping[str, Any], name: str) -> bool:
        if self._auth is None:
            return True
        basic = b"Basic " + b64encode(self._auth.encode())
        sent = [value for header, value in scope["headers"] if header == b"authorization"]
        keys = parse_qs(scope["query_string"].decode("latin-1")).get("key", [])
        own = key_of(self._auth, name).encode()
        return any(hmac.compare_digest(each, basic) for each in sent) or any(
            hmac.compare_digest(key.encode(), own) for key in keys
        )

    def _read(self, name: str) -> bytes | None:
        """Return a file's content; null if it is no file of the folder, or a link to another."""
        if not NAME.fullmatch(name):
            return None
        root = self._folder.resolve()
        try:
            place = (root / name).resolve(strict=True)
            if place != root / name or not place.is_file():
                return None
            return self._with_key(name, place.read_bytes())
        except OSError:
            return None

    def _with_key(self, name: str, content: bytes) -> bytes:
        """Return a report whose link to the other report has the key to that one."""
        if self._auth is None or not name.endswith(".html"):
            return content
        other = other_report(name)
        keyed = f'href="{other}?key={key_of(self._auth, other)}"'
        return content.replace(f'href="{other}"'.encode(), keyed.encode())


def reports_of(warehouse: Path) -> Path:
    """Return the folder with the reports of a warehouse, beside it.

    ``reports``, or ``team-reports`` of ``team.duckdb``: warehouses in one folder may have studies
    of the same name.
    """
    name = warehouse.name.removesuffix(".duckdb")
    return warehouse.with_name("reports" if warehouse.name == DEFAULT else f"{name}-reports")


def key_of(auth: str, name: str) -> str:
    """Return the key to one file."""
    return hmac.new(auth.encode(), f"voirdire{ROOT}{name}".encode(), hashlib.sha256).hexdigest()


def link_to(file: Path) -> str | None:
    """Return the address of a file; null if the server of this run does not serve it."""
    own = own_server()
    if own is None or own[0].url != os.environ.get("PREFECT_API_URL") or not own[0].reports:
        return None
    access, folder = own[0], Path(str(own[0].reports))
    if not file.absolute().is_relative_to(folder):
        return None
    name = file.absolute().relative_to(folder).as_posix()
    if not NAME.fullmatch(name):
        return None
    key = f"?key={key_of(access.auth, name)}" if access.auth else ""
    return f"{access.url.removesuffix('/api')}{ROOT}{name}{key}"


async def respond(
    send: Send, status: int, content: bytes, headers: MutableMapping[bytes, bytes] | None = None
) -> None:
    """Send a response, by default of plain text."""
    every = {b"content-type": b"text/plain; charset=utf-8", **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": [*every.items()]})
    await send({"type": "http.response.body", "body": content})
