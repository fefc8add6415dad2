"""How long a vote took: the page says it, and is believed as far as it is possible."""

import asyncio
import base64
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from booth import _booth, _viewing_time
from booth._booth import Booth
from booth._voters import Seat
from booth.app import make_app
from warehouse.store import Warehouse

Open = Callable[..., Booth]
Audited = Callable[..., Warehouse]
NONCE = re.compile(r'name="nonce" value="([^"]+)"')


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_viewing_time, "now", clock)
    return clock


@pytest.fixture
def booth(audited: Audited, opened: Open) -> Booth:
    booth = opened(audited(), limit=6)
    booth.seat("ann")
    return booth


@pytest.fixture
def ann(booth: Booth) -> Seat:
    return booth.seats["ann"]


def load(booth: Booth, seat: Seat, back: int = 0) -> str:
    shown = booth.show(seat, back)
    assert shown
    return shown.nonce


def look(booth: Booth, seat: Seat, clock: Clock, seconds: float, back: int = 0) -> str:
    """Load a page and let so many seconds pass; return the page."""
    page = load(booth, seat, back)
    clock.passes(seconds)
    return page


def taken(booth: Booth, seat: Seat, nonce: str, seen: float | None) -> float:
    """Vote, and return the seconds of the vote."""
    ballot = booth.vote(seat, nonce, "Tie", seen)
    assert ballot
    return seat.chosen[ballot].seconds


def test_a_page_is_believed_up_to_the_time_since_it_was_shown(
    booth: Booth, ann: Seat, clock: Clock
) -> None:
    for claim, seconds in ((3.5, 3.5), (99.0, 8.0), (None, 8.0), (0.0, 0.0)):
        page = look(booth, ann, clock, 8)
        assert taken(booth, ann, page, claim) == seconds


@pytest.mark.parametrize("absence", [20.0, 281.0, 4000.0])
def test_a_page_closed_and_opened_again_was_not_seen_in_between(
    booth: Booth, ann: Seat, clock: Clock, absence: float
) -> None:
    first = load(booth, ann)
    clock.passes(0.5)
    booth.leave(ann, first, 0.5)
    clock.passes(absence)
    second = load(booth, ann)
    clock.passes(0.25)
    # Nor does a claim make up for it.
    assert taken(booth, ann, second, absence) == 0.75


def test_reloads_add_up_also_if_a_page_tells_after_the_next_was_shown(
    booth: Booth, ann: Seat, clock: Clock
) -> None:
    first = look(booth, ann, clock, 8)
    second = load(booth, ann)
    booth.leave(ann, first, 8)
    clock.passes(4)
    assert taken(booth, ann, second, 4) == 12


def test_going_back_and_forth_counts_each_ballot_for_itself(
    booth: Booth, ann: Seat, clock: Clock
) -> None:
    first = look(booth, ann, clock, 5)
    assert taken(booth, ann, first, 5) == 5
    for back, seconds in ((0, 2), (1, 10), (0, 1)):
        page = look(booth, ann, clock, seconds, back=back)
        booth.leave(ann, page, seconds)
    assert taken(booth, ann, page, 1) == 3
    # The first choice is changed: 5 then, 10 without a change, 4 now.
    page = look(booth, ann, clock, 4, back=2)
    assert taken(booth, ann, page, 4) == 19


def test_a_hidden_page_that_tells_several_times_is_counted_once(
    booth: Booth, ann: Seat, clock: Clock
) -> None:
    page = look(booth, ann, clock, 60)
    for seen in (2, 5, 5, 3):
        booth.leave(ann, page, seen)
    assert taken(booth, ann, page, 5.5) == 5.5
    page = look(booth, ann, clock, 60)
    booth.leave(ann, page, 9)
    # A vote that claims less than its page reported.
    assert taken(booth, ann, page, 1) == 9


def test_two_tabs_side_by_side_count_no_longer_than_time_passes(
    booth: Booth, ann: Seat, clock: Clock
) -> None:
    one = look(booth, ann, clock, 1)
    other = look(booth, ann, clock, 9)
    booth.leave(ann, one, 10)
    assert taken(booth, ann, other, 9) == 10
    # One behind the other.
    one = look(booth, ann, clock, 1)
    other = look(booth, ann, clock, 9)
    booth.leave(ann, one, 4)
    assert taken(booth, ann, other, 5) == 9


def test_a_page_tells_nothing_of_a_ballot_that_has_a_choice_since(
    booth: Booth, ann: Seat, clock: Clock
) -> None:
    page, tab = load(booth, ann), load(booth, ann)
    clock.passes(2)
    assert taken(booth, ann, page, 2) == 2
    clock.passes(60)
    for old in (page, tab):
        booth.leave(ann, old, 62)
    again = look(booth, ann, clock, 1, back=1)
    assert taken(booth, ann, again, 1) == 3
    booth.hand_in(ann)
    booth.close()
    lines = len(booth.journal.lines)
    booth.leave(ann, again, 50)
    assert (ann.looks, len(booth.journal.lines)) == ({}, lines)


