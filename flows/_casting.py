"""Many batches in flight at once; every vote is in the warehouse a second after it came."""

import asyncio
from importlib import import_module
from typing import Any

from pandera.typing.polars import DataFrame

from flows._progress import Progress
from flows._record import Record
from schemas.judging import Ballots, Pairs
from tasks import stages
from tasks.judge import shards, vote_frame

BATCHES_PER_JUDGE = 2
"""In flight at once, so that a judge is kept busy where one batch ends and the next begins."""

SECONDS_BETWEEN_SAVES = 1.0


class Box:
    """Votes that have come in and are not saved yet."""

    def __init__(self, record: Record, progress: Progress) -> None:
        self._record, self._progress = record, progress
        self._votes: list[dict[str, Any]] = []
        self._errors: list[str] = []

    def receive(self, judge: str, vote: dict[str, Any] | None, error: str | None) -> None:
        """Take what came of one ballot."""
        if vote is not None:
            self._votes.append(vote)
        if error is not None:
            self._errors.append(error)
        self._progress.advance(judge)

    async def empty(self) -> None:
        """Save what has come in."""
        votes, self._votes = self._votes, []
        errors, self._errors = self._errors, []
        if votes or errors:
            await self._record.save_votes(vote_frame(votes), errors)

    async def keep_emptying(self) -> None:
        """Save and show what has come in, until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_SAVES)
            await self.empty()
            await self._progress.publish()


async def cast_all(waiting: DataFrame[Ballots], pairs: DataFrame[Pairs], record: Record) -> None:
    """Cast the waiting ballots of all judges at the same time."""
    if waiting.is_empty():
        return
    batches = shards(waiting)
    planned: dict[str, int] = {}
    for batch in batches:
        planned[batch["judge"][0]] = planned.get(batch["judge"][0], 0) + batch.height
    progress = Progress(planned)
    box = Box(record, progress)
    limits = {judge: asyncio.Semaphore(BATCHES_PER_JUDGE) for judge in planned}

    async def cast(batch: DataFrame[Ballots]) -> None:
        async with limits[batch["judge"][0]]:
            await stages.cast_votes(batch, pairs, box.receive)

    try:
        async with asyncio.TaskGroup() as group:
            # What comes after the votes takes seconds to import: use the time of waiting.
            group.create_task(asyncio.to_thread(_import_early))
            emptying = group.create_task(box.keep_emptying())
            await asyncio.gather(*(group.create_task(cast(batch)) for batch in batches))
            emptying.cancel()
    except BaseExceptionGroup as errors:
        # The first one is the cause; the group ended the others.
        raise errors.exceptions[0] from None
    finally:
        await box.empty()
    await progress.publish()


def _import_early() -> None:
    for module in ("scipy.stats", "matplotlib.figure", "matplotlib.backends.backend_svg"):
        import_module(module)
