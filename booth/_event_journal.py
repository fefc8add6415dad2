"""A booth's journal of all events, with a lock and a secret, in files beside the warehouse.

A line is on the disk before the voter sees that it counts. Tokens are not stored, as they are
derived from the secret.
"""

import base64
import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schemas.keys import content_key
from tasks.engine.journal import Journal, read_journal

SECRET_BYTES = 32


class EventJournal:
    """The journal of one study's booth; open it with :func:`open_event_journal`."""

    def __init__(self, folder: Path, study: str) -> None:
        self._path = folder / f"{study}.jsonl"
        self._secret = _secret(folder / "secret")
        self._study = study
        self.lines, self.unreadable = read_journal(self._path) if self._path.exists() else ([], 0)
        self._journal: Journal | None = Journal(self._path)

    def write(self, line: dict[str, Any]) -> None:
        """Append a line; it is on the disk when this returns.

        Raise OSError if the line could not be written: then the event did not happen.
        """
        try:
            if self._journal is None:
                # Opening the file completes a truncated line.
                self._journal = Journal(self._path)
            self._journal.write(line)
            self._journal.sync()
        except OSError:
            self.close()
            raise
        self.lines.append(line)

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def sign(self, *parts: object) -> str:
        """Return a URL-safe HMAC of ``parts`` with the booth's secret (256 bits)."""
        mac = hmac.new(self._secret, content_key(self._study, *parts).encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(mac.digest()).decode().rstrip("=")


@contextmanager
def open_event_journal(warehouse: Path, study: str) -> Iterator[EventJournal]:
    """Open the journal of a study beside its warehouse, with an exclusive lock.

    Raise ValueError if another booth of the study is open.
    """
    folder = warehouse.with_name(f"{warehouse.name}.booth")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(_private(folder / f"{study}.lock", os.O_RDWR), "rb+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"a booth of study {study!r} is already open in another process. One booth serves "
                "all voters. Stop the other process first."
            ) from error
        journal = EventJournal(folder, study)
        try:
            yield journal
        finally:
            journal.close()


def _secret(path: Path) -> bytes:
    """Read the secret, or create it atomically in a file that only the owner can read."""
    if not path.exists():
        draft = path.with_name(f"secret.{os.getpid()}")
        with os.fdopen(_private(draft, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            # Another booth of this warehouse has just created it.
            pass
        finally:
            draft.unlink()
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise ValueError(
            f"{path} is damaged: a secret has {SECRET_BYTES} bytes, this file has {len(secret)}. "
            "Remove the file. All links become invalid, and all votes are kept."
        )
    return secret


def _private(path: Path, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)
