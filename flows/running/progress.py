"""Progress of a run, for the terminal and the Prefect UI."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import get_ident
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact

from flows.serving.prefect_reporting import ServerMessages
from tasks.progress import Status, current_status, followed
from tasks.progress.lines import Lines


@contextmanager
def logged(what: str) -> Iterator[Status]:
    """Write the progress of a flow run into its log; a command that runs it shows it as well."""
    status = current_status()
    status.what = status.what or what
    with followed(status), Lines(status, get_run_logger().info):
        yield status


def notifier() -> Callable[[str], None]:
    """Return a function that logs a line in this run and shows it; any thread may call it.

    The thread of the run logs at once, as it may be about to wait, and then runs nothing else.
    """
    loop, context, logger = asyncio.get_running_loop(), copy_context(), get_run_logger()
    status = current_status()

    def show(text: str) -> None:
        logger.warning(text)
        status.tell(text)

    own = get_ident()

    def notify(text: str) -> None:
        if get_ident() == own:
            show(text)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(show, text, context=context)

    return notify


class Progress:
    """The progress of the ballots as a Prefect artifact."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._artifact: UUID | None = None
        self._messages = ServerMessages()
        self._shown = -1.0

    async def publish(self) -> None:
        """Update the progress in the Prefect UI."""
        done, total = self._status.counts()
        share = 100 * done / total if total else 100.0
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
