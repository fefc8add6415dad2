"""Stop a command on SIGTERM as on Ctrl-C, also in the middle of a run."""

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future


T = TypeVar("T")
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_END = 1.2
"""For work that is interrupted; what it cannot save by then, a run finds in its journal."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise ``Terminated`` on SIGTERM, unless whoever started the command has it ignored."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def run_aside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` in a thread of its own; an interrupt cancels it and waits for it to end in time.

    In the main thread Prefect would take SIGTERM over, and end the process or the event loop
    wherever they are.
    """
    import asyncio
    from concurrent.futures import Future
    from threading import Thread

    task: Future[asyncio.Task[Any]] = Future()
    done: Future[T] = Future()

    async def watched() -> None:
        if current := asyncio.current_task():
            task.set_result(current)
        try:
            done.set_result(await work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            done.set_exception(error)

    # What the work leaves behind may take its time to end.
    aside = Thread(target=lambda: asyncio.run(watched()), daemon=True)
    try:
        # In here, since it may be interrupted when the work has begun.
        aside.start()
        _wait_for(done)
        aside.join(SECONDS_TO_END)
    except KeyboardInterrupt:
        until = time.monotonic() + SECONDS_TO_END
        # Work that has not begun has nothing to end, and a loop may have ended meanwhile.
        with suppress(TimeoutError, RuntimeError):
            running = task.result(SECONDS_TO_END)
            running.get_loop().call_soon_threadsafe(running.cancel)
            # How it ended is in the warehouse; a second interrupt does not wait for that.
            _wait_for(done, until)
        raise
    return done.result()


def leave(code: int) -> NoReturn:
    """End this process at once, whatever its threads still wait for.

    The processes that it started end as their standard input does.
    """
    # Whoever read it may have gone.
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _wait_for(done: "Future[Any]", until: float = math.inf) -> None:
    from concurrent.futures import wait

    while not done.done() and time.monotonic() < until:
        # Polars has interrupted waits begin anew: they notice a Ctrl-C when their time is up.
        wait([done], SECONDS_BETWEEN_LOOKS)


def _terminate(*_: object) -> NoReturn:
    raise Terminated
