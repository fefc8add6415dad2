"""Processes: identify them, and end commands with one-line errors and exit codes."""

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
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


def host_of(proc: Path) -> str:
    """Name where a process number says who is meant: a host since its start, and a container.

    Two containers may bear one name, and one host's processes do not see the other's.
    """
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        numbers = (proc / "self/ns/pid").stat().st_ino
    except OSError:
        # Not every system has a /proc that says so.
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}/{numbers}"


HOST = host_of(Path("/proc"))


def identity(process: int) -> str | None:
    """Return what tells a running process from a later one of its number; null if none runs.

    It is when the process began, in the kernel's own count, which no clock changes.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _identity_elsewhere(process)
    return f"{boot}/{stat.rsplit(')', 1)[1].split()[19]}"


def _identity_elsewhere(process: int) -> str | None:
    """Return the same where there is no /proc, from ps."""
    if Path("/proc/self").exists():
        return None
    ps = shutil.which("ps")
    told = (
        subprocess.run(  # noqa: S603 - our own words
            [ps, "-o", "lstart=", "-p", str(process)], capture_output=True, text=True, check=False
        )
        if ps
        else None
    )
    return (told.stdout.strip() or None) if told else None


def noted(process: int) -> str:
    """Write a process as ``PID@START``, which :func:`still_runs` reads."""
    return f"{process}@{(identity(process) or '').rpartition('/')[2]}"


def still_runs(note: str) -> bool:
    """Tell whether the process of a note runs; no clock has a part in it.

    Earlier versions noted the process ID alone: any process of that ID is taken for it.
    """
    number, _, start = note.partition("@")
    now = identity(int(number))
    return now is not None and (not start or now.rpartition("/")[2] == start)


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

    def loop() -> None:
        try:
            asyncio.run(watched())
        except BaseException as error:
            # No loop could be made: nobody else would say so to who waits.
            if done.done():
                raise
            done.set_exception(error)

    # What the work leaves behind may take its time to end.
    aside = Thread(target=loop, daemon=True)
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
