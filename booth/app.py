"""Web pages of the booth: a welcome page for each personal link, and the ballots."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from booth._booth import Booth
from booth._render import rendered
from booth._seats import Seat
from schemas.keys import content_key
from tasks.judging.people import CHOSEN, QUESTION

HERE = Path(__file__).parent
STATIC = {"booth.css": "text/css", "booth.js": "text/javascript", "icon.svg": "image/svg+xml"}
LONGEST_FORM = 8192
MOST_FIELDS = 10
SECONDS_OF_A_SESSION = 180 * 24 * 3600
KEYS = {"Answer 1": "1", "Answer 2": "2", "Tie": "3 t", "Not familiar": "n"}
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
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


# Static files have a content hash in their URL, so browsers may cache them for ever.
PAGES.globals["files"] = content_key(
    *((HERE / "static" / name).read_text(encoding="utf-8") for name in STATIC)
)


class Refused(Exception):  # noqa: N818 - it is no error of the program
    """Reject a request. The response gives no reason on purpose."""


class Unreadable(Exception):  # noqa: N818 - it is no error of the program
    """Reject a form that is malformed."""


async def form_of(request: Request) -> dict[str, str]:
    """Read a form of limited length."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_FORM:
            raise Refused
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise Unreadable from error
    return {name: values[0] for name, values in fields.items()}


Form = Annotated[dict[str, str], Depends(form_of)]


class Site:
    """Authentication and addresses of a booth's pages."""

    def __init__(self, booth: Booth, *, secure: bool) -> None:
        self.booth, self.secure = booth, secure

    def owner(self, token: str) -> Seat:
        """Return the voter of a link."""
        seat = self.booth.seat_of_token(token)
        if seat is None:
            raise Refused
        return seat

    def voter(self, request: Request, slug: str) -> Seat:
        """Return the voter of a page, authenticated by the cookie."""
        seat = self.booth.seat_of_page(slug, request.cookies.get(f"voirdire-{slug}"))
        if seat is None:
            raise Refused
        return seat

    def cookie(self, seat: Seat) -> str:
        """Return the cookie name of a voter, as two voters may share a browser."""
        return f"voirdire-{self.booth.slug(seat)}"

    def place(self, seat: Seat, back: int = 0) -> str:
        """Return the path of a voter's next ballot, or of one so many steps back."""
        return f"/b/{self.booth.slug(seat)}" + (f"?back={back}" if back > 0 else "")


