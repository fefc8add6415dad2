"""How a command ends: one-line errors, exit codes, and SIGTERM handled like Ctrl-C."""

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from tasks.kit.command_line import errors_in_a_line
from tasks.kit.printable import message

if TYPE_CHECKING:
    from concurrent.futures import Future


T = TypeVar("T")
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_END = 1.2
"""For work that is interrupted; what it cannot save by then, a run finds in its journal."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def clear_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Print errors in one line; VOIRDIRE_DEBUG=1 adds the traceback."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        # Whatever a command writes, be it by a library, only its user may read.
        mask = os.umask(0o077)
        try:
            with sigterm_interrupts(), errors_in_a_line():
                return command(*args, **options)
        except KeyboardInterrupt as stop:
            click.echo(
                "voirdire: stopped. All saved votes are kept. Run the command again to go on.",
                err=True,
            )
            leave(143 if isinstance(stop, Terminated) else 130)
        finally:
            os.umask(mask)
            warn_of_providers()

    return run


def warn_of_providers() -> None:
    """Warn about each unusable provider file of the user, if providers were loaded."""
    catalogue = getattr(sys.modules.get("tasks.providers"), "PROVIDERS", None)
    for problem in catalogue.unusable.values() if catalogue else ():
        click.echo(f"voirdire: ignored a provider file: {message(problem)}", err=True)


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
