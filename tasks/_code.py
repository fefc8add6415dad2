"""Which code it is that runs."""

import hashlib
from functools import cache
from pathlib import Path

ALL_ROOMS = ("schemas", "tasks", "warehouse", "flows", "booth")
ROOMS = Path(__file__).parents[1]


@cache
def code_digest(rooms: tuple[str, ...] = ("schemas", "tasks")) -> str:
    """Return a digest of all files in ``rooms``; without others those that results depend on."""
    digest = hashlib.sha256()
    for room in rooms:
        for file in sorted((ROOMS / room).rglob("*")):
            if file.suffix in {".py", ".toml", ".j2", ".sql"}:
                digest.update(str(file.relative_to(ROOMS)).encode() + file.read_bytes())
    return digest.hexdigest()