def make_app(booth: Booth, *, secure: bool = False, url: str = "") -> FastAPI:
    """Return the web application. Voters reach it at ``url``, even behind a proxy.

    ``secure``: the site is served over https, so cookies are sent over https only.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    site = Site(booth, secure=secure)
    _add_links(app, site)
    _add_ballots(app, site)
    _add_guard(app, _host_of(url))
    return app


def page(name: str, status: int = 200, **more: Any) -> HTMLResponse:
    """Fill in a template."""
    return HTMLResponse(PAGES.get_template(f"{name}.html").render(**more), status)


def _add_links(app: FastAPI, site: Site) -> None:
    @app.get("/v/{token}")
    def welcome(request: Request, token: str) -> Response:
        """Show the welcome page. Mail scanners open links too, so no session is bound yet."""
        seat = site.owner(token)
        if site.booth.knows(seat, request.cookies.get(site.cookie(seat))):
            return RedirectResponse(site.place(seat), 303)
        if seat.session is not None:
            raise Refused
        return page("welcome", question=QUESTION, total=len(seat.order), keys=KEYS)

    @app.post("/v/{token}")
    def begin(request: Request, token: str) -> Response:
        """Bind the link to the first browser that begins."""
        seat = site.owner(token)
        session = site.booth.open_session(seat, request.cookies.get(site.cookie(seat)))
        if session is None:
            raise Refused
        answer = RedirectResponse(site.place(seat), 303)
        answer.set_cookie(
            site.cookie(seat),
            session,
            max_age=SECONDS_OF_A_SESSION,
            path="/",
            secure=site.secure,
            httponly=True,
            samesite="strict",
        )
        return answer


def _add_ballots(app: FastAPI, site: Site) -> None:
    booth, place = site.booth, site.place

    @app.get("/b/{slug}")
    def ballot(request: Request, slug: str, back: str = "0") -> Response:
        """Show the next ballot, or one a few steps back."""
        seat, steps = site.voter(request, slug), _number(back)
        shown = booth.show(seat, steps)
        if shown is None and steps:
            return RedirectResponse(place(seat), 303)
        if shown is None:
            return page(
                "done",
                total=len(seat.order),
                action=place(seat),
                handed_in=seat.done or not seat.changeable,
            )
        return page(
            "ballot",
            asked=QUESTION,
            shown=shown,
            keys=KEYS,
            labels=list(CHOSEN),
            question=rendered(shown.question),
            answers=[rendered(a) for a in shown.answers],
            action=place(seat, steps),
            left=f"{place(seat)}/left",
            earlier=place(seat, steps + 1),
            later=place(seat, steps - 1),
        )

    @app.post("/b/{slug}")
    def vote(request: Request, slug: str, form: Form, back: str = "0") -> Response:
        """Record a choice and show the next ballot; an outdated page changes nothing."""
        seat, steps = site.voter(request, slug), _number(back)
        taken = booth.vote(seat, form.get("nonce", ""), form.get("choice", ""), _seen(form))
        return RedirectResponse(place(seat, steps - 1 if taken else steps), 303)

    @app.post("/b/{slug}/left")
    def left(request: Request, slug: str, form: Form) -> Response:
        """Record the viewing time that a page reports when it is left or hidden."""
        booth.leave(site.voter(request, slug), form.get("nonce", ""), _seen(form))
        return Response(status_code=204)

    @app.post("/b/{slug}/finish")
    def finish(request: Request, slug: str) -> Response:
        """Make all choices final."""
        seat = site.voter(request, slug)
        booth.hand_in(seat)
        return RedirectResponse(place(seat), 303)

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise Refused
        return FileResponse(
            HERE / "static" / name,
            media_type=STATIC[name],
            headers={"Cache-Control": "public, max-age=31536000, immutable"},
        )


def is_foreign(request: Request, known: str | None = None) -> bool:
    """Tell whether a request comes from another site; ``known`` is another host name of the booth.

    Browsers send Sec-Fetch-Site only over https and to loopback addresses. Otherwise the origin is
    compared with the host. A request without an origin is not from a browser, so it has no cookie.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in {"same-origin", "none"}
    come = request.headers.get("origin") or request.headers.get("referer")
    if come is None:
        return False
    host = _host_of(come)
    scheme = come.partition(":")[0]
    ours = {_host_of(f"{scheme}://{request.headers.get('host', '')}"), known}
    return host is None or host not in ours


def _host_of(address: str) -> str | None:
    """Return the host and port of an address; null if there is none, as of "null"."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme)
    return parts.netloc.lower().removesuffix(usual) or None if usual else None


def _answering(name: str, status: int) -> Callable[[Request, Exception], Response]:
    return lambda *_: page(name, status)


def _add_guard(app: FastAPI, known: str | None) -> None:
    # The page does not reveal whether a link is wrong, used or unknown.
    app.add_exception_handler(Refused, _answering("refused", 403))
    app.add_exception_handler(Unreadable, _answering("refused", 400))
    app.add_exception_handler(HTTPException, _answering("refused", 403))
    app.add_exception_handler(OSError, _answering("not_saved", 503))

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:
        """Reject cross-site requests, and add the security headers."""
        answer: Response = (
            page("refused", 403)
            if request.method not in {"GET", "HEAD"} and is_foreign(request, known)
            else await call_next(request)
        )
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer


def _count(text: str) -> int | None:
    """Parse a count that a browser sent; null if it is not one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def _number(text: str) -> int:
    return _count(text) or 0


def _seen(form: dict[str, str]) -> float | None:
    """Return the seconds for which a page was visible by its own count; null without JavaScript."""
    milliseconds = _count(form.get("seen", ""))
    return None if milliseconds is None else milliseconds / 1000
