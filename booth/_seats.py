"""Voters: who may sit down, what each is shown next, and what each has chosen so far."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import polars as pl

from booth._ledger import Ledger
from booth._looks import Page, seen_for, total
from schemas.judging import Ballots
from tasks.judging.people import CHOSEN, Draw

STILL_OPEN = 10
"""So many of a voter's last choices can be changed, at least."""


class Choice(NamedTuple):
    """What a voter last chose on a ballot."""

    label: str
    seconds: float
    """On the page, over all looks at it."""
    times: int
    at: datetime
    turn: int
    """The voter's first turn after it."""


@dataclass
class Seat:
    """One voter."""

    voter: str
    number: int
    generation: int = 1
    """Of the link: a renewed one ends those before it."""
    session: str | None = None
    """Digest of the session that the link was first opened in."""
    draw: Draw | None = None
    every: pl.DataFrame = field(default_factory=Ballots.empty)
    """Ballots of all pairs of the study, in either order."""
    chosen: dict[str, Choice] = field(default_factory=dict)
    """By ballot, in the order in which they were first cast; not yet in the warehouse."""
    sealed: set[str] = field(default_factory=set)
    """Ballots with a vote in the warehouse."""
    sealing: set[str] = field(default_factory=set)
    """Ballots on their way there."""
    turns: int = 0
    """Choices made so far."""
    done: bool = False
    looks: dict[str, dict[float, float]] = field(default_factory=dict)
    """By ballot, and by when its page was shown: the seconds it was seen, since the last choice."""

    @property
    def order(self) -> list[str]:
        """Ballots as they are to be shown."""
        return self.draw.order if self.draw else []

    @property
    def answered(self) -> int:
        """Number of this draw's ballots that have a choice."""
        return sum(ballot in self.chosen or ballot in self.sealed for ballot in self.order)

    @property
    def changeable(self) -> list[str]:
        """Ballots whose choice can still be changed, the first cast first."""
        return [ballot for ballot in self.chosen if ballot not in self.sealing]

    def next_ballot(self) -> str | None:
        """Return the first ballot without a choice."""
        return next((b for b in self.order if b not in self.chosen and b not in self.sealed), None)

    def ballot_at(self, back: int) -> str | None:
        """Return the ballot so many steps before the next one; null if there is none."""
        if back == 0:
            return self.next_ballot()
        before = self.changeable
        return before[-back] if 0 < back <= len(before) else None

    def may_look(self, page: Page) -> bool:
        """Tell whether a page's time can still count: no choice since it was shown, none saved."""
        ballot = page.ballot
        if ballot in self.sealed or ballot in self.sealing:
            return False
        return ballot not in self.chosen or page.turn >= self.chosen[ballot].turn

    def look(self, ballot: str, shown_at: float, seconds: float) -> None:
        """Take note for how long a page has been seen so far; told again, it adds nothing."""
        looks = self.looks.setdefault(ballot, {})
        looks[shown_at] = max(seconds, looks.get(shown_at, 0.0))

    def seconds_with(self, page: Page, claim: float | None) -> float:
        """Return how long a ballot has been looked at, with the page that is voted from."""
        looks = self.looks.get(page.ballot, {})
        last = max(seen_for(page, claim), looks.get(page.shown_at, 0.0))
        before = self.chosen[page.ballot].seconds if page.ballot in self.chosen else 0.0
        return before + total({**looks, page.shown_at: last})

    def choose(self, ballot: str, label: str, seconds: float, at: datetime) -> None:
        """Take a choice; a later one on the same ballot replaces it."""
        times = self.chosen[ballot].times + 1 if ballot in self.chosen else 1
        self.turns += 1
        self.chosen[ballot] = Choice(label, seconds, times, at, self.turns)
        self.looks.pop(ballot, None)
        self.done = False

    def ripe(self) -> list[str]:
        """Return the ballots to be saved now: all when done, else all but the last few."""
        waiting = self.changeable
        if self.done:
            return waiting
        return waiting[:-STILL_OPEN] if len(waiting) >= 2 * STILL_OPEN else []

    def seal(self, ballots: Iterable[str]) -> None:
        """Take note that votes are in the warehouse."""
        for ballot in list(ballots):
            self.chosen.pop(ballot, None)
            self.looks.pop(ballot, None)
            self.sealing.discard(ballot)
            self.sealed.add(ballot)


def seats_of(ledger: Ledger) -> dict[str, Seat]:
    """Read from the ledger who has a seat, and all choices ever made."""
    seats: dict[str, Seat] = {}
    for line in ledger.lines:
        _replay(line, seats)
    return seats


def add_seat(ledger: Ledger, seats: dict[str, Seat], voter: str) -> Seat:
    """Give a voter the next seat."""
    line = {"what": "voter", "voter": voter, "number": len(seats)}
    ledger.write(line)
    _replay(line, seats)
    return seats[voter]


def renew_link(ledger: Ledger, seats: dict[str, Seat], voter: str) -> None:
    """End the links that a voter was given, and the session."""
    line = {"what": "link", "voter": voter, "generation": seats[voter].generation + 1}
    ledger.write(line)
    _replay(line, seats)


def _replay(line: dict[str, Any], seats: dict[str, Seat]) -> None:
    """Let one line of the ledger happen."""
    what, voter = line.get("what"), line.get("voter")
    if what == "voter":
        seats.setdefault(str(voter), Seat(str(voter), int(line["number"])))
        return
    if voter not in seats:
        return
    seat = seats[str(voter)]
    if what == "link":
        seat.generation, seat.session = int(line["generation"]), None
    elif what == "bound" and line["generation"] == seat.generation:
        seat.session = str(line["session"])
    elif what == "vote" and line["choice"] in CHOSEN:
        at = datetime.fromisoformat(line["at"]).astimezone(UTC)
        seat.choose(str(line["ballot"]), str(line["choice"]), float(line["seconds"]), at)
    elif what == "look":
        seat.look(str(line["ballot"]), float(line["shown_at"]), float(line["seconds"]))
    elif what == "done":
        seat.done = True


def write_choice(ledger: Ledger, seat: Seat, ballot: str, label: str, seconds: float) -> None:
    """Keep a choice: on the disk first, then in mind."""
    at = datetime.now(UTC)
    ledger.write(
        {
            "what": "vote",
            "voter": seat.voter,
            "ballot": ballot,
            "choice": label,
            "seconds": round(seconds, 3),
            "at": at.isoformat(),
        }
    )
    seat.choose(ballot, label, round(seconds, 3), at)


def write_look(ledger: Ledger, seat: Seat, page: Page, claim: float | None) -> None:
    """Keep for how long a page has been seen so far, if that is news."""
    seconds = round(seen_for(page, claim), 3)
    if seconds > seat.looks.get(page.ballot, {}).get(page.shown_at, 0.0):
        ledger.write(
            {
                "what": "look",
                "voter": seat.voter,
                "ballot": page.ballot,
                "shown_at": page.shown_at,
                "seconds": seconds,
            }
        )
        seat.look(page.ballot, page.shown_at, seconds)


def write_done(ledger: Ledger, seat: Seat) -> None:
    """Keep that a voter has handed in."""
    ledger.write({"what": "done", "voter": seat.voter})
    seat.done = True


def bind(ledger: Ledger, seat: Seat, session: str) -> None:
    """Tie a seat to the session in which its link was first opened."""
    ledger.write(
        {"what": "bound", "voter": seat.voter, "generation": seat.generation, "session": session}
    )
    seat.session = session
