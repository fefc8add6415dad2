"""Many batches in flight at once; every vote is in the warehouse a second after it came."""

import asyncio
import math
import time
from importlib import import_module
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from flows._progress import Progress
from flows._record import Record
from schemas.judging import Ballots, Pairs
from tasks import stages
from tasks.judge import SHARD, shards, vote_frame
from tasks.providers import PROVIDERS
from tasks.providers._caller import Line, caller

SECONDS_BETWEEN_SAVES = 1.0
SECONDS_BETWEEN_SIGNS = 20.0


class Box:
    """Votes that have come in and are not saved yet."""

    def __init__(self, record: Record, progress: Progress) -> None:
        self._record, self.progress = record, progress
        self._votes: list[dict[str, Any]] = []
        self._errors: list[str] = []
        self._saved_at = time.monotonic()

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
        votes, self._votes = self._votes, []
        errors, self._errors = self._errors, []
        if votes or errors:
            await self._record.save_votes(vote_frame(votes), errors)
            self._saved_at = time.monotonic()
        self._record.all_saved = not self._votes

    async def keep_emptying(self) -> None:
        """Save and show what has come in, until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_SAVES)
            await self.empty()
            await self.progress.publish()
            if time.monotonic() - self._saved_at > SECONDS_BETWEEN_SIGNS:
                await self._record.live()
                self._saved_at = time.monotonic()


async def cast_all(waiting: DataFrame[Ballots], pairs: DataFrame[Pairs], record: Record) -> None:
    """Cast the waiting ballots of all judges at the same time."""
    if waiting.is_empty():
        return
    progress = Progress(dict(waiting.unique("ballot_id").group_by("judge").len().iter_rows()))
    box = Box(record, progress)
    line = caller().begin(record.run, record.journal, record.study.budget_usd)
    try:
        async with asyncio.TaskGroup() as group:
            # What comes after the votes takes seconds to import: use the time of waiting.
            group.create_task(asyncio.to_thread(_import_early))
            emptying = group.create_task(box.keep_emptying())
            while True:
                theirs = await _cast_claimed(waiting, pairs, record, box, line)
                if theirs.is_empty():
                    break
                # Another run is asking these: its votes serve this one too.
                await asyncio.sleep(SECONDS_BETWEEN_SAVES)
                await record.live()
                waiting = theirs
            emptying.cancel()
    except BaseExceptionGroup as errors:
        # The first one is the cause; the group ended the others.
        raise errors.exceptions[0] from None
    finally:
        await box.empty()
    await progress.publish()


async def _cast_claimed(
    waiting: DataFrame[Ballots], pairs: DataFrame[Pairs], record: Record, box: Box, line: Line
) -> DataFrame[Ballots]:
    """Cast what no other run asks; return what one does."""
    batches = shards(waiting)
    limits = {
        judge: asyncio.Semaphore(_batches_at_once(judge)) for judge in waiting["judge"].unique()
    }
    theirs: list[DataFrame[Ballots]] = []

    async def cast(batch: DataFrame[Ballots]) -> None:
        async with limits[batch["judge"][0]]:
            mine, others = await asyncio.to_thread(record.claim, batch)
            theirs.append(others)
            box.progress.advance(batch["judge"][0], batch.height - mine.height - others.height)
            if not mine.is_empty():
                await stages.cast_votes(mine, pairs, line, box.receive)

    async with asyncio.TaskGroup() as group:
        for batch in batches:
            group.create_task(cast(batch))
    return Ballots.of(pl.concat(theirs))


def _batches_at_once(judge: str) -> int:
    """Return how many keep a judge busy, also where one batch ends and the next begins."""
    most = PROVIDERS[judge.split("/", maxsplit=1)[0]].provider.concurrency or SHARD
    return 1 + math.ceil(most / SHARD)


def _import_early() -> None:
    for module in ("scipy.stats", "matplotlib.figure", "matplotlib.backends.backend_svg"):
        import_module(module)
