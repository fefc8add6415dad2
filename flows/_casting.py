"""Many batches in flight at once, each saved as soon as it is there."""

import asyncio
from importlib import import_module

from pandera.typing.polars import DataFrame

from flows._progress import Progress
from flows._record import Record
from schemas.judging import Ballots, Pairs
from tasks import stages
from tasks.judge import shards

BATCHES_PER_JUDGE = 2
"""In flight at once, so that a judge is kept busy where one batch ends and the next begins."""


async def cast_all(waiting: DataFrame[Ballots], pairs: DataFrame[Pairs], record: Record) -> None:
    """Cast the waiting ballots of all judges at the same time."""
    if waiting.is_empty():
        return
    batches = shards(waiting)
    planned: dict[str, int] = {}
    for batch in batches:
        planned[batch["judge"][0]] = planned.get(batch["judge"][0], 0) + batch.height
    progress = Progress(planned)
    limits = {judge: asyncio.Semaphore(BATCHES_PER_JUDGE) for judge in planned}

    async def cast(batch: DataFrame[Ballots]) -> None:
        async with limits[batch["judge"][0]]:
            votes, errors = await stages.cast_votes(batch, pairs, progress.advance)
            await record.save_votes(votes, errors)
            await progress.publish()

    async with asyncio.TaskGroup() as group:
        # What comes after the votes takes seconds to import: use the time of waiting for them.
        group.create_task(asyncio.to_thread(_import_early))
        for batch in batches:
            group.create_task(cast(batch))


def _import_early() -> None:
    for module in ("scipy.stats", "matplotlib.figure", "matplotlib.backends.backend_svg"):
        import_module(module)
