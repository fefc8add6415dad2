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

from tasks.kit.command_line import errors_in_a_line, print_notice
from tasks.kit.exit_codes import ExitCode
from tasks.kit.printable import message
from tasks.progress import step

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
SECONDS_BETWEEN_CHECKS = 0.1
SECONDS_TO_END = 1.2
SECONDS_TO_STOP = 5.0
"""How long interrupted work may take to end; unsaved replies stay in the journal.

A run that is stopped saves its replies and its end; a busy machine needs longer for it."""
NAMING = {"list_", "serve"}
"""Commands that say of each file of the user's own folder why it cannot be used."""
CATALOGUES = {
    "tasks.datasets": "DATASETS",
    "tasks.metrics": "METRICS",
    "tasks.perturbations": "PERTURBATIONS",
    "tasks.prompts": "PROMPTS",
    "tasks.providers": "PROVIDERS",
    "tasks.statistics": "STATISTICS",
}
"""Module and name of each catalogue that a user's own folder adds to, apart from studies."""


def host_of(proc: Path) -> str:
    """Return the name of the PID namespace: host, boot and container.

    Two containers may have the same host name, and do not see each other's processes.
    """
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        numbers = (proc / "self/ns/pid").stat().st_ino
    except OSError:
        # Not every system has this in /proc.
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}/{numbers}"


HOST = host_of(Path("/proc"))


def identity(process: int) -> str | None:
    """Return the start time of a process in ticks since boot; null if it does not run.

    It distinguishes the process from a later one with the same PID, and does not depend on clocks.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _identity_elsewhere(process)
    return f"{boot}/{stat.rsplit(')', 1)[1].split()[19]}"


def _identity_elsewhere(process: int) -> str | None:
    """Return the start time from ``ps``, on systems without /proc."""
    if Path("/proc/self").exists():
        return None
    if not (ps := shutil.which("ps")):
        return None
    found = subprocess.run(  # noqa: S603 - our own arguments
        [ps, "-o", "lstart=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or None


def process_note(process: int) -> str:
    """Return a process as ``PID@START``, which :func:`is_running` reads."""
    return f"{process}@{(identity(process) or '').rpartition('/')[2]}"


def is_running(note: str) -> bool:
    """Tell whether a process written as ``PID@START`` is still running.

    Earlier versions wrote the PID alone: then any process with that PID counts.
    """
    number, _, start = note.partition("@")
    now = identity(int(number))
    return now is not None and (not start or now.rpartition("/")[2] == start)


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""


AGAIN = "Run the command again."
KEPT = "All saved votes are kept. Run the command again to continue."
UNCHANGED = "Nothing was changed."
"""What a command leaves that is stopped: whatever is complete, votes, or nothing."""


def clear_errors(command: Callable[..., Any], stopped: str = AGAIN) -> Callable[..., Any]:
    """Print errors in one line; VOIRDIRE_DEBUG=1 adds the traceback.

    ``stopped`` says what is left if the command is interrupted.
    """

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        # Files that a command or a library writes are readable by the user alone.
        mask = os.umask(0o077)
        error = ""
        try:
            with sigterm_interrupts(), errors_in_a_line():
                return command(*args, **options)
        except KeyboardInterrupt as stop:
            print_notice(f"stopped. {stopped}")
            terminated = isinstance(stop, Terminated)
            exit_now(ExitCode.TERMINATED if terminated else ExitCode.INTERRUPTED)
        except SystemExit as end:
            error = str(end.__context__ or "")
            raise
        finally:
            os.umask(mask)
            warn_of_ignored_files(error, brief=command.__name__ not in NAMING)

    return run


def warn_of_ignored_files(error: str = "", *, brief: bool = False) -> None:
    """Write a line for each file of the user's own folder that was read and cannot be used.

    Problems that ``error`` names are left out; if ``brief``, one line names several files.
    """
    ignored = ignored_files(error)
    files = dict.fromkeys(f"{file.parent.name}/{file.name}" for file, _ in ignored)
    problems = [problem for _, problem in ignored]
    if brief and len(problems) > 1:
        named = message(", ".join(files))
        problems = [f"ignored files that cannot be used: {named}. `voirdire list` says why"]
    for problem in problems:
        print_notice(problem)


def ignored_files(error: str = "") -> list[tuple[Path, str]]:
    """Return each file of the user's own folder that was read and cannot be used, and why.

    Problems that ``error`` names are left out. Studies are not among them: `voirdire list`
    and `voirdire serve` name those. A catalogue that no command has loaded has ignored nothing.
    """
    loaded: Iterator[Any] = (
        getattr(sys.modules.get(module), name, None) for module, name in CATALOGUES.items()
    )
    return [
        (file, f"ignored a {catalogue.what} file: {message(problem)}")
        for catalogue in loaded
        if catalogue
        for file, problem in catalogue.ignored.values()
        if problem not in error
    ]


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise ``Terminated`` on SIGTERM, unless the parent process set it to be ignored."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def run_in_thread(
    work: Callable[[], Coroutine[Any, Any, T]], seconds_to_stop: float = SECONDS_TO_STOP
) -> T:
    """Run ``work`` in its own thread; an interrupt cancels it and waits for its end, but no longer.

    In the main thread Prefect would handle SIGTERM, and end the process or the event loop at an
    arbitrary point.
    """
    import asyncio
    from concurrent.futures import Future
    from contextvars import copy_context
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
            # The event loop could not be made, and the main thread waits.
            if done.done():
                raise
            done.set_exception(error)

    # Tasks that the work leaves behind may take long to end.
    aside = Thread(target=copy_context().run, args=(loop,), daemon=True)
    try:
        # Inside the try block, because an interrupt may come when the work has begun.
        aside.start()
        _wait_for(done)
        aside.join(SECONDS_TO_END)
    except KeyboardInterrupt:
        step("stopping: saving what was received")
        until = time.monotonic() + seconds_to_stop
        # The work may not have begun, and its loop may have ended.
        with suppress(TimeoutError, RuntimeError):
            running = task.result(seconds_to_stop)
            running.get_loop().call_soon_threadsafe(running.cancel)
            # The end is recorded in the warehouse; a second interrupt does not wait for it.
            _wait_for(done, until)
        raise
    return done.result()


def exit_now(code: int) -> NoReturn:
    """End this process without waiting for its threads.

    Its child processes end when their standard input does.
    """
    # The reader of the output may have gone.
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _wait_for(done: "Future[Any]", until: float = math.inf) -> None:
    from concurrent.futures import wait

    while not done.done() and time.monotonic() < until:
        # With Polars, an interrupted wait starts again: Ctrl-C is noticed after the timeout.
        wait([done], SECONDS_BETWEEN_CHECKS)
