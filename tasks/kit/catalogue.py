"""Catalogues: folders of entries (Python modules or TOML files), loaded on first use."""

import importlib
import importlib.util
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple, TypeVar

from tasks.validation.unknown_names import UnknownNameError, unknown

Entry = TypeVar("Entry")
Accept = Callable[[Entry, "Catalogue[Entry]"], None]
OwnFolder = Callable[[], Path | None]

Split = Callable[[Path], Mapping[str, dict[str, Any] | str]]
"""Returns the table of each entry in a file, or why it cannot be used."""

TAKEN = "another file has an entry of this name. Rename one of them."
OWN_PACKAGE = "own"
"""First part of the module names of the user's own files; there is no such package."""
EXITS = 'importing the file calls sys.exit. Put that code under `if __name__ == "__main__":`.'


MOST_PROBLEMS = 20
"""Most problems of a file that an error lists."""


LONGEST_FAILURE = 300
"""Most characters of what the user's own code says of its failure."""


class EntryError(ValueError):
    """The code of the user's own entry failed."""


class Ignored(NamedTuple):
    """A file of the user's own that was read and cannot be used."""

    file: Path
    problem: str
    """The error message, with the file."""


class Catalogue(Mapping[str, Entry]):
    """Mapping of names to entries; an entry is loaded on first use."""

    def __init__(
        self,
        what: str,
        bundled: Mapping[str, Path],
        load: Callable[[str, Path], Entry],
        own: Callable[[], Mapping[str, Path]] = dict,
        accept: Accept[Entry] | None = None,
        *,
        why_missing: Callable[[str], str] = lambda _: "",
        how_to_add: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.what = what
        self._why_missing = why_missing
        """Why a name is missing: what it is, or which file is at fault; empty if unknown."""
        self._how_to_add = how_to_add
        """How to add an entry for an unknown name, in a sentence; empty if it is misspelt."""
        self._files = dict(bundled)
        self._load = load
        self._loaded: dict[str, Entry] = {}
        self._find_own = own
        self._accept = accept
        self._own: dict[str, Path] | None = None
        self.ignored: dict[str, Ignored] = {}
        """The user's own files that were read and cannot be used, by name."""

    def read_own(self) -> None:
        """Read the user's own files, as they are now; this is done on first use, and then kept.

        An invalid file is ignored; only using its name raises the error.
        """
        for name in self._own or ():
            del self._files[name], self._loaded[name]
        self._own, self.ignored = {}, {}
        for name, file in sorted(self._find_own().items()):
            try:
                entry = self._usable(name, file)
            except OSError as error:
                problem = f"{error.strerror or error}."
            except ValueError as error:
                problem = _without_file(str(error), self.what, file)
            else:
                self._files[name] = self._own[name] = file
                self._loaded[name] = entry
                continue
            said = f"the {self.what} {name!r} of {file} cannot be used:{one_per_line(problem)}"
            self.ignored[name] = Ignored(file, said)

    def _usable(self, name: str, file: Path) -> Entry:
        """Load one of the user's own files, if it clashes with no other entry."""
        if name in self._files:
            raise ValueError(f"there is a bundled {self.what} of this name. Rename the file.")
        entry = self._load(name, file)
        if self._accept:
            self._accept(entry, self)
        return entry

    @property
    def files(self) -> dict[str, Path]:
        """The file of each name."""
        if self._own is None:
            self.read_own()
        return self._files

    @property
    def own(self) -> dict[str, Path]:
        """The files of the user's own entries."""
        files = self.files
        return {name: files[name] for name in self._own or ()}

    @property
    def unusable(self) -> dict[str, str]:
        """The user's own files that cannot be used, with the error message of each."""
        if self._own is None:
            self.read_own()
        return {name: ignored.problem for name, ignored in self.ignored.items()}

    def __getitem__(self, name: str) -> Entry:
        self.require(name)
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._files[name])
        return self._loaded[name]

    def require(self, name: str) -> None:
        """Raise an error with a suggestion if the catalogue has no such name."""
        if name in self.files:
            return
        if problem := self.unusable.get(name) or self._why_missing(name):
            raise UnknownNameError(problem)
        raise unknown(self.what, name, sorted(self.files), step=self._how_to_add(name))

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """Name the file and the line if the code of the user's own entry fails in this block.

        It then raises EntryError. Errors of bundled entries are not changed.
        """
        try:
            yield
        except Exception as error:
            file = self.own.get(name)
            if file is None or file.suffix != ".py":
                raise
            raise EntryError(
                f"the {self.what} {name!r} of {file} failed: {_failure(error, file)} Correct the "
                "file, or rename it so that its name begins with _, and run again."
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.files))

    def __len__(self) -> int:
        return len(self.files)

    def __contains__(self, name: object) -> bool:
        return name in self.files


def _without_file(problem: str, what: str, file: Path) -> str:
    """Return a problem of a file without the file's name, which is named before it."""
    said = problem.removeprefix(f"{file.name} is not a {what}: ")
    return f"it {said.removeprefix(f'{file.name} ')}" if said.startswith(f"{file.name} ") else said


