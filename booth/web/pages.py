"""Templates, static files, security headers, and the guard against other sites."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from schemas.keys import content_key
from tasks.reporting.wording import thousands

BOOTH = Path(__file__).parents[1]
STATIC = {
    "booth.css": "text/css",
    "booth.js": "text/javascript",
    "browse.css": "text/css",
    "browse.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    # A link contains a token, which must not leak by the referrer. With no-referrer, browsers would
    # send "null" as the origin of our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGES = Environment(
    loader=FileSystemLoader(BOOTH / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
PAGES.filters["thousands"] = thousands

# Static files have a content hash in their URL, so browsers may cache them for ever.
PAGES.globals["files"] = content_key(
    *((BOOTH / "static" / name).read_text(encoding="utf-8") for name in STATIC)
)


class Refused(Exception):  # noqa: N818 - it is no error of the program
    """Reject a request. The response gives no reason on purpose."""


def page(name: str, status: int = 200, **more: Any) -> HTMLResponse:
    """Fill in a template."""
    return HTMLResponse(PAGES.get_template(f"{name}.html").render(**more), status)


def answering(name: str, status: int) -> Callable[[Request, Exception], Response]:
    """Return a handler of exceptions that shows a page."""
    return lambda *_: page(name, status)


def add_static(app: FastAPI) -> None:
    """Serve the static files."""

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise Refused
        return FileResponse(
            BOOTH / "static" / name,
            media_type=STATIC[name],
            headers={"Cache-Control": "public, max-age=31536000, immutable"},
        )


def add_guard(app: FastAPI, is_refused: Callable[[Request], bool], refused: str) -> None:
    """Reject requests, and add the security headers. All that is rejected looks alike."""
    app.add_exception_handler(Refused, answering(refused, 403))
    app.add_exception_handler(HTTPException, answering(refused, 403))

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:
        answer: Response = page(refused, 403) if is_refused(request) else await call_next(request)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer


def is_foreign(request: Request, known: str | None = None) -> bool:
    """Tell whether a request comes from another site; ``known`` is another host name of ours.

    Browsers send Sec-Fetch-Site only over https and to loopback addresses. Otherwise the origin is
    compared with the host. A request without an origin is not from a browser, so it has no cookie.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in {"same-origin", "none"}
    come = request.headers.get("origin") or request.headers.get("referer")
    if come is None:
        return False
    host = host_of(come)
    scheme = come.partition(":")[0]
    ours = {host_of(f"{scheme}://{request.headers.get('host', '')}"), known}
    return host is None or host not in ours


def host_of(address: str) -> str | None:
    """Return the host and port of an address; null if there is none, as of "null"."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme)
    return parts.netloc.lower().removesuffix(usual) or None if usual else None
