"""What the pages say to whoever asks, without a browser."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from booth._booth import Booth
from booth.app import make_app
from warehouse.store import Warehouse

Open = Callable[..., Booth]
Audited = Callable[..., Warehouse]
NONCE = re.compile(r'name="nonce" value="([^"]+)"')


@pytest.fixture
def booth(audited: Audited, opened: Open) -> Booth:
    booth = opened(audited(), limit=6)
    booth.seat("ann")
    return booth


class Client:
    """A browser without eyes: it keeps cookies and follows redirects."""

    def __init__(self, booth: Booth, *, secure: bool, url: str = "") -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(make_app(booth, secure=secure, url=url)),
            base_url=f"http{'s' if secure else ''}://booth",
            follow_redirects=True,
        )

    def get(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._client.get(path, **more))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._client.post(path, **more))


def client_of(booth: Booth, *, secure: bool = False) -> Client:
    return Client(booth, secure=secure)


def test_every_answer_has_the_headers(booth: Booth) -> None:
    client = client_of(booth)
    link = f"/v/{booth.token(booth.seats['ann'])}"
    for path in (link, "/", "/v/x", "/b/x", "/static/booth.css", "/static/../app.py"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        # The page tells nobody but the booth for how long it was seen.
        assert "connect-src 'self';" in policy
        # With no-referrer the origin of our own forms would be "null", as that of others is.
        assert headers["referrer-policy"] == "same-origin"
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == (
            "DENY",
            "nosniff",
        )
        kept = "immutable" if path == "/static/booth.css" else "no-store"
        assert kept in headers["cache-control"]
        assert "server" not in headers


def test_pages_hold_no_script_and_no_style(booth: Booth) -> None:
    client = client_of(booth)
    link = f"/v/{booth.token(booth.seats['ann'])}"
    for page in (client.get(link).text, client.post(link).text, client.get("/").text):
        assert re.findall(r"<script(?! src=\"/static/)|<style|\sstyle=|\son\w+=", page) == []
        outside = re.findall(r"(?:src|href|action)=\"(?!/(?:static|b)/)[^\"]*", page)
        assert outside == []


def test_a_link_that_is_looked_at_is_not_used_up(booth: Booth) -> None:
    seat = booth.seats["ann"]
    link = f"/v/{booth.token(seat)}"
    scanner = client_of(booth)
    assert "6 pairs of answers" in scanner.get(link).text
    assert seat.session is None
    voter = client_of(booth)
    assert "1 of 6" in voter.post(link).text
    assert scanner.post(link).status_code == 403
    # The link again, from a mail: the cookie of a strict site is not sent then, and the button is.
    assert "1 of 6" in voter.post(link).text


def test_a_bound_link_is_open_to_its_browser_and_to_no_other(booth: Booth) -> None:
    link = f"/v/{booth.token(booth.seats['ann'])}"
    voter, stranger = client_of(booth), client_of(booth)
    voter.post(link)
    again = voter.get(link)
    assert again.url.path.startswith("/b/")
    assert "1 of 6" in again.text
    wrong = stranger.get("/v/wrong").text
    for answer in (stranger.get(link), stranger.post(link, follow_redirects=False)):
        assert (answer.status_code, answer.text) == (403, wrong)
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("secure", [False, True])
def test_the_cookie_is_out_of_reach(booth: Booth, *, secure: bool) -> None:
    client = client_of(booth, secure=secure)
    answer = client.post(f"/v/{booth.token(booth.seats['ann'])}", follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert ("secure" in cookie) == secure


def test_two_voters_may_share_a_browser(booth: Booth) -> None:
    client = client_of(booth)
    links = [f"/v/{booth.token(booth.seat(voter))}" for voter in ("ann", "ben")]
    pages = [client.post(link).url.path for link in links]
    assert len(set(pages)) == 2
    assert all("1 of 6" in client.get(page).text for page in pages)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_vote(booth: Booth, site: str) -> None:
    client = client_of(booth)
    seat = booth.seats["ann"]
    page = client.post(f"/v/{booth.token(seat)}")
    nonce = NONCE.findall(page.text)[0]
    form = {"nonce": nonce, "choice": "Tie"}
    answer = client.post(page.url.path, data=form, headers={"sec-fetch-site": site})
    assert (answer.status_code, seat.turns) == (403, 0)
    assert "2 of 6" in client.post(page.url.path, data=form).text


FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://booth.evil.example"},
    {"origin": "http://booth:8751"},
    {"origin": "http://evil@booth"},
    {"origin": "file://booth"},
    {"origin": "http://evil.example", "referer": "http://booth/v/x"},
    {"referer": "http://evil.example/booth"},
    {"referer": "http://[booth"},
    {"referer": "booth"},
    {"sec-fetch-site": "cross-site", "origin": "http://booth"},
    {"sec-fetch-site": "x"},
]
OURS = [
    {},
    {"origin": "http://booth"},
    {"origin": "HTTP://Booth:80"},
    {"referer": "http://booth/v/x"},
    {"sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "none"},
    # A proxy with TLS keeps the host, or gives its own.
    {"origin": "https://booth"},
    {"origin": "https://vote.example.org"},
    {"referer": "https://vote.example.org/b/x"},
]


def test_a_browser_that_names_no_site_names_its_origin(booth: Booth) -> None:
    client, seat = client_of(booth), booth.seats["ann"]
    link, wrong = f"/v/{booth.token(seat)}", client.get("/v/wrong").text
    for headers in FOREIGN:
        refused = client.post(link, headers=headers)
        assert (refused.status_code, refused.text, seat.session) == (403, wrong, None), headers
    page = client.post(link)
    form = {"nonce": NONCE.findall(page.text)[0], "choice": "Tie"}
    for headers in FOREIGN:
        answer = client.post(page.url.path, data=form, headers=headers)
        assert (answer.status_code, answer.text, seat.turns) == (403, wrong, 0), headers
        finish = client.post(f"{page.url.path}/finish", headers=headers)
        assert (finish.status_code, seat.done) == (403, False), headers


def test_our_own_forms_and_programs_may_vote(booth: Booth) -> None:
    for number, headers in enumerate(OURS):
        client = Client(booth, secure=False, url="https://vote.example.org")
        page = client.post(f"/v/{booth.token(booth.seat(f'voter{number}'))}", headers=headers)
        assert "1 of 6" in page.text, headers
        form = {"nonce": NONCE.findall(page.text)[0], "choice": "Tie"}
        assert "2 of 6" in client.post(page.url.path, data=form, headers=headers).text, headers


def test_a_full_disk_is_said_and_the_next_choice_counts(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(booth)
    seat = booth.seats["ann"]
    page = client.post(f"/v/{booth.token(seat)}")
    form = {"nonce": NONCE.findall(page.text)[0], "choice": "Tie"}

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(booth.journal, "write", full)
        answer = client.post(page.url.path, data=form)
    assert (answer.status_code, seat.turns) == (503, 0)
    assert "was not saved" in answer.text
    assert "2 of 6" in client.post(page.url.path, data=form).text


def test_what_the_disk_does_not_take_binds_no_link_and_hands_in_nothing(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(booth)
    seat = booth.seats["ann"]
    link = f"/v/{booth.token(seat)}"

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(booth.journal, "write", full)
        assert (client.post(link).status_code, seat.session) == (503, None)
    page = client.post(link).url.path
    with monkeypatch.context() as patch:
        patch.setattr(booth.journal, "write", full)
        assert (client.post(f"{page}/finish").status_code, seat.done) == (503, False)
    client.post(f"{page}/finish")
    assert seat.done


def test_nonsense_in_an_address_is_no_error(booth: Booth) -> None:
    client = client_of(booth)
    page = client.post(f"/v/{booth.token(booth.seats['ann'])}").url.path
    for back in ("-1", "99", "x", "9" * 400, "1e3", "²"):
        assert "1 of 6" in client.get(page, params={"back": back}).text, back


def test_what_is_not_there_looks_like_what_is_not_open(booth: Booth) -> None:
    client = client_of(booth)
    wrong = client.get("/v/wrong").text
    for path in ("/docs", "/openapi.json", "/redoc", "/v/", "/b/../v", "/%00"):
        answer = client.get(path)
        assert (answer.status_code, answer.text) == (403, wrong), path


def test_a_form_of_many_fields_is_none_of_ours(booth: Booth) -> None:
    client = client_of(booth)
    client.post(f"/v/{booth.token(booth.seats['ann'])}")
    path = f"/b/{booth.slug(booth.seats['ann'])}"
    assert client.post(path, data={f"f{n}": "1" for n in range(10)}).status_code == 200
    assert client.post(path, data={f"f{n}": "1" for n in range(11)}).status_code == 400
