"""Voters: their links, the ballots they see next, and their choices so far."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import polars as pl

from booth._event_journal import EventJournal
from booth._viewing_time import Page, seen_for, total
from schemas.judging import Ballots
from tasks.judging.people import CHOSEN, Draw

STILL_OPEN = 10
"""Minimum number of a voter's last choices that can still be changed."""


class VoterChoice(NamedTuple):
    """Last choice of a voter on a ballot."""

    label: str
    seconds: float
    """Seconds on the page, over all looks."""
    times: int
    at: datetime
    turn: int
    """First turn of the voter after this choice."""


@dataclass
class Seat:
    """One voter."""

    voter: str
    number: int
    generation: int = 1
    """Generation of the link: a renewed link invalidates earlier ones."""
    session: str | None = None
    """Digest of the session that the link was first opened in."""
    draw: Draw | None = None
    every: pl.DataFrame = field(default_factory=Ballots.empty)
    """Ballots of all pairs of the study, in either order."""
    chosen: dict[str, VoterChoice] = field(default_factory=dict)
    """Choices that are not in the warehouse yet, by ballot, in the order first cast."""
    saved: set[str] = field(default_factory=set)
    """Ballots with a vote in the warehouse."""
    saving: set[str] = field(default_factory=set)
    """Ballots whose votes are being saved."""
    turns: int = 0
    """Choices made so far."""
    done: bool = False
    looks: dict[str, dict[float, float]] = field(default_factory=dict)
    """Seconds visible since the last choice, by ballot and by the time when its page was shown."""

    @property
    def order(self) -> list[str]:
        """Ballots in the order in which they are shown."""
        return self.draw.order if self.draw else []

    @property
    def answered(self) -> int:
        """Number of ballots of this draw that have a choice."""
        return sum(ballot in self.chosen or ballot in self.saved for ballot in self.order)

    @property
    def changeable(self) -> list[str]:
        """Ballots whose choice can still be changed, oldest first."""
        return [ballot for ballot in self.chosen if ballot not in self.saving]

    def next_ballot(self) -> str | None:
        """Return the first ballot without a choice."""
        return next((b for b in self.order if b not in self.chosen and b not in self.saved), None)

    def ballot_at(self, back: int) -> str | None:
        """Return the ballot so many steps before the next one; null if there is none."""
        if back == 0:
            return self.next_ballot()
        before = self.changeable
        return before[-back] if 0 < back <= len(before) else None

    def accepts_look(self, page: Page) -> bool:
        """Tell whether a page's time can still count: no newer choice, and no saved vote."""
        ballot = page.ballot
        if ballot in self.saved or ballot in self.saving:
            return False
        return ballot not in self.chosen or page.turn >= self.chosen[ballot].turn

    def look(self, ballot: str, shown_at: float, seconds: float) -> None:
        """Record the seconds for which a page has been visible; repeated reports add nothing."""
        looks = self.looks.setdefault(ballot, {})
        looks[shown_at] = max(seconds, looks.get(shown_at, 0.0))

    def seconds_with(self, page: Page, claim: float | None) -> float:
        """Return the total viewing time of a ballot, including the page with the vote."""
        looks = self.looks.get(page.ballot, {})
        last = max(seen_for(page, claim), looks.get(page.shown_at, 0.0))
        before = self.chosen[page.ballot].seconds if page.ballot in self.chosen else 0.0
        return before + total({**looks, page.shown_at: last})

    def choose(self, ballot: str, label: str, seconds: float, at: datetime) -> None:
        """Record a choice; it replaces an earlier one on the same ballot."""
        times = self.chosen[ballot].times + 1 if ballot in self.chosen else 1
        self.turns += 1
        self.chosen[ballot] = VoterChoice(label, seconds, times, at, self.turns)
        self.looks.pop(ballot, None)
        self.done = False

    def final_ballots(self) -> list[str]:
        """Return the ballots to save now: all if the voter is done, else all but the last few."""
        waiting = self.changeable
        if self.done:
            return waiting
        return waiting[:-STILL_OPEN] if len(waiting) >= 2 * STILL_OPEN else []

    def mark_saved(self, ballots: Iterable[str]) -> None:
        """Record that the votes on ballots are in the warehouse."""
        for ballot in list(ballots):
            self.chosen.pop(ballot, None)
            self.looks.pop(ballot, None)
            self.saving.discard(ballot)
            self.saved.add(ballot)


def seats_of(journal: EventJournal) -> dict[str, Seat]:
    """Rebuild the seats of all voters from the journal."""
    seats: dict[str, Seat] = {}
    for line in journal.lines:
        voter = line.get("voter")
        if line.get("what") == "voter":
            seats.setdefault(str(voter), Seat(str(voter), int(line["number"])))
        elif voter in seats:
            _apply(line, seats[str(voter)])
    return seats


def add_seat(journal: EventJournal, seats: dict[str, Seat], voter: str) -> Seat:
    """Add a voter."""
    journal.write({"what": "voter", "voter": voter, "number": len(seats)})
    seats[voter] = Seat(voter, len(seats))
    return seats[voter]


def _apply(line: dict[str, Any], seat: Seat) -> None:
    what = line.get("what")
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


def record(journal: EventJournal, seat: Seat, what: str, **values: Any) -> None:
    """Record an event of a voter: on the disk first, then in memory."""
    line = {"what": what, "voter": seat.voter, **values}
    journal.write(line)
    _apply(line, seat)


def write_choice(
    journal: EventJournal, seat: Seat, ballot: str, label: str, seconds: float
) -> None:
    """Record a choice."""
    values = {"ballot": ballot, "choice": label, "seconds": round(seconds, 3)}
    record(journal, seat, "vote", **values, at=datetime.now(UTC).isoformat())


def write_look(journal: EventJournal, seat: Seat, page: Page, claim: float | None) -> None:
    """Record the viewing time of a page if it has grown."""
    ballot, shown_at = page.ballot, page.shown_at
    seconds = round(seen_for(page, claim), 3)
    if seconds > seat.looks.get(ballot, {}).get(shown_at, 0.0):
        record(journal, seat, "look", ballot=ballot, shown_at=shown_at, seconds=seconds)
