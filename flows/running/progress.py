"""Progress of the ballots, for the terminal and the Prefect UI."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact

from flows.serving.prefect_reporting import Messages

Listener = Callable[[str, int, int], None]
"""(judge, ballots done, ballots planned)"""

listeners: list[Listener] = []

readers: list[Callable[[str], None]] = []
"""Functions that show a line, for example why nothing moves for a while."""


@contextmanager
def shown_by(listener: Listener, reader: Callable[[str], None]) -> Iterator[None]:
    """Pass the progress of a run to ``listener``, and its lines to ``reader``, during the block."""
    listeners.append(listener)
    readers.append(reader)
    try:
        yield
    finally:
        readers.remove(reader)
        listeners.remove(listener)


def notifier() -> Callable[[str], None]:
    """Return a function that logs a line in this run and shows it; any thread may call it."""
    loop, context, logger = asyncio.get_running_loop(), copy_context(), get_run_logger()

    def show(text: str) -> None:
        logger.warning(text)
        for read in readers:
            read(text)

    def notify(text: str) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(show, text, context=context)

    return notify


class Progress:
    """Counts ballots as their replies arrive."""

    def __init__(self, planned: dict[str, int]) -> None:
        self.planned = planned
        self.done = dict.fromkeys(planned, 0)
        self._artifact: UUID | None = None
        self._messages = Messages()
        self._shown = -1.0
        for judge in planned:
            self._report(judge)

    def advance(self, judge: str, ballots: int = 1) -> None:
        """Count ballots."""
        self.done[judge] += ballots
        self._report(judge)

    def finish(self, judge: str) -> None:
        """Record that the remaining ballots of a judge are not needed."""
        self.planned[judge] = self.done[judge]
        self._report(judge)

    async def publish(self) -> None:
        """Update the progress in the Prefect UI."""
        total = sum(self.planned.values())
        share = 100 * sum(self.done.values()) / total if total else 100.0
        if share == self._shown:
            return
        self._shown = share
        if self._artifact is None:
            described = f"{total} ballots to cast"
            made = await self._messages.send(
                lambda: acreate_progress_artifact(share, key="ballots", description=described)
            )
            self._artifact = made if isinstance(made, UUID) else None
        else:
            artifact = self._artifact
            await self._messages.send(lambda: aupdate_progress_artifact(artifact, share))

    def _report(self, judge: str) -> None:
        for listener in listeners:
            listener(judge, self.done[judge], self.planned[judge])
