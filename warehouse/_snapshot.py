"""Copy the database file atomically for other tools."""

import os
import shutil
from pathlib import Path

from warehouse._saving import WarehouseError
from warehouse.peek import is_of_another_kind


def require_target(source: Path, target: Path) -> None:
    """Refuse a target that a copy must not replace.

    Raises
    ------
    WarehouseError
        With the path and the next step.
    """
    if not target.parent.is_dir():
        raise WarehouseError(
            f"there is no folder {target.parent} for the copy {target.name}. Make it first, or "
            "name another file."
        )
    if target.is_dir():
        raise WarehouseError(f"{target} is a folder. Name a file for the copy.")
    if target.exists() and target.samefile(source):
        raise WarehouseError(f"{target} is the warehouse itself. Name another file for the copy.")
    if target.exists() and is_of_another_kind(target):
        raise WarehouseError(f"{target} is not a DuckDB file. Name another file for the copy.")
    if log_of(target).exists():
        raise WarehouseError(
            f"{log_of(target)} is there: a program writes to {target}, or was killed while it did. "
            "Name another file for the copy."
        )


def log_of(path: Path) -> Path:
    """Return the path of DuckDB's write-ahead log."""
    return path.with_name(f"{path.name}.wal")


def copy_file(source: Path, target: Path) -> None:
    """Copy a file that nobody writes to; programs with an earlier copy open keep it."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as copy, source.open("rb") as file:
            shutil.copyfileobj(file, copy, 2**20)
            copy.flush()
            os.fsync(copy.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
