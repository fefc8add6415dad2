"""Address and authentication string of the user's `voirdire serve`, stored for other commands.

Only the user can read the file and its folder, because it holds the authentication string.
"""

import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import certifi

from flows.running.processes import identity
from tasks.kit.printable import AUTHENTICATION
from warehouse.atomic_files import write_private

USER = "voirdire"
CERTIFICATES = "PREFECT_API_SSL_CERT_FILE"
"""Variable that names the file of certificates for Prefect's clients."""
LAST_LINE = "-----END CERTIFICATE-----\n"


class Access(NamedTuple):
    """Address and authentication string of a server."""

    url: str
    auth: str | None = None
    reports: str | None = None
    """Folder whose reports it serves."""

    def put_into_environment(self) -> None:
        """Make Prefect's client use the server, in this process and its child processes."""
        os.environ["PREFECT_API_URL"] = self.url
        os.environ.pop(AUTHENTICATION, None)
        if self.auth:
            os.environ[AUTHENTICATION] = self.auth
        place = folder() / "authority.pem"
        if self.url.startswith("http://127.0.0.1:"):
            os.environ.setdefault(CERTIFICATES, str(one_certificate(place)))
        # A server elsewhere may have TLS, and this process may have inherited the variable.
        elif os.environ.get(CERTIFICATES) == str(place):
            del os.environ[CERTIFICATES]


def folder() -> Path:
    """Return the folder of the files, beside Prefect's database."""
    home = os.environ.get("PREFECT_HOME") or "~/.prefect"
    return Path(home).expanduser().absolute() / "voirdire"


def new_auth() -> str:
    """Return a new authentication string."""
    return f"{USER}:{secrets.token_urlsafe(24)}"


def stored_auth() -> str:
    """Return the user's authentication string; generate it on first use.

    It stays the same, so that a browser that has stored it need not ask again.
    """
    place = _own_folder() / "auth"
    if not (text := _read(place)):
        text = new_auth()
        write_private(place, text.encode())
    return text


@contextmanager
def stored(access: Access, process: int) -> Iterator[None]:
    """Let other commands of the user find the server of ``process`` during the block."""
    place = _own_folder() / "server.json"
    content = {**access._asdict(), "process": process, "is": identity(process)}
    write_private(place, json.dumps(content).encode())
    try:
        yield
    finally:
        place.unlink(missing_ok=True)


def own_server() -> tuple[Access, int] | None:
    """Return the server of the user's ``voirdire serve``, and its PID."""
    text = _read(folder() / "server.json")
    if not text:
        return None
    try:
        found = json.loads(text)
        process = int(found["process"])
        access = Access(found["url"], found["auth"], found.get("reports"))
    except (ValueError, KeyError, TypeError):
        return None
    # If it has ended, another program may have its port and must not get the string.
    return (access, process) if found.get("is") and identity(process) == found["is"] else None


def one_certificate(place: Path) -> Path:
    """Write a file of one certificate, for a server without TLS, and return its place.

    Each of Prefect's clients, nine in an audit, would load those of all authorities: half a second.
    """
    if not place.exists():
        first = Path(certifi.where()).read_text("utf-8").partition(LAST_LINE)[0]
        write_private(place, (first + LAST_LINE).encode())
    return place


def _own_folder() -> Path:
    place = folder()
    place.mkdir(parents=True, mode=0o700, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ValueError(f"{place} is not a folder that you own. Remove it, or set PREFECT_HOME.")
    if found.st_mode & 0o077:
        place.chmod(0o700)
    return place


def _read(place: Path) -> str:
    """Return a file's text; empty if others can access the file or its folder."""
    try:
        if _is_accessible(place.parent.lstat()):
            return ""
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    with os.fdopen(descriptor, encoding="utf-8") as file:
        return "" if _is_accessible(os.fstat(file.fileno())) else file.read().strip()


def _is_accessible(found: os.stat_result) -> bool:
    return found.st_uid != os.getuid() or bool(found.st_mode & 0o077)
