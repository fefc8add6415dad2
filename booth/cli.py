"""``voirdire booth``: serve voting pages, export ballots and import votes."""

import socket
import sys
import threading
from pathlib import Path
from typing import Any

import click

from tasks.kit.command_line import (
    CONTEXT,
    Command,
    OutputFile,
    UsablePath,
    errors_in_a_line,
    port_option,
    say,
    warehouse_option,
)
from tasks.kit.exit_codes import ExitCode
from warehouse.path_checks import existing_path

ARMS = click.Choice(["control", "experimental", "sham"])
FILE = UsablePath(dir_okay=False)
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@click.command(
    cls=Command,
    context_settings=CONTEXT,
    examples=(
        "voirdire booth quick --voter ann",
        "voirdire booth quick --voter ann --voter ben --limit 20",
    ),
)
@click.argument("study", default="quick")
@click.option(
    "--voter",
    "voters",
    multiple=True,
    help="Let this person vote (repeatable). Default: the voters of earlier starts.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help="Give each voter at most this many ballots, rounded down to whole samples unless --once "
    "is given. 0: no maximum. Default: as at the last start of this booth, else no maximum.",
)
@click.option(
    "--arms",
    multiple=True,
    type=ARMS,
    help="Show only this arm (repeatable). Default: as at the last start, else all arms.",
)
@click.option(
    "--perturbation",
    "perturbations",
    multiple=True,
    help="Show only this perturbation (repeatable). Default: as at the last start, else all.",
)
@click.option(
    "--once/--all-arms",
    default=None,
    help="Show each sample once per voter, in an arm that rotates over voters. This measures "
    "agreement, but no shifts. Default: as at the last start, else --all-arms.",
)
@click.option(
    "--renew",
    help="Create a new link for this voter and invalidate the old one. Default: links stay valid.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@port_option(8750, "Listen on this port. 0: any free port.", least=0)
@click.option(
    "--url",
    help="Begin the links of voters with this public address, such as https://vote.example.org, if "
    "it differs from the host and port. Default: http, the host and the port.",
)
@click.option(
    "--export",
    "out",
    type=OutputFile(),
    help="Write the open ballots of --voter to this file, then exit. Default: serve the page.",
)
@click.option(
    "--import",
    "filled",
    type=FILE,
    help="Save the choices of --voter from this file, then exit. Default: serve the page.",
)
@click.option("--hand-in", is_flag=True, help="Save all choices made so far, then exit.")
@warehouse_option
@errors_in_a_line()
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
    """Let people vote on the pairs of STUDY (default: quick) on a web page.

    Prints a personal link for each voter and serves the pages until Ctrl-C. Voters and their
    ballots are saved for the next start. Afterwards, `voirdire remeasure STUDY` prints people and
    judges in one table.
    """
    from booth._booth import open_booth
    from booth._vote_files import export_ballots, import_votes
    from warehouse.store import Warehouse

    path = existing_path(warehouse, study)
    if out and filled:
        raise ValueError("--export and --import cannot be used together. Run one, then the other.")
    with open_booth(Warehouse(path), study, _changes(programme)) as opened:
        if renew:
            opened.renew(renew)
        unknown = [voter for voter in voters if filled and voter not in opened.seats]
        if unknown:
            known = ", ".join(opened.seats) or "nobody"
            raise ValueError(
                f"{unknown[0]!r:.80} has no ballots in the booth of {study}. Voters: {known}. "
                "Create ballots for a new voter with --export."
            )
        seats = [opened.seat(voter) for voter in voters]
        if out or filled:
            if len(seats) != 1:
                raise ValueError(
                    "--export and --import need exactly one voter. Name one with --voter NAME."
                )
            message = (
                export_ballots(opened, seats[0], out)
                if out
                else import_votes(opened, seats[0], filled)  # type: ignore[arg-type]
            )
            say(message)
            return
        if not opened.seats:
            raise ValueError(
                "the booth has no voters yet. Name them, as in --voter ann --voter ben."
            )
        if not hand_in:
            _serve(opened, host, port, url)
        saved = opened.close()
        for seat in opened.seats.values():
            say(f"{seat.voter}: {seat.answered} of {len(seat.order)}")
        if saved and not any(seat.answered for seat in opened.seats.values()):
            say("Nobody has voted yet.")
            return
        say(
            f"All votes are saved in the warehouse. `voirdire remeasure {study}` adds them to the "
            "results."
            if saved
            else "Some votes could not be saved in the warehouse. They are kept in a file in its "
            f"folder; `voirdire booth {study} --hand-in` tries again to save them."
        )
        if not saved:
            sys.exit(ExitCode.FAILED)


def _changes(programme: dict[str, Any]) -> dict[str, Any]:
    """Return the options that change the ballots; a limit of 0 means no limit."""
    given = {k: v for k, v in programme.items() if v not in (None, ())}
    if "limit" in given:
        given["limit"] = given["limit"] or None
    return {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}


def _serve(opened: Any, host: str, port: int, url: str | None) -> None:
    from booth.app import make_app
    from booth.web.server import listen, serve

    listening = listen(host, port)
    base = (url or f"http://{_named(host)}:{listening.getsockname()[1]}").rstrip("/")
    app = make_app(opened, secure=base.startswith("https://"), url=base)

    def announce() -> None:
        width = max(len(voter) for voter in opened.seats)
        for seat in opened.seats.values():
            done = f"{seat.answered} of {len(seat.order)}"
            say(f"{seat.voter:{width}}  {done:>10}  {base}/v/{opened.token(seat)}")
        if not base.startswith("https://") and host not in LOOPBACK:
            say(
                "The links use http, which is not encrypted. On a network that you do not "
                "trust, run an "
                "https proxy in front."
            )
        say("Each link works in one browser only. Ctrl-C ends the booth and keeps all votes.")

    saving = threading.Thread(target=opened.keep_saving, daemon=True)
    saving.start()
    serve(app, listening, announce)
    # Wait until the thread has saved its votes, then report what is saved.
    opened.stop_saving()
    saving.join()


def _named(host: str) -> str:
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
