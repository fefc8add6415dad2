"""Cast ballots: many shards in flight; each vote is in the warehouse within a second.

While another process holds the warehouse open, asking goes on: what a judge is asked was claimed
before, and votes wait here, as their replies do in the journal.
"""

import asyncio
import math
from contextlib import suppress
from typing import Any, NamedTuple, cast

import polars as pl
from pandera.typing.polars import DataFrame

from flows.running.claims import Claims
from flows.running.preparation import prepare_results
from flows.running.progress import Progress, notices
from flows.running.provider_batches import Batching
from flows.running.recovery import discard_journal, mark_dead_runs
from schemas.judging import Ballots, Pairs, Votes
from tasks import stages
from tasks.engine.caller import Line, caller
from tasks.engine.local_model import served
from tasks.judge import SHARD, shards, vote_frame
from tasks.judging.sequential_stopping import KEY, Schedule, mark_stops, probes
from tasks.providers import JUDGES, PROVIDERS
from warehouse.store import WarehouseBusyError

SECONDS_BETWEEN_SAVES = 1.0
SAVE_PATIENCE_SECONDS = 5.0
"""Of a save while there is still something to ask; the last one waits as long as the study says."""

PACKED = 2048
"""Votes that are packed into a frame, which takes a fraction of the memory, while they wait."""

LONGEST_WAIT_SECONDS = 5.0
SECONDS_TO_SEND = 0.2
"""After which the first ballots are on their way, so that importing delays none of them."""


