"""``python -m booth.browsing``, which is what ``voirdire browse`` runs."""

import secrets
from pathlib import Path

import click

from tasks.evidence.browse_address import HOST, address_of
from tasks.kit.command_line import errors_in_a_line, say, warehouse_option
from warehouse.path_checks import existing_path

PATIENCE_SECONDS = 30.0
"""How long a page waits for a warehouse that a run is writing."""


@click.command()
@click.argument("view")
@click.option("--port", type=int, required=True)
@warehouse_option
@errors_in_a_line()
def browse(view: str, port: int, warehouse: Path | None) -> None:
    """Serve the pages on this machine until Ctrl-C, and print the link of VIEW, a path."""
    from booth.browsing.app import check_view, make_app
    from booth.web.server import listen, serve
    from warehouse.store import Warehouse

    place = existing_path(warehouse)
    opened = Warehouse(place, patience_seconds=PATIENCE_SECONDS)
    check_view(opened, view)
    listening = listen(HOST, port)
    token, port = secrets.token_urlsafe(16), listening.getsockname()[1]

    def announce() -> None:
        query = f"{'&' if '?' in view else '?'}token={token}"
        click.echo(address_of(f"{view}{query}", port))
        say(
            "The link works on this machine while this command runs; Ctrl-C ends it. Runs may "
            "write meanwhile."
        )

    serve(make_app(opened, token, port), listening, announce)


if __name__ == "__main__":
    browse(prog_name="voirdire browse")