def test_what_was_reported_is_kept_and_counts_after_a_kill(audited: Audited, clock: Clock) -> None:
    warehouse = audited()
    with _booth.open_booth(warehouse, "quick", {"limit": 6}) as booth:
        ann = booth.seat("ann")
        load(booth, ann)  # says nothing any more
        clock.passes(7)
        reported = look(booth, ann, clock, 2)
        booth.leave(ann, reported, 2)
    clock.passes(600)
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        ann = booth.seats["ann"]
        assert [*ann.looks.values()] == [{1007.0: 2.0}]
        # The same again adds nothing.
        booth.leave(ann, reported, 2)
        page = look(booth, ann, clock, 1)
        assert taken(booth, ann, page, 1) == 3
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        assert [choice.seconds for choice in booth.seats["ann"].chosen.values()] == [3]
        assert booth.seats["ann"].looks == {}


def test_a_page_from_before_a_restart(audited: Audited, clock: Clock) -> None:
    warehouse = audited()
    with _booth.open_booth(warehouse, "quick", {"limit": 6}) as booth:
        page = load(booth, booth.seat("ann"))
    clock.passes(30)
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        ann = booth.seats["ann"]
        assert taken(booth, ann, page, 25) == 25
        page = load(booth, ann)
        # A clock that was set back meanwhile.
        clock.passes(-30)
        assert taken(booth, ann, page, 5) == 0


def test_a_disk_that_does_not_take_a_look_has_none(
    booth: Booth, ann: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = look(booth, ann, clock, 5)

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(booth.journal, "write", full)
        with pytest.raises(OSError, match="No space left"):
            booth.leave(ann, page, 5)
    assert ann.looks == {}


class Client:
    """A browser without script."""

    def __init__(self, booth: Booth, voter: str) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(make_app(booth)),
            base_url="http://booth",
            follow_redirects=True,
        )
        self.page = self.post(f"/v/{booth.token(booth.seat(voter))}")
        self.place = self.page.url.path

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self._client.get(path))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._client.post(path, **more))

    def nonce(self) -> str:
        return NONCE.findall(self.get(self.place).text)[0]


def test_a_page_tells_by_a_request(booth: Booth, ann: Seat, clock: Clock) -> None:
    client = Client(booth, "ann")
    nonce = client.nonce()
    assert f'data-left="{client.place}/left"' in client.page.text
    clock.passes(20)
    for _ in range(2):
        answer = client.post(f"{client.place}/left", data={"nonce": nonce, "seen": "2500"})
        assert (answer.status_code, answer.content) == (204, b"")
    form = {"nonce": client.nonce(), "seen": "0", "choice": "Tie"}
    assert "2 of 6" in client.post(client.place, data=form).text
    assert [choice.seconds for choice in ann.chosen.values()] == [2.5]


@pytest.mark.parametrize("seen", [{}, {"seen": ""}, {"seen": "-7"}, {"seen": "1e9"}, {"seen": "²"}])
def test_a_form_that_claims_nothing_is_timed_from_its_page(
    booth: Booth, ann: Seat, clock: Clock, seen: dict[str, str]
) -> None:
    client = Client(booth, "ann")
    clock.passes(60)
    nonce = client.nonce()
    clock.passes(4)
    client.post(client.place, data={"nonce": nonce, "choice": "Tie", **seen})
    assert [choice.seconds for choice in ann.chosen.values()] == [4]


def test_what_is_forged_or_of_another_voter_adds_nothing(
    booth: Booth, ann: Seat, clock: Clock
) -> None:
    client, other = Client(booth, "ann"), Client(booth, "ben")
    own, theirs = client.nonce(), other.nonce()
    packed, _, signature = own.partition(".")
    ballot, turn, at = json.loads(base64.urlsafe_b64decode(packed))
    earlier = base64.urlsafe_b64encode(json.dumps([ballot, turn, at - 900]).encode()).decode()
    clock.passes(60)
    for nonce in (theirs, f"{earlier}.{signature}", packed, "", ".", "é.é", f"{own}x"):
        data = {"nonce": nonce, "seen": "50000"}
        assert client.post(f"{client.place}/left", data=data).status_code == 204
    mine = {"nonce": own, "seen": "50000"}
    # By another's browser, to another's page, from another site, and without a browser's cookie.
    assert other.post(f"{client.place}/left", data=mine).status_code == 403
    assert other.post(f"{other.place}/left", data=mine).status_code == 204
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
        answer = client.post(f"{client.place}/left", data=mine, headers=headers)
        assert answer.status_code == 403
    booth.renew("ann")
    assert client.post(f"{client.place}/left", data=mine).status_code == 403
    assert (ann.looks, booth.seats["ben"].looks) == ({}, {})
