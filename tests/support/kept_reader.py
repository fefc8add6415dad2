"""A warehouse that stays open between two visits that read it."""

from pathlib import Path
from typing import Any

import duckdb

from warehouse._external_access import SETTINGS, connect

CLOSED = {**SETTINGS, "enable_external_access": False}
_connect = duckdb.connect


class KeptReader:
    """Keeps the instance of the file that was read last, which takes 20 ms to open.

    The next visit with the same settings gets a connection of its own to that instance. It is
    released as soon as the file has changed, or anything else opens a file of DuckDB's or starts a
    process, which may want to write.
    """

    def __init__(self) -> None:
        self.keeps = True
        self._key: object = None
        self._open: duckdb.DuckDBPyConnection | None = None

    def connect(
        self,
        path: Path,
        *,
        reading: bool = True,
        writes_in: Path | None = None,
        **settings: str | int,
    ) -> duckdb.DuckDBPyConnection:
        """Open a file as the product does."""
        key = (str(path), settings, _identity(path))
        reads = reading and writes_in is None and self.keeps
        config = {**CLOSED, **settings}
        if reads and self._open and key == self._key:
            return _connect(str(path), read_only=True, config=config)
        self.release()
        opened = connect(path, reading=reading, writes_in=writes_in, **settings)
        if reads:
            self._open = _connect(str(path), read_only=True, config=config)
            self._key = key
        return opened

    def connect_directly(self, *words: Any, **more: Any) -> duckdb.DuckDBPyConnection:
        """Open a file, maybe the kept one, past the product."""
        if words or "database" in more:
            self.release()
        return _connect(*words, **more)

    def release(self) -> None:
        """Close the file if no visit uses it."""
        if self._open:
            self._open.close()
            self._open = None


def _identity(path: Path) -> object:
    """Return what changes with the content of a file."""
    if not path.exists():
        return None
    there = path.stat()
    return there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns
