"""Save final choices as votes in the warehouse."""

import os
import socket
import threading
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import polars as pl

from booth._voters import Seat
from schemas.judging import Ballots, Judges, Prompts, Votes
from tasks.judging.people import CHOSEN, TIMED, judge_of, people_prompt, people_table
from tasks.kit.code_digest import code_version, user_name
from tasks.kit.command_line import print_notice
from tasks.kit.printable import several
from warehouse.store import Saving, Warehouse, WarehouseError


class VoteWriter:
    """Saves votes as one run of the flow ``booth``."""

    def __init__(self, warehouse: Warehouse, study: str, parameters: str) -> None:
        self.warehouse, self.study, self._parameters = warehouse, study, parameters
        self._run: str | None = None
        self._saved = 0
        self._lock = threading.Lock()

    def save(self, voter: str, ballots: pl.DataFrame, votes: pl.DataFrame) -> int:
        """Save votes and the rows they refer to in one transaction; return how many are new."""
        judge = judge_of(voter)
        with self._lock:
            if self._run is None:
                run = str(uuid4())
                self.warehouse.start_run(self._row(run))
                self._run = run
            new = self.warehouse.save(
                [
                    Saving(Judges, people_table([judge])),
                    Saving(Prompts, people_prompt()),
                    Saving(Ballots, ballots),
                    Saving(Votes, votes, first_wins=True),
                ],
                run=self._run,
                study=self.study,
                counts={"ended_at": datetime.now(UTC), "asked": self._saved + votes.height},
            )
            self._saved += votes.height
            return new

    def _row(self, run: str) -> dict[str, Any]:
        now = datetime.now(UTC)
        return {
            "run": run,
            "flow": "booth",
            "study": self.study,
            "user": user_name(),
            "process": f"{socket.gethostname()}/{os.getpid()}",
            "parameters": self._parameters,
            "fingerprint": run,
            "state": "completed",
            "started_at": now,
            "ended_at": now,
            "code_version": code_version(),
            "asked": 0,
        }


def save_choices(
    writer: VoteWriter, seat: Seat, lock: threading.RLock, *, everything: bool = False
) -> bool:
    """Save the final choices of a voter, or all; return whether they could be saved."""
    with lock:
        ballots = seat.changeable if everything else seat.final_ballots()
        chosen = {ballot: seat.chosen[ballot] for ballot in ballots}
        seat.saving |= chosen.keys()
    if not chosen:
        return True
    votes = pl.DataFrame(
        [
            {
                "ballot_id": ballot,
                "choice": CHOSEN[choice.label],
                "raw": choice.label,
                "finish_reason": TIMED,
                "seconds": choice.seconds,
                "attempts": choice.times,
                "cast_at": choice.at,
            }
            for ballot, choice in chosen.items()
        ]
    )
    theirs = seat.every.filter(pl.col("ballot_id").is_in(ballots))
    try:
        writer.save(seat.voter, Ballots.of(theirs), Votes.of(votes))
    except WarehouseError as error:
        with lock:
            seat.saving -= chosen.keys()
        print_notice(
            f"{several(len(chosen), 'vote')} of {seat.voter} could not be saved in the warehouse "
            f"yet; the booth's journal keeps them: {error}"
        )
        return False
    with lock:
        seat.mark_saved(ballots)
    return True
