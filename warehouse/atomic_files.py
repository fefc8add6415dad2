"""Files written atomically and readable by their owner only, whatever the umask."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of files that are written in place of ``path``, such as a draft, name it."""
    try:
        yield
    except OSError as error:
        why = f"cannot be written ({error.strerror})"
        raise OSError(error.errno, why, str(path)) from error


def write_private(path: Path, content: bytes) -> None:
    """Write or replace a file with mode 0600; create its folder if it is missing.

    What exists and is no regular file, such as /dev/stdout or a pipe, is written to as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name a file.")
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    # Of mode 0600, and of a name that nobody can have made a link of.
    with naming(path):
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
