"""One study's booth: its voters, their links and sessions, and what each page may do."""

import hashlib
import hmac
import json
import re
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click
import polars as pl
from pandera.typing.polars import DataFrame

from booth._ledger import Ledger, open_ledger
from booth._looks import Page, packed, shown, unpacked
from booth._sealing import Office, seal
from booth._seats import (
    Seat,
    add_seat,
    bind,
    renew_link,
    seats_of,
    write_choice,
    write_done,
    write_look,
)
from schemas.judging import Ballots, Pairs, Votes
from tasks.judging.people import CHOSEN, Programme, both_orders, draw_for, judge_of, require_shown
from warehouse.people import pairs_of, parameters_of
from warehouse.store import Warehouse

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
WAIT_SECONDS = 1.0
PAUSE_SECONDS = 20.0
"""After votes could not be saved."""


class Shown(NamedTuple):
    """What a page puts before a voter."""

    question: str
    answers: tuple[str, str]
    before: str
    """The choice made earlier; empty if there is none."""
    nonce: str
    place: int
    total: int
    back: int
    """How many steps before the next ballot it lies."""
    can_go_back: bool


class Booth:
    """The voters of a study; every method may be called from any thread."""

    def __init__(
        self,
        warehouse: Warehouse,
        study: str,
        ledger: Ledger,
        programme: Programme,
        pairs: DataFrame[Pairs],
    ) -> None:
        self.study, self.ledger, self.programme = study, ledger, programme
        self.pairs = pairs
        self._texts = {row["pair_id"]: row for row in self.pairs.iter_rows(named=True)}
        self._rows: dict[str, dict[str, dict[str, Any]]] = {}
        self._warehouse = warehouse
        self.office = Office(warehouse, study, json.dumps(parameters_of(warehouse, study)))
        self.lock = threading.RLock()
        self.seats = seats_of(ledger)
        self._ripe = threading.Event()
        self._closing = threading.Event()
        for seat in self.seats.values():
            self._draw(seat)

    def seat(self, voter: str) -> Seat:
        """Return the seat of a voter, a new one if there is none yet."""
        if not NAME.fullmatch(voter):
            raise ValueError(
                f"voter {voter!r:.80} must be 1 to 64 letters, digits, '_', '.' or '-'. "
                "The name becomes that of a judge, people/NAME."
            )
        if voter not in self.seats:
            self._draw(add_seat(self.ledger, self.seats, voter))
        return self.seats[voter]

    def renew(self, voter: str) -> None:
        """Make a new link for a voter; the old one and its session end."""
        if voter not in self.seats:
            known = ", ".join(self.seats) or "nobody"
            raise ValueError(f"{voter!r} has no link to renew. Voters of {self.study}: {known}.")
        renew_link(self.ledger, self.seats, voter)

    def token(self, seat: Seat) -> str:
        """Return the token of a voter's link."""
        return self.ledger.sign("link", seat.voter, seat.generation)

    def slug(self, seat: Seat) -> str:
        """Return the name of a voter's page, which tells nothing and opens nothing."""
        return self.ledger.sign("page", seat.voter)[:12]

    def seat_of_token(self, token: str) -> Seat | None:
        """Return whose link it is; null if nobody's."""
        return self._among(self.token(seat) for seat in self.seats.values()).get(_known(token))

    def seat_of_page(self, slug: str, session: str | None) -> Seat | None:
        """Return whose page it is; null unless it is opened in the session of that voter."""
        seat = self._among(self.slug(seat) for seat in self.seats.values()).get(_known(slug))
        return seat if seat is not None and self.knows(seat, session) else None

    def knows(self, seat: Seat, session: str | None) -> bool:
        """Tell whether a session is that in which the voter's link was first opened."""
        return (
            session is not None
            and seat.session is not None
            and hmac.compare_digest(seat.session, _digest(session))
        )

    def sit_down(self, seat: Seat, session: str | None) -> str | None:
        """Return the session of a voter who opens the link: the one there is, or the first one.

        Null if the link was opened in another session before.
        """
        with self.lock:
            if seat.session is None:
                session = secrets.token_urlsafe(32)
                bind(self.ledger, seat, _digest(session))
                return session
            return session if self.knows(seat, session) else None

    def show(self, seat: Seat, back: int) -> Shown | None:
        """Put a ballot before a voter; null if there is none so many steps back."""
        with self.lock:
            ballot = seat.ballot_at(back)
            if ballot is None:
                return None
            question, answers = self.texts_of(seat, ballot)
            before = seat.chosen[ballot].label if ballot in seat.chosen else ""
            return Shown(
                question,
                answers,
                before,
                self._nonce(seat, ballot),
                seat.answered + 1 - back,
                len(seat.order),
                back,
                back < len(seat.changeable),
            )

    def is_ballot_of(self, seat: Seat, ballot: str) -> bool:
        """Tell whether a ballot is of a voter and of this study."""
        return ballot in self._rows[seat.voter]

    def texts_of(self, seat: Seat, ballot: str) -> tuple[str, tuple[str, str]]:
        """Return the question of a ballot, and its answers as they are shown."""
        row = self._rows[seat.voter][ballot]
        pair = self._texts[row["pair_id"]]
        other = {"anchor": "target", "target": "anchor"}[row["shown_first"]]
        return pair["question"], (pair[row["shown_first"]], pair[other])

    def votes_of(self, ballots: Iterable[str]) -> dict[str, str]:
        """Return the votes that ballots have in the warehouse."""
        among = pl.DataFrame({"ballot_id": list(ballots)}, schema={"ballot_id": pl.String})
        votes = self._warehouse.read(Votes, among=among)
        return dict(votes.select("ballot_id", "choice").iter_rows())

    def leave(self, seat: Seat, nonce: str, seen: float | None) -> None:
        """Take note for how many seconds a page was seen, if it is one that was shown.

        A page whose ballot has a choice since then, or whose time is known, changes nothing.
        """
        with self.lock:
            page = self._read(seat, nonce)
            if page is not None and seat.may_look(page):
                write_look(self.ledger, seat, page, seen)

    def vote(self, seat: Seat, nonce: str, label: str, seen: float | None) -> str | None:
        """Take a choice, if its page is the last one shown; return the ballot.

        A page that was sent twice, or that another page has overtaken, changes nothing. ``seen``
        are the seconds that the page says it was visible; null if it says nothing.
        """
        if label not in CHOSEN:
            return None
        with self.lock:
            page = self._read(seat, nonce)
            if page is None or page.turn != seat.turns:
                return None
            if page.ballot not in (seat.next_ballot(), *seat.changeable):
                return None
            seconds = seat.seconds_with(page, seen)
            write_choice(self.ledger, seat, page.ballot, label, seconds)
            if seat.ripe():
                self._ripe.set()
            return page.ballot

    def hand_in(self, seat: Seat) -> None:
        """Let all choices of a voter become votes."""
        with self.lock:
            write_done(self.ledger, seat)
            self._ripe.set()

    def keep_sealing(self) -> None:
        """Save what is ripe, until the booth closes."""
        while not self._closing.is_set():
            if self._ripe.wait(WAIT_SECONDS):
                self._ripe.clear()
                for seat in list(self.seats.values()):
                    if not seal(self.office, seat, self.lock):
                        self._ripe.set()
                        self._closing.wait(PAUSE_SECONDS)

    def stop_sealing(self) -> None:
        """Let :meth:`keep_sealing` come to its end."""
        self._closing.set()
        self._ripe.set()

    def close(self) -> bool:
        """Save all choices; tell whether that was done."""
        seats = list(self.seats.values())
        saved = [seal(self.office, seat, self.lock, everything=True) for seat in seats]
        return all(saved)

    def _draw(self, seat: Seat) -> None:
        """Draw a voter's ballots; choices on pairs that are no longer there stay in the ledger."""
        judge = judge_of(seat.voter)
        seat.every = both_orders(self.pairs, judge)
        votes = self._warehouse.read(Votes, among=seat.every.select("ballot_id"))
        seat.seal(votes["ballot_id"])
        homeless = seat.chosen.keys() - set(seat.every["ballot_id"])
        for ballot in homeless:
            seat.chosen.pop(ballot)
        if homeless:
            click.echo(
                f"{len(homeless)} choices of {seat.voter} are on pairs that study {self.study} "
                "has no more: they are not saved.",
                err=True,
            )
        known = [*seat.sealed, *seat.chosen]
        voted = Ballots.of(seat.every.filter(pl.col("ballot_id").is_in(known)))
        seat.draw = draw_for(self.pairs, judge, seat.number, self.programme, voted)
        self._rows[seat.voter] = {r["ballot_id"]: r for r in seat.every.iter_rows(named=True)}
        if seat.ripe():
            self._ripe.set()

    def _among(self, names: Iterable[str]) -> dict[str, Seat]:
        """Index seats by digests of secret names, so that no comparison tells how far it got."""
        return {_known(name): seat for name, seat in zip(names, self.seats.values(), strict=True)}

    def _nonce(self, seat: Seat, ballot: str) -> str:
        """Return what a page proves with that it was shown, for this turn of this voter only."""
        page = packed(shown(ballot, seat.turns))
        return f"{page}.{self.ledger.sign('nonce', seat.voter, seat.generation, page)}"

    def _read(self, seat: Seat, nonce: str) -> Page | None:
        """Return the page that a nonce is of; null if this voter was shown none such."""
        page, _, signature = nonce.partition(".")
        expected = self.ledger.sign("nonce", seat.voter, seat.generation, page)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            return None
        return unpacked(page)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_known = _digest


@contextmanager
def open_booth(warehouse: Warehouse, study: str, changes: dict[str, Any]) -> Iterator[Booth]:
    """Open a study's booth alone; ``changes`` to what voters are shown are kept for next time.

    Raises
    ------
    ValueError
        If voters would be shown nothing, or less than a sample: then nothing is kept.
    """
    parameters = parameters_of(warehouse, study)
    with open_ledger(warehouse.path, study) as ledger:
        kept = _kept(ledger)
        told = {**kept, **changes}
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in told.items()
        }
        programme = Programme()._replace(**fields, seed=parameters["seed"])
        pairs = pairs_of(warehouse, study)
        require_shown(pairs, programme)
        if told != kept:
            ledger.write({"what": "programme", "programme": told})
        if ledger.unreadable:
            click.echo(
                f"{ledger.unreadable} lines of the journal cannot be read: cut when the machine "
                "went down, before they counted.",
                err=True,
            )
        yield Booth(warehouse, study, ledger, programme, pairs)


def _kept(ledger: Ledger) -> dict[str, Any]:
    """Return what voters were shown the last time."""
    kept = [line["programme"] for line in ledger.lines if line.get("what") == "programme"]
    told: dict[str, Any] = kept[-1] if kept else {}
    return told
