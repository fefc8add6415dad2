"""Web pages of the booth: a welcome page for each personal link, and the ballots."""

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from booth._booth import Booth
from booth._voters import Seat
from booth.web.markdown import rendered
from booth.web.pages import Refused, add_guard, add_static, answering, host_of, is_foreign, page
from tasks.judging.people import CHOSEN, QUESTION

LONGEST_FORM = 8192
MOST_FIELDS = 10
SECONDS_OF_A_SESSION = 180 * 24 * 3600
KEYS = {"Answer 1": "1", "Answer 2": "2", "Tie": "3 t", "Not familiar": "n"}


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
    add_static(app)
    app.add_exception_handler(Unreadable, answering("refused", 400))
    app.add_exception_handler(OSError, answering("not_saved", 503))
    known = host_of(url)
    add_guard(
        app,
        lambda request: request.method not in {"GET", "HEAD"} and is_foreign(request, known),
        "refused",
    )
    return app


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


def _count(text: str) -> int | None:
    """Parse a count that a browser sent; null if it is not one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def _number(text: str) -> int:
    return _count(text) or 0


def _seen(form: dict[str, str]) -> float | None:
    """Return the seconds for which a page was visible by its own count; null without JavaScript."""
    milliseconds = _count(form.get("seen", ""))
    return None if milliseconds is None else milliseconds / 1000
