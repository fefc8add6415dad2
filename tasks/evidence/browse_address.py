"""Addresses of the pages of ``voirdire browse``."""

from urllib.parse import quote, urlencode

HOST = "127.0.0.1"
PORT = 8760
"""Fixed, so that links stay valid."""


def view_of(study: str, **given: object) -> str:
    """Return the path of a view of a study; what is empty is left out."""
    query = urlencode({name: "1" if v is True else v for name, v in given.items() if v})
    return f"/study/{quote(study, safe='')}" + (f"?{query}" if query else "")


def address_of(view: str, port: int = PORT) -> str:
    """Return the address of a view on this machine."""
    return f"http://{HOST}:{port}{view}"
