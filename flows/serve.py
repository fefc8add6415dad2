"""Studies, remeasuring and calibrating as deployments: python -m flows.serve, or voirdire serve."""

import asyncio
import os
from contextlib import ExitStack
from pathlib import Path

from flows.publishing.served_files import reports_of
from flows.running.processes import exit_now, run_in_thread, sigterm_interrupts
from flows.serving.access import Access, own_server, stored, stored_auth
from flows.serving.server import (
    SETTINGS,
    Server,
    asks_for_authentication,
    find_server,
    require_answer,
)
from flows.studies import STUDIES
from tasks.kit import user_folder
from tasks.kit.command_line import say
from warehouse.path_checks import VARIABLE, default_path

PORT = 4200
SECONDS_TO_STOP = 40.0
"""Prefect gives the processes of runs 30 s to end."""
UNPROTECTED = (
    "{url} requires no authentication: anyone who can reach it, such as any user of this machine, "
    "can run code as you, with your API keys."
)


def serve_studies(
    warehouse: Path | None = None, *, port: int = PORT, server: str | None = None, auth: bool = True
) -> None:
    """Serve all studies, one run at a time, with its own Prefect server or the given one."""
    if warehouse:
        os.environ[VARIABLE] = str(warehouse.absolute())
    # Runs are separate processes, in any folder.
    os.environ[user_folder.VARIABLE] = str(user_folder.home())
    os.environ.update({k: os.environ.get(k, v) for k, v in SETTINGS.items()})
    os.environ.setdefault("PREFECT_RUNNER_POLL_FREQUENCY", "2")
    with ExitStack() as ending:
        named = bool(server or os.environ.get("PREFECT_API_URL"))
        if named and (given := find_server(server)):
            _use(given)
        else:
            access = _start(port, ending, auth=auth)
            access.put_into_environment()
        from flows.serving.serve_loop import serve

        try:
            with sigterm_interrupts():
                run_in_thread(lambda: serve(alone=not named), SECONDS_TO_STOP)
        except KeyboardInterrupt:
            _say("Stopped. Schedules stay as they are, and resume when studies are served again.")
            ending.close()
            # Prefect's runner may never end if it is interrupted while it starts.
            exit_now(0)


def switch_schedules(on: tuple[str, ...], off: tuple[str, ...], server: str | None) -> None:
    """Switch schedules of a running server on or off, and show them."""
    access = find_server(server)
    if access is None:
        for name in (*on, *off):
            STUDIES.require(name)
        raise ValueError(
            "`voirdire serve` is not running. Start it, or name a server with --server URL."
        )
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "ERROR")
    require_answer(access)
    access.put_into_environment()
    from flows.serving.serve_loop import show_schedules

    asyncio.run(show_schedules(on, off))


def _use(access: Access) -> None:
    require_answer(access, _say)
    access.put_into_environment()
    _say(f"Prefect UI: {_pages(access)}")
    if not asks_for_authentication(access):
        _say(UNPROTECTED.format(url=access.url))


def _start(port: int, ending: ExitStack, *, auth: bool) -> Access:
    """Start an own server, and print its address and authentication string."""
    if own := own_server():
        raise ValueError(
            f"`voirdire serve` is already running: {_pages(own[0])} (process {own[1]}). Stop it "
            "first, or set PREFECT_HOME to another folder for a separate server."
        )
    server = Server(
        port,
        stored_auth() if auth else None,
        pages=True,
        reports=reports_of(default_path()),
        listener=_say_of_server,
    )
    ending.callback(server.stop)
    server.wait(_say, progress=True)
    access = server.access
    ending.enter_context(stored(access, server.process))
    _say(f"Prefect UI: {_pages(access)}")
    if access.auth:
        _say(f"Authentication string: {access.auth}")
    else:
        _say(UNPROTECTED.format(url=access.url) + " To prevent this, leave out --no-auth.")
    return access


def _pages(access: Access) -> str:
    return f"{access.url.removesuffix('/api')}/deployments"


def _say(text: str) -> None:
    say(text, err=True)


def _say_of_server(line: str) -> None:
    if line.strip():
        _say(f"prefect server: {line}")


if __name__ == "__main__":
    serve_studies()