class Box:
    """Votes that have come in and are not saved yet, and claims that are not needed any more."""

    def __init__(self, claims: Claims, progress: Progress) -> None:
        self._claims, self.progress = claims, progress
        self._votes: list[dict[str, Any]] = []
        self._packed: list[DataFrame[Votes]] = []
        self._errors: list[str] = []
        self._released: list[pl.DataFrame] = []
        self._emptying = asyncio.Lock()
        self.choices: dict[str, str] = {}
        """What was voted in this run, by ballot."""

    def receive(self, judge: str, vote: dict[str, Any] | None, error: str | None) -> None:
        """Take what came of one ballot."""
        if vote is not None:
            self._votes.append(vote)
            self.choices[vote["ballot_id"]] = vote["choice"]
        if error is not None:
            self._errors.append(error)
        if len(self._votes) == PACKED:
            self._pack()
        self.progress.advance(judge)

    def release(self, ballots: pl.DataFrame) -> None:
        """Let other runs ask what brought no vote, as soon as what did is saved."""
        self._released.append(ballots.select("ballot_id"))

    async def empty(self, patience_seconds: float | None = None) -> None:
        """Save what has come in; what cannot be saved stays.

        Raises
        ------
        WarehouseBusyError
            If another process holds the file for longer than is waited.
        """
        async with self._emptying:
            self._pack()
            # More of it may come in while this is saved.
            votes, errors, released = [*self._packed], [*self._errors], [*self._released]
            if votes or errors or released:
                await self._claims.save(
                    cast("DataFrame[Votes]", pl.concat([Votes.empty(), *votes])),
                    errors,
                    release=pl.concat(released) if released else None,
                    patience_seconds=patience_seconds,
                )
                del self._packed[: len(votes)]
                del self._errors[: len(errors)]
                del self._released[: len(released)]

    async def keep_emptying(self) -> None:
        """Save and show what has come in, until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_SAVES)
            with suppress(WarehouseBusyError):
                await self.empty(SAVE_PATIENCE_SECONDS)
            await self.progress.publish()

    def _pack(self) -> None:
        votes, self._votes = self._votes, []
        if votes:
            self._packed.append(vote_frame(votes))


async def cast_all(
    ballots: DataFrame[Ballots],
    waiting: DataFrame[Ballots],
    pairs: DataFrame[Pairs],
    schedule: Schedule,
    claims: Claims,
) -> DataFrame[Votes]:
    """Cast the waiting ballots of all judges at the same time; return the votes on all ballots."""
    if waiting.is_empty():
        return claims.votes(ballots)
    # Judges that ask the same share a vote: the first one asks.
    waiting = Ballots.of(waiting.sort("judge").unique("ballot_id", keep="first"))
    progress = Progress(dict(waiting.group_by("judge").len().iter_rows()))
    box = Box(claims, progress)
    budget_usd = claims.counts.study.budget_usd
    line = caller().begin(claims.run, claims.journal, budget_usd, notices())
    batching = Batching(pairs, claims, line, box.receive, box.empty)
    desk = _Desk(pairs, schedule, claims, box, line, batching)
    try:
        async with served(progress.planned), asyncio.TaskGroup() as group:
            emptying = group.create_task(box.keep_emptying())
            group.create_task(_prepare_results())
            judges = (
                (_of(ballots, judge), _of(waiting, judge)) for judge in sorted(progress.planned)
            )
            await asyncio.gather(*(group.create_task(desk.cast_judge(*both)) for both in judges))
            emptying.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    finally:
        try:
            await box.empty()
        finally:
            await asyncio.to_thread(line.hang_up)
    # Its replies are all saved; after an interrupt, replies in flight may be in it only.
    discard_journal(claims.journal)
    await progress.publish()
    return claims.votes(ballots)


async def _prepare_results() -> None:
    """Import what results and the report need, as soon as the first ballots are sent."""
    await asyncio.sleep(SECONDS_TO_SEND)
    # What cannot be imported is reported where it is used, when all votes are saved.
    with suppress(Exception):
        await asyncio.to_thread(prepare_results)


def _first(error: BaseException) -> BaseException:
    """Return the cause of a group of errors: the first one, which ended the others."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Desk(NamedTuple):
    """What is needed to cast ballots."""

    pairs: DataFrame[Pairs]
    schedule: Schedule
    claims: Claims
    box: Box
    line: Line
    batching: Batching

    async def cast_judge(self, ballots: DataFrame[Ballots], waiting: DataFrame[Ballots]) -> None:
        """Cast the ballots of one judge, all at once or one pair of orders after another."""
        if not self.schedule.sequential:
            await self.cast(waiting)
            return
        votes = await asyncio.to_thread(self._votes_on, ballots)
        held = Ballots.empty()
        if _is_live(waiting):
            # Claimed once, as the file may be busy later.
            held, _ = await self._claim(await self.batching.adopt(waiting))
        tried = waiting.clear().select("ballot_id")
        turn = probes(ballots) if self.schedule.probe else ballots.clear()
        while True:
            turn = Ballots.of(turn.join(waiting, on="ballot_id", how="semi"))
            turn = Ballots.of(turn.join(tried, on="ballot_id", how="anti"))
            votes = pl.concat([votes, await self._cast_turn(turn, held)]).unique("ballot_id")
            # A ballot that failed is not tried again in this run, nor what would follow it.
            tried = pl.concat([tried, turn.select("ballot_id")]).unique()
            marked = mark_stops(ballots, cast("DataFrame[Votes]", votes), self.schedule)
            turn = Ballots.of(
                ballots.join(marked.filter("open"), on=KEY, how="semi").join(
                    tried, on="ballot_id", how="anti"
                )
            )
            if turn.is_empty():
                self.box.release(held)
                self.box.progress.finish(ballots["judge"][0])
                return

    async def cast(self, waiting: DataFrame[Ballots]) -> None:
        """Cast ballots; wait for those that another run asks, whose votes serve this one too."""
        pause = SECONDS_BETWEEN_SAVES
        while not (waiting := await self.batching.adopt(waiting)).is_empty():
            waiting = await self._cast_free(waiting)
            if not waiting.is_empty():
                await asyncio.sleep(pause)
                await asyncio.to_thread(mark_dead_runs, self.claims.warehouse)
                # The other run may wait for a batch, for hours.
                pause = min(1.1 * pause, LONGEST_WAIT_SECONDS)

    async def _cast_turn(self, turn: DataFrame[Ballots], held: DataFrame[Ballots]) -> pl.DataFrame:
        """Cast ballots, some of which are ``held`` already; return their votes' choices."""
        mine = Ballots.of(turn.join(held, on="ballot_id", how="semi"))
        others = Ballots.of(turn.join(held, on="ballot_id", how="anti"))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask(mine))
            group.create_task(self.cast(others))
        found = (
            mine.select("ballot_id")
            .unique()
            .with_columns(choice=pl.col("ballot_id").replace_strict(self.box.choices, default=None))
        )
        if others.is_empty():
            return found.drop_nulls()
        await self.box.empty()
        return pl.concat([found.drop_nulls(), await asyncio.to_thread(self._votes_on, others)])

    async def _cast_free(self, waiting: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Cast what no other run asks; return what one does."""
        mine, others = await self._claim(waiting)
        if _is_live(waiting):
            await self._ask(mine)
        else:
            left = await asyncio.to_thread(self.batching.unfinished, mine)
            if not left.is_empty():
                # Whoever asked them has just ended, and left a batch to wait for.
                return Ballots.of(pl.concat([mine, others]))
            await self.batching.cast(mine)
        self.box.release(mine)
        return others

    async def _claim(
        self, waiting: DataFrame[Ballots]
    ) -> tuple[DataFrame[Ballots], DataFrame[Ballots]]:
        """Return the ballots that this run may ask, and those that another one asks."""
        once = Ballots.of(waiting.unique("ballot_id"))
        mine, others = await asyncio.to_thread(self.claims.claim, once)
        if done := once.height - mine.height - others.height:
            self.box.progress.advance(once["judge"][0], done)
        return mine, others

    async def _ask(self, mine: DataFrame[Ballots]) -> None:
        """Ask ballots that are claimed, in shards."""
        if mine.is_empty():
            return
        limit = asyncio.Semaphore(_shards_at_once(mine["judge"][0]))

        async def ask(shard: DataFrame[Ballots]) -> None:
            async with limit:
                await stages.cast_votes(shard, self.pairs, self.line, self.box.receive)

        async with asyncio.TaskGroup() as group:
            for shard in shards(mine):
                group.create_task(ask(shard))

    def _votes_on(self, ballots: DataFrame[Ballots]) -> pl.DataFrame:
        return self.claims.votes(ballots).select("ballot_id", "choice")


def _is_live(ballots: DataFrame[Ballots]) -> bool:
    """Tell whether the judge of ballots is asked one by one, not in batches."""
    return not ballots.is_empty() and JUDGES[ballots["judge"][0]].mode == "live"


def _of(ballots: DataFrame[Ballots], judge: str) -> DataFrame[Ballots]:
    return Ballots.of(ballots.filter(pl.col("judge") == judge))


def _shards_at_once(judge: str) -> int:
    """Return how many keep a judge busy, also where one shard ends and the next begins."""
    most = PROVIDERS[judge.split("/", maxsplit=1)[0]].provider.concurrency or SHARD
    return 1 + math.ceil(most / SHARD)