def one_per_line(problem: str) -> str:
    """Write the problems of a file after a colon: one in the same line, several as a list."""
    lines = problem.split("\n")
    if len(lines) < 2:
        return f" {problem}"
    more = len(lines) - MOST_PROBLEMS
    shown = lines[:MOST_PROBLEMS] + ([f"and {more} more"] if more > 0 else [])
    return "".join(f"\n  {line}" if line.startswith("- ") else f"\n- {line}" for line in shown)


def modules(
    what: str,
    package: str,
    folder: Path,
    kind: type[Entry],
    *,
    own: OwnFolder = lambda: None,
    accept: Accept[Entry] | None = None,
    others: Mapping[str, Callable[[str, Path], Entry]] | None = None,
) -> Catalogue[Entry]:
    """Return the catalogue of ``folder/NAME.py``, each defining a ``kind`` called ``NAME``.

    The user's ``own`` files are imported when the catalogue is first used, as they import the
    package that makes it. ``accept`` raises an error for an entry that clashes with others.
    ``others`` are suffixes of further own files, with the function that makes an entry of one.
    """
    others = others or {}
    bundled = _files(folder, ".py")

    def load(name: str, file: Path) -> Entry:
        if make := others.get(file.suffix):
            return make(name, file)
        if bundled.get(name) == file:
            source, module = f"{package}.{name}", importlib.import_module(f"{package}.{name}")
        else:
            source, module = file.name, _import_file(f"{OWN_PACKAGE}.{package}.{name}", file)
        entry = getattr(module, name, None)
        if not isinstance(entry, kind):
            raise ValueError(f"{source} must define {name!r} as a {kind.__name__}.")  # noqa: TRY004
        return entry

    return Catalogue(what, bundled, load, lambda: _files(own(), ".py", *others), accept)


class _Uncached(SourceFileLoader):
    """Compiles the source each time: bytecode would be stale for a file edited within a second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _import_file(module: str, file: Path) -> ModuleType:
    """Import a file of the user's own folder under a name that no other module has.

    Raise ValueError for whatever its code raises, with the line.
    """
    loader = _Uncached(module, str(file))
    spec = importlib.util.spec_from_file_location(module, file, loader=loader)
    if spec is None or spec.loader is None:
        raise ValueError("it is not a Python module. Give it a name that ends in .py.")
    made = importlib.util.module_from_spec(spec)
    sys.modules[module] = made
    try:
        spec.loader.exec_module(made)
    except OSError:
        del sys.modules[module]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[module]
        raise ValueError(_failure(error, file)) from error
    return made


def _failure(error: BaseException, file: Path) -> str:
    """Say in one line which error the code of a file raised, and in which line of it."""
    steps = traceback.extract_tb(error.__traceback__)
    lines = [step.lineno for step in steps if step.filename == str(file)]
    place = f" in line {lines[-1]}" if lines else ""
    first = str(error).strip().split("\n")[0][:LONGEST_FAILURE].rstrip(".")
    said = EXITS if isinstance(error, SystemExit) else f"{first}." if first else "no reason given."
    return f"{type(error).__name__}{place}: {said}"


def tables(
    what: str,
    folders: Path | Sequence[Path],
    parse: Callable[[str, dict[str, Any]], Entry],
    own: OwnFolder = lambda: None,
    split: Mapping[str, Split] | None = None,
    *,
    why_missing: Callable[[str], str] = lambda _: "",
) -> Catalogue[Entry]:
    """Return the catalogue of ``NAME.toml`` files in the folders; names must be unique.

    Files of the user's ``own`` folder are read immediately. ``split`` are suffixes of further own
    files, which hold several entries each; ``why_missing`` says what an unknown name is instead.
    """
    split = split or {}
    files: dict[str, Path] = {}
    for folder in [folders] if isinstance(folders, Path) else folders:
        if not folder.is_dir():
            raise FileNotFoundError(
                f"the folder {folder} of {what} files is not there. Install voirdire again."
            )
        for name, file in _files(folder, ".toml").items():
            if name in files:
                raise ValueError(
                    f"the {what} {name!r} is in {files[name]} and in {file}. Rename or remove one."
                )
            files[name] = file

    def load(name: str, path: Path) -> Entry:
        several = split.get(path.suffix)
        data = several(path).get(name, TAKEN) if several else read_toml(path)
        try:
            if isinstance(data, str):
                raise ValueError(data)  # noqa: TRY301, TRY004 - read like any other error
            return parse(name, data)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{path.name} is not a {what}: {error}") from error

    def find() -> dict[str, Path]:
        found = _files(own(), ".toml")
        for suffix, several in split.items():
            for file in _files(own(), suffix).values():
                for name in several(file):
                    # `load` rejects the longer name, which the file does not have.
                    found[name if name not in found else f"{name} of {file.name}"] = file
        return found

    catalogue = Catalogue(what, files, load, find, why_missing=why_missing)
    catalogue.read_own()
    return catalogue


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; errors name the file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not valid TOML: {error}.") from error


def _files(folder: Path | None, *suffixes: str) -> dict[str, Path]:
    """Return the entries' files by name; a leading underscore marks a file that is no entry.

    Raise ValueError if two files have the same name but for their suffix.
    """
    files: dict[str, Path] = {}
    for file in sorted(folder.iterdir()) if folder else ():
        if file.suffix in suffixes and not file.stem.startswith("_"):
            if file.stem in files:
                raise ValueError(
                    f"{files[file.stem]} and {file.name} have the same name. Rename one of them."
                )
            files[file.stem] = file
    return files
