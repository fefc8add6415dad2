"""Digests of code for cache keys, and the code version and user that the table ``runs`` keeps."""

import getpass
import hashlib
import os
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tasks.kit.user_folder import home, own_folder

ALL_ROOMS = ("schemas", "tasks", "warehouse", "flows", "booth")
RESULTS = ("schemas", "tasks")
"""Packages that results depend on."""

ROOMS = Path(__file__).parents[2]
CODE = ("prompts", "providers", "datasets", "perturbations", "statistics", "metrics")
"""Catalogues of the user's own folder whose files change results."""
DATA = {".toml", ".j2", ".sql"}
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([\w.]+))",
    re.MULTILINE,
)


def code_version() -> str:
    """Return the version of the distribution and a digest of its code."""
    return f"{version('voirdire')}+{code_digest(ALL_ROOMS)[:12]}"


def user_name() -> str:
    """Return the name of the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container the user id may have no name.
        return f"uid {os.getuid()}"


@cache
def code_digest(rooms: tuple[str, ...] = RESULTS) -> str:
    """Return a digest of all files in ``rooms``, by default the packages that results depend on.

    With the packages go the catalogues in the user's own folder.
    """
    return _digest(
        file
        for folder in (*(ROOMS / room for room in rooms), *filter(None, map(own_folder, CODE)))
        for file in folder.rglob("*")
        if file.suffix in {".py", *DATA}
    )


@cache
def reachable_digest(module: str) -> str:
    """Return a digest of the files that a module's functions can use.

    These are the modules that it imports, anywhere in the text and transitively, all entries of a
    catalogue that it imports, the user's own ones too, and the data files next to each module. A
    module of another package is assumed to reach everything that results depend on.
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
    for name, file in sorted((_name(file), file) for file in files if file.is_file()):
        digest.update(name.encode() + file.read_bytes())
    return digest.hexdigest()


def _name(file: Path) -> str:
    """Return a file's path inside the rooms or the user's own folder, wherever these are."""
    return str(file.relative_to(ROOMS if file.is_relative_to(ROOMS) else home()))


@cache
def _imported(file: Path) -> set[Path]:
    found: set[Path] = set()
    for package, names, plain in IMPORT.findall(file.read_text(encoding="utf-8", errors="replace")):
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
                if own := own_folder(parts[depth - 1]):
                    found.update(own.rglob("*.py"))
        elif place.with_suffix(".py").is_file():
            found.add(place.with_suffix(".py"))
    return found


def _data_beside(folder: Path) -> set[Path]:
    """Return the data files in a folder and in its subfolders that are not packages."""
    found = {file for file in folder.iterdir() if file.suffix in DATA}
    below = [each for each in folder.iterdir() if each.is_dir()]
    plain = [each for each in below if not (each / "__init__.py").exists()]
    return found.union(*(_data_beside(each) for each in plain))
