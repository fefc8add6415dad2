"""Address and authentication string of the user's `voirdire serve`, kept for other commands.

The file holds the server's authentication string: it is the user's alone, in a folder of theirs.
"""

import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from flows.running.processes import identity

AUTH_VARIABLE = "PREFECT_API_AUTH_STRING"
USER = "voirdire"


class Access(NamedTuple):
    """A server, and what it takes to be let in."""

    url: str
    auth: str | None = None

    def put_into_environment(self) -> None:
        """Let Prefect's client in this process, and in those it starts, use the server."""
        os.environ["PREFECT_API_URL"] = self.url
        os.environ.pop(AUTH_VARIABLE, None)
        if self.auth:
            os.environ[AUTH_VARIABLE] = self.auth


def folder() -> Path:
    """Return the folder of the files: beside Prefect's database, which the server is for."""
    home = os.environ.get("PREFECT_HOME") or "~/.prefect"
    return Path(home).expanduser().absolute() / "voirdire"


def kept_auth() -> str:
    """Return the user's authentication string; generate it on first use.

    It stays the same, so that a browser which knows it need not ask again.
    """
    place = _own_folder() / "auth"
    if text := _read(place):
        return text
    text = f"{USER}:{secrets.token_urlsafe(24)}"
    _write(place, text)
    return text


@contextmanager
def kept(access: Access, process: int) -> Iterator[None]:
    """Let the same user's commands find the server of ``process`` while this lasts."""
    place = _own_folder() / "server.json"
    _write(place, json.dumps({**access._asdict(), "process": process, "is": identity(process)}))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            place.unlink()


def own_server() -> tuple[Access, int] | None:
    """Return the server that the same user's ``voirdire serve`` runs, and its process."""
    text = _read(folder() / "server.json")
    if not text:
        return None
    try:
        told = json.loads(text)
        process, access = int(told["process"]), Access(told["url"], told["auth"])
    except (ValueError, KeyError, TypeError):
        return None
    # Another program may have got its port, and would be told the string.
    return (access, process) if told.get("is") and identity(process) == told["is"] else None


def _own_folder() -> Path:
    place = folder()
    place.mkdir(parents=True, mode=0o700, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ValueError(f"{place} is not a folder of yours. Remove it, or set PREFECT_HOME.")
    if found.st_mode & 0o077:
        place.chmod(0o700)
    return place


def _read(place: Path) -> str:
    """Return a file's text, if the file and its folder are the user's alone; else nothing."""
    try:
        if _is_open(place.parent.lstat()):
            return ""
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    with os.fdopen(descriptor, encoding="utf-8") as file:
        return "" if _is_open(os.fstat(file.fileno())) else file.read().strip()


def _is_open(found: os.stat_result) -> bool:
    return found.st_uid != os.getuid() or bool(found.st_mode & 0o077)


def _write(place: Path, text: str) -> None:
    new = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        new.unlink()
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(place)
