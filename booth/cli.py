"""``voirdire booth``: open a booth, or take ballots to be labelled elsewhere and back."""

import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import wraps
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import click

from tasks.kit.command_line import Command, Place, errors_in_a_line
from warehouse.peek import default_path, require_file

ARMS = click.Choice(["control", "experimental", "sham"])
FILE = Place(dir_okay=False)
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def _clear_errors(command: Any) -> Any:
    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        with errors_in_a_line():
            return command(*args, **options)

    return run


@click.command(
    cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.argument("study", default="quick")
@click.option("--voter", "voters", multiple=True, help="Who votes; repeat for several.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help="At most so many ballots each, in whole samples unless --once; 0: all.",
)
@click.option("--arms", multiple=True, type=ARMS, help="Show these only; repeat for several.")
@click.option("--perturbation", "perturbations", multiple=True, help="Show these only; repeat.")
@click.option(
    "--once/--all-arms",
    default=None,
    help="Each sample once per voter, its arm rotating over voters: agreement, but no shifts.",
)
@click.option("--renew", help="Make a new link for this voter; the old one ends.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8750,
    show_default=True,
    help="0: any that is free.",
)
@click.option("--url", help="How voters reach it, as in https://vote.example.org, if otherwise.")
@click.option("--export", "out", type=FILE, help="Write the open ballots of --voter, and end.")
@click.option("--import", "filled", type=FILE, help="Save the choices of --voter, and end.")
@click.option("--hand-in", is_flag=True, help="Save all choices made so far, and end.")
@click.option(
    "--warehouse",
    type=Place(),
    help="The DuckDB file. Default: VOIRDIRE_WAREHOUSE, else voirdire.duckdb.",
)
@_clear_errors
def booth(
    study: str,
    *,
    voters: tuple[str, ...],
    warehouse: Path | None,
    renew: str | None,
    host: str,
    port: int,
    url: str | None,
    out: Path | None,
    filled: Path | None,
    hand_in: bool,
    **programme: Any,
) -> None:
    """Let people vote on the pairs of STUDY (quick), on a web page of their own.

    Prints a personal link per voter, and serves until Ctrl-C. What voters are shown, and who they
    are, is kept for the next time. Then `voirdire remeasure STUDY` puts people and judges into one
    table.
    """
    from booth._booth import open_booth
    from booth._files import export_ballots, import_votes
    from warehouse.store import Warehouse

    path = Path(warehouse or default_path()).absolute()
    require_file(path, f"Run `voirdire audit {study}` first.")
    if out and filled:
        raise ValueError("--export and --import are two steps: name one of them.")
    with open_booth(Warehouse(path), study, _changes(programme)) as opened:
        if renew:
            opened.renew(renew)
        unknown = [voter for voter in voters if filled and voter not in opened.seats]
        if unknown:
            known = ", ".join(opened.seats) or "nobody"
            raise ValueError(
                f"{unknown[0]!r:.80} has no ballots to fill in. Voters of {study}: {known}. "
                "--export makes ballots for somebody new."
            )
        seats = [opened.seat(voter) for voter in voters]
        if out or filled:
            if len(seats) != 1:
                raise ValueError("--export and --import are of one voter: name one by --voter.")
            told = (
                export_ballots(opened, seats[0], out)
                if out
                else import_votes(opened, seats[0], filled)  # type: ignore[arg-type]
            )
            click.echo(told)
            return
        if not opened.seats:
            raise ValueError("nobody votes yet: name who does, as in --voter ann --voter ben.")
        if not hand_in:
            _serve(opened, host, port, url)
        saved = opened.close()
        for seat in opened.seats.values():
            click.echo(f"{seat.voter}: {seat.answered} of {len(seat.order)}")
        click.echo(
            f"All votes are in the warehouse. `voirdire remeasure {study}` puts them into the "
            "table."
            if saved
            else "Votes that are not in the warehouse are safe beside it; "
            f"`voirdire booth {study} --hand-in` tries again."
        )
        if not saved:
            sys.exit(1)


def _changes(programme: dict[str, Any]) -> dict[str, Any]:
    """Return what was said of what voters are shown; a limit of 0 is none."""
    given = {k: v for k, v in programme.items() if v not in (None, ())}
    if "limit" in given:
        given["limit"] = given["limit"] or None
    return {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}


def _serve(opened: Any, host: str, port: int, url: str | None) -> None:
    """Serve pages until Ctrl-C or SIGTERM."""
    import uvicorn

    from booth._connections import bounded, most_connections
    from booth.app import make_app

    listening = _listen(host, port)
    base = (url or f"http://{_named(host)}:{listening.getsockname()[1]}").rstrip("/")
    app = make_app(opened, secure=base.startswith("https://"), url=base)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        http=bounded(most_connections()),
    )
    server = uvicorn.Server(config)
    # In a thread of its own it leaves signals to this one, which has votes to save after it.
    serving = threading.Thread(target=_run, args=(server, listening), daemon=True)
    sealing = threading.Thread(target=opened.keep_sealing, daemon=True)
    told = _signals()
    serving.start()
    sealing.start()
    width = max(len(voter) for voter in opened.seats)
    for seat in opened.seats.values():
        done = f"{seat.answered} of {len(seat.order)}"
        click.echo(f"{seat.voter:{width}}  {done:>10}  {base}/v/{opened.token(seat)}")
    if not base.startswith("https://") and host not in LOOPBACK:
        click.echo("Links go by http: on a network that you do not trust, put https before it.")
    click.echo("Each link opens in one browser only. Ctrl-C ends the booth; nothing is lost by it.")
    _until_told(told, serving)
    server.should_exit = True
    serving.join()
    # What it is saving now is saved before anything is said of it.
    opened.stop_sealing()
    sealing.join()


def _run(server: Any, listening: socket.socket) -> None:
    import asyncio

    from booth._connections import Notes

    async def serve() -> None:
        asyncio.get_running_loop().set_exception_handler(Notes())
        await server.serve(sockets=[listening])

    asyncio.run(serve())


def _signals() -> SimpleQueue[int]:
    """Return a queue into which Ctrl-C and SIGTERM put their numbers from now on."""
    # Its put may interrupt its get. An Event that is set by a handler, in the very thread that is
    # about to wait for it, waits for itself for ever.
    told: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: told.put(number))
    return told


def _until_told(told: SimpleQueue[int], serving: threading.Thread) -> None:
    """Wait until a signal comes or the server ends."""
    while serving.is_alive():
        with suppress(Empty):
            told.get(timeout=0.2)
            return


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ValueError(
            f"cannot listen at {host}, port {port}: {error.strerror}. Name another --port."
        ) from error
    listening.listen(128)
    return listening


def _named(host: str) -> str:
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
