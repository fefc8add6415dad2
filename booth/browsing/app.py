"""Web pages over a warehouse: studies, the comparisons of one, and one comparison."""

import hmac
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from booth.browsing.views import (
    OVER_BOTH,
    entry_of,
    sides_of,
    study_line,
    vote_of,
)
from booth.web.pages import add_guard, add_static, page
from tasks.evidence.browse_address import view_of
from tasks.evidence.unmeasured_waves import only_votes
from tasks.kit.printable import message
from tasks.validation.unknown_names import require_known, unknown
from warehouse.evidence.comparisons import (
    ROWS_PER_PAGE,
    ComparisonPage,
    Filters,
    describe_studies,
    find_comparison,
    list_comparisons,
    names_of,
    samples_like,
    studies_of,
    unmeasured_waves,
)
from warehouse.evidence.selection import NAMED
from warehouse.path_checks import option_for
from warehouse.store import Warehouse, WarehouseBusyError, WarehouseError

TEXTS = (*NAMED, "category", "sample", "search")
SWITCHES = {
    "flipped": "flipped verdicts",
    "moved": "moved grades",
    "invalid": "invalid replies",
    "disagree": "disagreements with people",
}
"""Filters of comparisons by what was found, with their labels."""
MOST_CHARACTERS = 500
"""No name or search is longer."""

RETRY_SECONDS = "2"


