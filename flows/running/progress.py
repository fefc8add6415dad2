"""Progress of the ballots, for listeners and in the Prefect UI."""

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
"""Who shows a line that tells why nothing moves for a while."""


@contextmanager
def shown_by(listener: Listener, reader: Callable[[str], None]) -> Iterator[None]:
    """Show the progress of a run, and its lines, while the run goes on."""
    listeners.append(listener)
    readers.append(reader)
    try:
        yield
    finally:
        readers.remove(reader)
        listeners.remove(listener)


def notices() -> Callable[[str], None]:
    """Return what writes a line into the log of this run, and shows it, from any thread."""
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
    """Counts ballots as their replies come in."""

    def __init__(self, planned: dict[str, int]) -> None:
        self.planned = planned
        self.done = dict.fromkeys(planned, 0)
        self._artifact: UUID | None = None
        self._messages = Messages()
        self._shown = -1.0
        for judge in planned:
            self._tell(judge)

    def advance(self, judge: str, ballots: int = 1) -> None:
        """Count ballots."""
        self.done[judge] += ballots
        self._tell(judge)

    def finish(self, judge: str) -> None:
        """Tell that the ballots that are left need not be cast."""
        self.planned[judge] = self.done[judge]
        self._tell(judge)

    async def publish(self) -> None:
        """Show the share done in the Prefect UI."""
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

    def _tell(self, judge: str) -> None:
        for listener in listeners:
            listener(judge, self.done[judge], self.planned[judge])
