"""Many shards in flight at once; every vote is in the warehouse a second after it came."""

import asyncio
import math
from importlib import import_module
from threading import Thread
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows._batching import Batching
from flows._dead_runs import mark_dead_runs
from flows._progress import Progress, notices
from flows._record import Record
from schemas.judging import Ballots, Pairs
from tasks import stages
from tasks.judge import SHARD, shards, vote_frame
from tasks.providers import JUDGES, PROVIDERS
from tasks.providers._caller import Line, caller
from tasks.providers._serving import served
from tasks.sequential import KEY, Schedule, mark_stops, probes

SECONDS_BETWEEN_SAVES = 1.0
LONGEST_WAIT_SECONDS = 5.0


class Box:
    """Votes that have come in and are not saved yet."""

    def __init__(self, record: Record, progress: Progress) -> None:
        self._record, self.progress = record, progress
        self._votes: list[dict[str, Any]] = []
        self._errors: list[str] = []
        self._emptying = asyncio.Lock()

    def receive(self, judge: str, vote: dict[str, Any] | None, error: str | None) -> None:
        """Take what came of one ballot."""
        if vote is not None:
            self._votes.append(vote)
        if error is not None:
            self._errors.append(error)
        self._record.all_saved = False
        self.progress.advance(judge)

    async def empty(self) -> None:
        """Save what has come in."""
        async with self._emptying:
            votes, self._votes = self._votes, []
            errors, self._errors = self._errors, []
            if votes or errors:
                await self._record.save_votes(vote_frame(votes), errors)
            self._record.all_saved = not self._votes

    async def keep_emptying(self) -> None:
        """Save and show what has come in, until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_SAVES)
            await self.empty()
            await self.progress.publish()


async def cast_all(
    ballots: DataFrame[Ballots],
    waiting: DataFrame[Ballots],
    pairs: DataFrame[Pairs],
    schedule: Schedule,
    record: Record,
) -> None:
    """Cast the waiting ballots of all judges at the same time."""
    if waiting.is_empty():
        return
    # Judges that ask the same share a vote: the first one asks.
    waiting = Ballots.of(waiting.sort("judge").unique("ballot_id", keep="first"))
    progress = Progress(dict(waiting.group_by("judge").len().iter_rows()))
    box = Box(record, progress)
    line = caller().begin(record.run, record.journal, record.study.budget_usd, notices())
    batching = Batching(pairs, record, line, box.receive, box.empty)
    desk = _Desk(pairs, schedule, record, box, line, batching)
    try:
        async with served(progress.planned), asyncio.TaskGroup() as group:
            emptying = group.create_task(box.keep_emptying())
            judges = (
                (_of(ballots, judge), _of(waiting, judge)) for judge in sorted(progress.planned)
            )
            await asyncio.gather(*(group.create_task(desk.cast_judge(*both)) for both in judges))
            emptying.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    finally:
        await box.empty()
        await asyncio.to_thread(line.hang_up)
    # The report takes half a second to import, while the statistics are made.
    Thread(target=import_module, args=["matplotlib.backends.backend_svg"], daemon=True).start()
    await progress.publish()


def _first(error: BaseException) -> BaseException:
    """Return the cause of a group of errors: the first one, which ended the others."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Desk(NamedTuple):
    """What is needed to cast ballots."""

    pairs: DataFrame[Pairs]
    schedule: Schedule
    record: Record
    box: Box
    line: Line
    batching: Batching

    async def cast_judge(self, ballots: DataFrame[Ballots], waiting: DataFrame[Ballots]) -> None:
        """Cast the ballots of one judge, all at once or one pair of orders after another."""
        if not self.schedule.sequential:
            await self.cast(waiting)
            return
        tried = waiting.clear().select("ballot_id")
        turn = probes(ballots) if self.schedule.probe else ballots.clear()
        while True:
            turn = Ballots.of(turn.join(waiting, on="ballot_id", how="semi"))
            await self.cast(Ballots.of(turn.join(tried, on="ballot_id", how="anti")))
            # A ballot that failed is not tried again in this run, nor what would follow it.
            tried = pl.concat([tried, turn.select("ballot_id")]).unique()
            await self.box.empty()
            marked = mark_stops(ballots, self.record.votes(ballots), self.schedule)
            turn = Ballots.of(
                ballots.join(marked.filter("open"), on=KEY, how="semi").join(
                    tried, on="ballot_id", how="anti"
                )
            )
            if turn.is_empty():
                self.box.progress.finish(ballots["judge"][0])
                return

    async def cast(self, waiting: DataFrame[Ballots]) -> None:
        """Cast ballots; wait for those that another run asks, whose votes serve this one too."""
        pause = SECONDS_BETWEEN_SAVES
        while not (waiting := await self.batching.adopt(waiting)).is_empty():
            waiting = await self._cast_claimed(waiting)
            if not waiting.is_empty():
                await asyncio.sleep(pause)
                await asyncio.to_thread(mark_dead_runs, self.record.warehouse)
                # The other run may wait for a batch, for hours.
                pause = min(1.1 * pause, LONGEST_WAIT_SECONDS)

    async def _cast_claimed(self, waiting: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Cast what no other run asks; return what one does."""
        if JUDGES[waiting["judge"][0]].mode == "batch":
            return await self._cast_batch(waiting)
        limit = asyncio.Semaphore(_shards_at_once(waiting["judge"][0]))
        theirs = [waiting.clear()]

        async def cast(shard: DataFrame[Ballots]) -> None:
            async with limit:
                mine, others = await asyncio.to_thread(self.record.claim, shard)
                theirs.append(others)
                done = shard.height - mine.height - others.height
                self.box.progress.advance(shard["judge"][0], done)
                if not mine.is_empty():
                    await stages.cast_votes(mine, self.pairs, self.line, self.box.receive)
                    await self._release(mine)

        async with asyncio.TaskGroup() as group:
            for shard in shards(waiting):
                group.create_task(cast(shard))
        return Ballots.of(pl.concat(theirs))

    async def _cast_batch(self, waiting: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Cast in batches what no other run asks; return what one does."""
        once = Ballots.of(waiting.unique("ballot_id"))
        mine, others = await asyncio.to_thread(self.record.claim, once)
        self.box.progress.advance(once["judge"][0], once.height - mine.height - others.height)
        left = await asyncio.to_thread(self.batching.unfinished, mine)
        if not left.is_empty():
            # Whoever asked them has just ended, and left a batch to wait for.
            return Ballots.of(pl.concat([mine, others]))
        await self.batching.cast(mine)
        await self._release(mine)
        return others

    async def _release(self, mine: DataFrame[Ballots]) -> None:
        """Let other runs ask what brought no vote; what did is saved before."""
        await self.box.empty()
        await asyncio.to_thread(self.record.release, mine)


def _of(ballots: DataFrame[Ballots], judge: str) -> DataFrame[Ballots]:
    return Ballots.of(ballots.filter(pl.col("judge") == judge))


def _shards_at_once(judge: str) -> int:
    """Return how many keep a judge busy, also where one shard ends and the next begins."""
    most = PROVIDERS[judge.split("/", maxsplit=1)[0]].provider.concurrency or SHARD
    return 1 + math.ceil(most / SHARD)
