"""Claims: ballots that only this run asks, until their votes are saved."""

import asyncio
from datetime import UTC, datetime

import polars as pl
from pandera.typing.polars import DataFrame

from flows.running.counts import Counts
from flows.running.recovery import journal_of
from schemas.judging import Ballots, Votes
from warehouse.store import Saving, Warehouse


class Claims:
    """The ballots of one run: waiting, claimed, voted."""

    def __init__(self, run: str, warehouse: Warehouse, counts: Counts) -> None:
        self.run, self.warehouse, self.counts = run, warehouse, counts
        self.journal = journal_of(warehouse, run)

    def waiting(self, ballots: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Return the ballots without a vote, and count all ballots."""
        cast = self.warehouse.read(Votes, among=ballots.select("ballot_id"))
        waiting = Ballots.of(ballots.join(cast, on="ballot_id", how="anti"))
        planned = ballots["ballot_id"].n_unique()
        self.counts.numbers["planned"] = planned
        self.counts.numbers["from_warehouse"] = planned - waiting["ballot_id"].n_unique()
        return waiting

    def claim(self, ballots: DataFrame[Ballots]) -> tuple[DataFrame[Ballots], DataFrame[Ballots]]:
        """Claim ballots; return those of this run, and those that another run asks."""
        if ballots.is_empty():
            return ballots, ballots
        mine = self.warehouse.claim(ballots, self.run)
        ours = ballots.join(mine, on="ballot_id", how="semi")
        rest = ballots.join(mine, on="ballot_id", how="anti")
        cast = self.warehouse.read(Votes, among=rest.select("ballot_id")) if rest.height else rest
        self.counts.numbers["from_warehouse"] += cast.height
        return Ballots.of(ours), Ballots.of(rest.join(cast, on="ballot_id", how="anti"))

    async def save(
        self,
        votes: DataFrame[Votes],
        errors: list[str],
        *,
        release: pl.DataFrame | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        """Save votes; the first vote of a ballot is kept. Only saved votes are counted.

        The claims on the ballots to ``release`` are removed.
        """
        await asyncio.to_thread(
            self.warehouse.save,
            [Saving(Votes, votes, first_wins=True)],
            run=self.run,
            counts={**self.counts.columns(votes, errors), "seen_at": datetime.now(UTC)},
            release=release,
            patience_seconds=patience_seconds,
        )
        self.counts.add_votes(votes, errors)

    def votes(self, ballots: DataFrame[Ballots]) -> DataFrame[Votes]:
        """Return the votes on ``ballots``."""
        return self.warehouse.read(Votes, among=ballots.select("ballot_id"))
