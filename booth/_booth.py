"""One study's booth: its voters, their links and sessions, and what each page may do."""

import hashlib
import hmac
import json
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from booth._event_journal import EventJournal, open_event_journal
from booth._saving import VoteWriter, save_choices
from booth._viewing_time import Page, packed, shown, unpacked
from booth._voters import Seat, add_seat, record, seats_of, write_choice, write_look
from schemas.judging import Ballots, Pairs, Votes
from tasks.judging.people import CHOSEN, Programme, both_orders, draw_for, judge_of, require_shown
from tasks.kit.command_line import print_notice
from tasks.validation.unknown_names import unknown
from warehouse.evidence.people import audited_studies, pairs_of, parameters_of
from warehouse.store import Warehouse

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
WAIT_SECONDS = 1.0
PAUSE_SECONDS = 20.0
"""Pause after votes could not be saved."""


class BallotPage(NamedTuple):
    """Content of a ballot page."""

    question: str
    answers: tuple[str, str]
    before: str
    """The choice made earlier; empty if there is none."""
    nonce: str
    place: int
    total: int
    back: int
    """Number of steps back from the next ballot."""
    can_go_back: bool


class Booth:
    """The voters of a study; every method may be called from any thread."""

    def __init__(
        self,
        warehouse: Warehouse,
        study: str,
        journal: EventJournal,
        programme: Programme,
        pairs: DataFrame[Pairs],
    ) -> None:
        self.study, self.journal, self.programme = study, journal, programme
        self.pairs = pairs
        self._texts = {row["pair_id"]: row for row in self.pairs.iter_rows(named=True)}
        self._rows: dict[str, dict[str, dict[str, Any]]] = {}
        self._warehouse = warehouse
        self.writer = VoteWriter(warehouse, study, json.dumps(parameters_of(warehouse, study)))
        self.lock = threading.RLock()
        self.seats = seats_of(journal)
        self._has_final = threading.Event()
        self._closing = threading.Event()
        for seat in self.seats.values():
            self._draw(seat)

    def seat(self, voter: str) -> Seat:
        """Return the seat of a voter; create it if the voter is new."""
        if not NAME.fullmatch(voter):
            raise ValueError(
                f"voter name {voter!r:.80} is not allowed: it becomes the judge name people/NAME. "
                "Use 1 to 64 letters, digits, '_', '.' or '-'."
            )
        if voter not in self.seats:
            self._draw(add_seat(self.journal, self.seats, voter))
        return self.seats[voter]

    def renew(self, voter: str) -> None:
        """Create a new link for a voter; the old link and its session become invalid."""
        if voter not in self.seats:
            known = ", ".join(self.seats) or "nobody"
            raise ValueError(f"--renew: {voter!r} is not a voter of {self.study}. Voters: {known}.")
        seat = self.seats[voter]
        record(self.journal, seat, "link", generation=seat.generation + 1)

    def token(self, seat: Seat) -> str:
        """Return the token of a voter's link."""
        return self.journal.sign("link", seat.voter, seat.generation)

    def slug(self, seat: Seat) -> str:
        """Return the slug of a voter's page, which reveals nothing and grants no access."""
        return self.journal.sign("page", seat.voter)[:12]

    def seat_of_token(self, token: str) -> Seat | None:
        """Return the voter of a link; null if the link is unknown."""
        return self._seat_named(token, self.token)

    def seat_of_page(self, slug: str, session: str | None) -> Seat | None:
        """Return the voter of a page; null unless the session is that voter's."""
        seat = self._seat_named(slug, self.slug)
        return seat if seat is not None and self.knows(seat, session) else None

    def knows(self, seat: Seat, session: str | None) -> bool:
        """Tell whether the voter's link was first opened in this session."""
        return (
            session is not None
            and seat.session is not None
            and hmac.compare_digest(seat.session, _digest(session))
        )

    def open_session(self, seat: Seat, session: str | None) -> str | None:
        """Return the session of a voter who opens the link; create it on the first opening.

        Null if the link was opened in another session before.
        """
        with self.lock:
            if seat.session is None:
                session = secrets.token_urlsafe(32)
                bound = {"generation": seat.generation, "session": _digest(session)}
                record(self.journal, seat, "bound", **bound)
                return session
            return session if self.knows(seat, session) else None

    def show(self, seat: Seat, back: int) -> BallotPage | None:
        """Return the ballot page so many steps back; null if there is none."""
        with self.lock:
            ballot = seat.ballot_at(back)
            if ballot is None:
                return None
            question, answers = self.texts_of(seat, ballot)
            before = seat.chosen[ballot].label if ballot in seat.chosen else ""
            return BallotPage(
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
        """Tell whether a ballot belongs to a voter and to this study."""
        return ballot in self._rows[seat.voter]

    def texts_of(self, seat: Seat, ballot: str) -> tuple[str, tuple[str, str]]:
        """Return the question of a ballot, and its answers in the order shown."""
        row = self._rows[seat.voter][ballot]
        pair = self._texts[row["pair_id"]]
        other = {"anchor": "target", "target": "anchor"}[row["shown_first"]]
        return pair["question"], (pair[row["shown_first"]], pair[other])

    def votes_of(self, ballots: Iterable[str]) -> dict[str, str]:
        """Return the saved votes on ballots."""
        among = pl.DataFrame({"ballot_id": list(ballots)}, schema={"ballot_id": pl.String})
        votes = self._warehouse.read(Votes, among=among)
        return dict(votes.select("ballot_id", "choice").iter_rows())

    def leave(self, seat: Seat, nonce: str, seen: float | None) -> None:
        """Record the seconds for which a page was visible, if this booth served it.

        A page whose ballot has a choice by now, or whose time is recorded, changes nothing.
        """
        with self.lock:
            page = self._read(seat, nonce)
            if page is not None and seat.accepts_look(page):
                write_look(self.journal, seat, page, seen)

    def vote(self, seat: Seat, nonce: str, label: str, seen: float | None) -> str | None:
        """Record a choice if its page is the latest one; return the ballot.

        A page that was submitted twice, or after a newer page, changes nothing. ``seen`` are the
        seconds for which the page was visible by its own count; null without a count.
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
            write_choice(self.journal, seat, page.ballot, label, seconds)
            if seat.final_ballots():
                self._has_final.set()
            return page.ballot

    def hand_in(self, seat: Seat) -> None:
        """Make all choices of a voter final, to be saved as votes."""
        with self.lock:
            record(self.journal, seat, "done")
            self._has_final.set()

    def keep_saving(self) -> None:
        """Save final choices in a loop, until the booth closes."""
        while not self._closing.is_set():
            if self._has_final.wait(WAIT_SECONDS):
                self._has_final.clear()
                for seat in list(self.seats.values()):
                    if not save_choices(self.writer, seat, self.lock):
                        self._has_final.set()
                        self._closing.wait(PAUSE_SECONDS)

    def stop_saving(self) -> None:
        """Make :meth:`keep_saving` return."""
        self._closing.set()
        self._has_final.set()

    def close(self) -> bool:
        """Save all choices; return whether all could be saved."""
        seats = list(self.seats.values())
        saved = [save_choices(self.writer, seat, self.lock, everything=True) for seat in seats]
        return all(saved)

    def _draw(self, seat: Seat) -> None:
        """Draw a voter's ballots; choices on pairs that are gone stay in the journal only."""
        judge = judge_of(seat.voter)
        seat.every = both_orders(self.pairs, judge)
        votes = self._warehouse.read(Votes, among=seat.every.select("ballot_id"))
        seat.mark_saved(votes["ballot_id"])
        orphaned = seat.chosen.keys() - set(seat.every["ballot_id"])
        for ballot in orphaned:
            seat.chosen.pop(ballot)
        if orphaned:
            print_notice(
                f"{len(orphaned)} choices of {seat.voter} cannot be saved: study {self.study} no "
                "longer has their pairs."
            )
        known = [*seat.saved, *seat.chosen]
        voted = Ballots.of(seat.every.filter(pl.col("ballot_id").is_in(known)))
        seat.draw = draw_for(self.pairs, judge, seat.number, self.programme, voted)
        self._rows[seat.voter] = {r["ballot_id"]: r for r in seat.every.iter_rows(named=True)}
        if seat.final_ballots():
            self._has_final.set()

    def _seat_named(self, name: str, secret: Callable[[Seat], str]) -> Seat | None:
        """Return the seat with a secret name, found by digests, against timing attacks."""
        return {_digest(secret(seat)): seat for seat in self.seats.values()}.get(_digest(name))

    def _nonce(self, seat: Seat, ballot: str) -> str:
        """Return a signed nonce: proof that this page was served to this voter in this turn."""
        page = packed(shown(ballot, seat.turns))
        return f"{page}.{self.journal.sign('nonce', seat.voter, seat.generation, page)}"

    def _read(self, seat: Seat, nonce: str) -> Page | None:
        """Return the page of a nonce; null if its signature is not valid for this voter."""
        page, _, signature = nonce.partition(".")
        expected = self.journal.sign("nonce", seat.voter, seat.generation, page)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            return None
        return unpacked(page)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


SINGLE_ANSWERS = (
    "study {0!r} is about single answers, and people vote on pairs of answers. Give people's "
    "labels in a column human_label, human_grade or human_CRITERION of the data and audit them "
    "again (no vote is asked twice), or in a file: `voirdire calibrate {0} --humans FILE`."
)


@contextmanager
def open_booth(warehouse: Warehouse, study: str, changes: dict[str, Any]) -> Iterator[Booth]:
    """Open a study's booth with an exclusive lock; save ``changes`` of its options.

    Raise LookupError if the study was never audited, ValueError if voters would see no ballot, as
    none is about two answers, or less than one sample: then nothing is saved.
    """
    if study not in (known := audited_studies(warehouse)):
        first = f"Run `voirdire audit {study}` first, because people vote on its pairs."
        raise unknown("audit of study", study, known, where=f"in {warehouse.path}", step=first)
    parameters = parameters_of(warehouse, study)
    with open_event_journal(warehouse.path, study) as journal:
        earlier = _stored_options(journal)
        options = {**earlier, **changes}
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in options.items()
        }
        programme = Programme()._replace(**fields, seed=parameters["seed"])
        pairs = Pairs.of(pairs_of(warehouse, study).filter(pl.col("anchor") != ""))
        if pairs.is_empty():
            raise ValueError(SINGLE_ANSWERS.format(study))
        require_shown(pairs, programme)
        if options != earlier:
            journal.write({"what": "programme", "programme": options})
        if journal.unreadable:
            print_notice(
                f"Incomplete lines of the booth's journal were ignored: {journal.unreadable}. They "
                "were being written when the machine stopped, and no voter saw them confirmed."
            )
        yield Booth(warehouse, study, journal, programme, pairs)


def _stored_options(journal: EventJournal) -> dict[str, Any]:
    stored = [line["programme"] for line in journal.lines if line.get("what") == "programme"]
    return dict(stored[-1]) if stored else {}
