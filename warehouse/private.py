"""Files that only their owner may read, written whole or not at all, whatever the umask."""

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 in place of what is there; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name a file.")
    # Of mode 0600, and of a name that nobody can have made a link of.
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