def make_app(warehouse: Warehouse, token: str, port: int) -> FastAPI:
    """Return the web application. A link with the token opens it for one browser, by a cookie."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    cookie, hosts = f"voirdire-browse-{port}", {f"127.0.0.1:{port}", f"localhost:{port}"}

    def is_refused(request: Request) -> bool:
        # Another host is a name of another site that leads here (DNS rebinding).
        if request.headers.get("host") not in hosts or request.method not in {"GET", "HEAD"}:
            return True
        given = request.query_params.get("token") or request.cookies.get(cookie, "")
        is_open = request.url.path.startswith("/static/")
        return not is_open and not hmac.compare_digest(given.encode(), token.encode())

    _add_pages(app, warehouse)
    add_static(app)
    app.add_exception_handler(WarehouseBusyError, _failed(503))
    app.add_exception_handler(WarehouseError, _failed(500))

    @app.middleware("http")
    async def enter(request: Request, call_next: Any) -> Response:
        """Take the token out of the address, where others could read it."""
        if "token" not in request.query_params:
            answer: Response = await call_next(request)
            return answer
        rest = urlencode(
            [each for each in request.query_params.multi_items() if each[0] != "token"]
        )
        answer = RedirectResponse(quote(request.url.path) + (f"?{rest}" if rest else ""), 303)
        # Lax: a link in another page leads here, and pages only show.
        answer.set_cookie(cookie, token, path="/", httponly=True, samesite="lax")
        return answer

    # The guard comes first: what is added last is outermost.
    add_guard(app, is_refused, "closed")
    return app


def check_view(warehouse: Warehouse, view: str) -> None:
    """Reject a view of a study that is not there, or of names that it does not have.

    A LookupError names what there is.
    """
    path = urlsplit(view)
    if not path.path.startswith("/study/"):
        return
    filters = filters_of(unquote(path.path.removeprefix("/study/")), dict(parse_qsl(path.query)))
    if filters.study not in (known := studies_of(warehouse)):
        raise unknown("study", filters.study, known, "`voirdire browse` without a study lists all")
    where, names = f"in study {filters.study!r}", names_of(warehouse, filters.study)
    require_known(filters.given, names, "`voirdire browse` lists all", where)
    if filters.sample and not list_comparisons(warehouse, filters, 0).total:
        alike = samples_like(warehouse, filters.sample, filters.study)
        if alike is not None:
            everything = "`voirdire browse` without --pair lists all"
            raise unknown(
                "sample, pair_id or question", filters.sample, alike, everything, where=where
            )
        raise ValueError(
            f"no comparison in study {filters.study!r} has the sample {filters.sample!r:.200} and "
            "these filters. `voirdire browse` without --pair lists all."
        )


def filters_of(study: str, given: Mapping[str, str]) -> Filters:
    """Return the filters in an address; an empty one is none."""
    texts = {name: given.get(name, "")[:MOST_CHARACTERS].strip() or None for name in TEXTS}
    return Filters(study, **texts, **{name: bool(given.get(name)) for name in SWITCHES})  # type: ignore[arg-type]


def address(filters: Filters, **more: Any) -> str:
    """Return the path of a view."""
    return view_of(filters.study, **{**filters.given, **more})


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0


def _add_pages(app: FastAPI, warehouse: Warehouse) -> None:
    @app.get("/")
    def studies() -> Response:
        """List the studies."""
        return page("studies", links=_links(warehouse))

    @app.get("/study/{study:path}")
    def view(request: Request, study: str) -> Response:
        """Show the comparisons of a study, or one of them."""
        given = dict(request.query_params)
        filters = filters_of(study, given)
        if "pair" in given or filters.sample:
            return _comparison(warehouse, filters, given.get("pair", ""))
        return _listing(warehouse, filters, max(_number(given.get("page", "")) - 1, 0))


def _links(warehouse: Warehouse) -> list[tuple[dict[str, str], str]]:
    known = describe_studies(warehouse)
    return [(study_line(row), address(Filters(row["study"]))) for row in known]


def _listing(warehouse: Warehouse, filters: Filters, number: int) -> Response:
    found = list_comparisons(warehouse, filters, number)
    is_unknown = not found.names["judge"] and found.running is None
    if is_unknown and filters.study not in studies_of(warehouse):
        return page("studies", 404, links=_links(warehouse), missing=filters.study)
    first = number * ROWS_PER_PAGE
    kinds = found.kinds
    # All that a calibration has are labels that differ.
    is_calibration = kinds["calibrated"] and not (kinds["judged"] or kinds["flipped"])
    may_differ = bool(kinds["voted_by_people"] or kinds["labelled_waves"]) and not is_calibration
    is_offered = {**kinds, "invalid": not is_calibration, "disagree": may_differ}

    entries = [(entry_of(row), address(filters, pair=row["id"])) for row in found.rows]

    def turned(to: int) -> str:
        return (
            address(filters, page=to + 1 if to else None)
            if 0 <= to * ROWS_PER_PAGE < found.total
            else ""
        )

    return page(
        "listing",
        filters=filters,
        found=found,
        switches={
            name: label
            for name, label in SWITCHES.items()
            if is_offered[name] or getattr(filters, name)
        },
        unit="disagreement" if is_calibration else "comparison",
        why=_why_none(warehouse, filters, found) if not found.rows else "",
        entries=entries,
        over_both=OVER_BOTH,
        both=any(OVER_BOTH in mark for entry, _ in entries for mark in entry["marks"]),
        first=first + 1,
        last=first + len(found.rows),
        before=turned(number - 1),
        after=turned(number + 1),
        cleared=address(Filters(filters.study)),
        textless=bool(found.rows) and not any(r["question"] or r["texts"] for r in found.rows),
    )


def _why_none(warehouse: Warehouse, filters: Filters, found: ComparisonPage) -> str:
    """Return why no comparison can match these filters; empty if one could."""
    study, wave, kinds = filters.study, filters.wave, found.kinds
    if wave and wave in unmeasured_waves(warehouse, study):
        show = _command(warehouse, "show", study, "--wave", wave)
        return f"{only_votes(study, wave)} {show} names the command that measures them."
    try:
        require_known(filters.given, found.names, "the choices above are all", "in this study")
    except LookupError as error:
        return message(f"There is {error}")
    if filters.flipped and not kinds["flipped"] and kinds["moved"]:
        return "Judges of this study give grades: these move, and no verdict flips."
    if filters.moved and not kinds["moved"]:
        return "This study has no grades that a perturbation could move."
    labelled = kinds["labelled_waves"]
    only = filters.disagree and (not labelled or filters.given.keys() <= {"disagree", "wave"})
    compare = _command(warehouse, "calibrate", study)
    return _why_no_disagreement(compare, labelled) if only else ""


def _command(warehouse: Warehouse, *words: str) -> str:
    return f"`{shlex.join(['voirdire', *words, *option_for(warehouse.path)])}`"


def _why_no_disagreement(compare: str, waves: Sequence[str]) -> str:
    """Say why no label differs; ``compare`` is the command that compares labels."""
    if waves:
        votes = ", ".join(wave or "no wave" for wave in waves)
        return (
            f"Votes of {votes} were compared with people. {compare} compares those whose results "
            "are in the warehouse now."
        )
    return f"No label that differs from people's is saved. {compare} compares labels of both."


def _comparison(warehouse: Warehouse, filters: Filters, row_id: str) -> Response:
    found = find_comparison(warehouse, filters, row_id)
    if found is None:
        why = _why_none(warehouse, filters, list_comparisons(warehouse, filters, 0))
        back = address(filters._replace(sample=None))
        return page("gone", 404, back=back, filters=filters, why=why)
    row = found.row

    def link(to: str | None) -> str:
        return address(filters, pair=to) if to else ""

    own = {name: row[name] for name in ("judge", "prompt", "wave", "perturbation", "sample")}
    return page(
        "comparison",
        filters=filters,
        entry=entry_of(row),
        row=row,
        sides=sides_of(row, found.texts),
        votes=[vote_of(vote) for vote in found.votes],
        others=[(entry_of(each), address(filters, pair=each["id"])) for each in found.others],
        back=address(filters._replace(sample=None)),
        before=link(row["before"]),
        after=link(row["after"]),
        alike=address(Filters(filters.study, judge=row["judge"], perturbation=row["perturbation"])),
        permanent=address(Filters(filters.study)._replace(**own), pair=row["id"]),
        textless=not found.texts and not row["texts"],
    )


def _failed(status: int) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        shown = page("failed", status, why=message(str(error)), here=here, busy=status == 503)
        if status == 503:
            shown.headers["Retry-After"] = RETRY_SECONDS
        return shown

    return answer
