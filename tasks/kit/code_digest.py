"""Code digests: of all code, for provenance; of the code a module can reach, for cache keys."""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ALL_ROOMS = ("schemas", "tasks", "warehouse", "flows", "booth")
RESULTS = ("schemas", "tasks")
"""Packages that results depend on."""

ROOMS = Path(__file__).parents[2]
DATA = {".toml", ".j2", ".sql"}
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([\w.]+))",
    re.MULTILINE,
)


@cache
def code_digest(rooms: tuple[str, ...] = RESULTS) -> str:
    """Return a digest of all files in ``rooms``, by default the packages that results depend on."""
    return _digest(
        file
        for room in rooms
        for file in (ROOMS / room).rglob("*")
        if file.suffix in {".py", *DATA}
    )


@cache
def reachable_digest(module: str) -> str:
    """Return a digest of the files that a module's functions can use.

    These are the modules that it imports, anywhere in the text and transitively, all entries of a
    catalogue that it imports, and the data files next to each module. A module of another package
    is assumed to reach everything that results depend on.
    """
    found = set(_files_of(module))
    if not found:
        return code_digest()
    waiting = list(found)
    while waiting:
        new = _imported(waiting.pop()) - found
        found |= new
        waiting += new
    folders = {file.parent for file in found}
    return _digest(found.union(*(_data_beside(folder) for folder in folders)))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(str(file.relative_to(ROOMS)).encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def _imported(file: Path) -> set[Path]:
    """Return the files of the modules that a file imports."""
    found: set[Path] = set()
    for package, names, plain in IMPORT.findall(file.read_text(encoding="utf-8")):
        # A name imported from a package may be one of its modules.
        inside = (f"{package}.{name}" for name in re.findall(r"\w+", names))
        found.update(*(_files_of(module) for module in (plain or package, *inside)))
    return found


@cache
def _files_of(module: str) -> set[Path]:
    """Return the files of a module: its own, its packages' ``__init__.py``, catalogue entries."""
    parts, found = module.split("."), set[Path]()
    if parts[0] not in RESULTS:
        return found
    for depth in range(1, len(parts) + 1):
        place = ROOMS.joinpath(*parts[:depth])
        init = place / "__init__.py"
        if init.is_file():
            found.add(init)
            if "Catalogue[" in init.read_text(encoding="utf-8"):
                found.update(place.glob("*.py"))
        elif place.with_suffix(".py").is_file():
            found.add(place.with_suffix(".py"))
    return found


def _data_beside(folder: Path) -> set[Path]:
    """Return the data files in a folder and in its subfolders that are not packages."""
    found = {file for file in folder.iterdir() if file.suffix in DATA}
    below = [each for each in folder.iterdir() if each.is_dir()]
    plain = [each for each in below if not (each / "__init__.py").exists()]
    return found.union(*(_data_beside(each) for each in plain))
