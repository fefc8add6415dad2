"""Catalogues: folders of entries (Python modules or TOML files), loaded on first use."""

import difflib
import importlib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

Entry = TypeVar("Entry")


class UnknownNameError(LookupError):
    """The catalogue has no entry of that name."""


def unknown(what: str, wanted: str, known: list[str]) -> UnknownNameError:
    """Return the error for an unknown name, with a suggestion."""
    near = nearest(wanted, known)
    hint = f" Did you mean {near!r}?" if near else ""
    return UnknownNameError(f"no {what} {wanted!r}.{hint} Known: {', '.join(known) or 'none'}.")


def nearest(wanted: str, known: Sequence[str]) -> str | None:
    """Return the known name probably meant: closest in spelling, or the only one with that part."""
    if near := difflib.get_close_matches(wanted, known, n=1):
        return near[0]
    whole = [name for name in known if wanted.lower() in name.split("_")]
    return whole[0] if len(whole) == 1 else None


class Catalogue(Mapping[str, Entry]):
    """Mapping of names to entries; an entry is loaded on first use."""

    def __init__(
        self,
        what: str,
        names: Mapping[str, Path],
        load: Callable[[str], Entry],
        unusable: Mapping[str, str] | None = None,
        loaded: Mapping[str, Entry] | None = None,
    ) -> None:
        self._what = what
        self.files = names
        self.unusable = unusable or {}
        """The user's own entries that cannot be used -> the error message."""
        self._load = load
        self._loaded = dict(loaded or {})

    def __getitem__(self, name: str) -> Entry:
        self.require(name)
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def require(self, name: str) -> None:
        """Raise an error with a suggestion if the catalogue has no such name."""
        if name in self.files:
            return
        if name in self.unusable:
            raise UnknownNameError(self.unusable[name])
        raise unknown(self._what, name, sorted(self.files))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.files))

    def __len__(self) -> int:
        return len(self.files)

    def __contains__(self, name: object) -> bool:
        return name in self.files


def modules(what: str, package: str, folder: Path, kind: type[Entry]) -> Catalogue[Entry]:
    """Return the catalogue of ``folder/NAME.py``, each defining a ``kind`` called ``NAME``."""

    def load(name: str) -> Entry:
        entry = getattr(importlib.import_module(f"{package}.{name}"), name, None)
        if not isinstance(entry, kind):
            raise TypeError(f"{package}.{name} must define {name!r} as a {kind.__name__}.")
        return entry

    return Catalogue(what, _files(folder, "py"), load)


def tables(
    what: str,
    folders: Path | Sequence[Path],
    parse: Callable[[str, dict[str, Any]], Entry],
    own: Path | None = None,
) -> Catalogue[Entry]:
    """Return the catalogue of ``NAME.toml`` files in the folders; names must be unique.

    Files of the user's ``own`` folder are read once, immediately, as they may change or vanish at
    any time. An invalid one is left out; only using its name raises the error.
    """
    files: dict[str, Path] = {}
    for folder in [folders] if isinstance(folders, Path) else folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"the folder {folder} of {what} files is not there.")
        for name, file in _files(folder, "toml").items():
            if name in files:
                raise ValueError(f"the {what} {name!r} is in {files[name]} and in {file}.")
            files[name] = file

    def load(name: str) -> Entry:
        return read(name, files[name])

    def read(name: str, path: Path) -> Entry:
        data = read_toml(path)
        try:
            return parse(name, data)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{path.name} is not a {what}: {error}") from error

    unusable: dict[str, str] = {}
    loaded: dict[str, Entry] = {}
    for name, file in (_files(own, "toml") if own else {}).items():
        problem = f"the {what} {name!r} of {file} cannot be used: "
        if name in files:
            unusable[name] = f"{problem}there is a bundled {what} of this name. Rename the file."
            continue
        try:
            loaded[name] = read(name, file)
        except OSError as error:
            unusable[name] = f"{problem}{error.strerror or error}."
        except ValueError as error:
            unusable[name] = f"{problem}{error}"
        else:
            files[name] = file
    return Catalogue(what, files, load, unusable, loaded)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; errors name the file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not valid TOML: {error}.") from error


def _files(folder: Path, suffix: str) -> dict[str, Path]:
    return {p.stem: p for p in folder.glob(f"*.{suffix}") if not p.stem.startswith("_")}


Model = TypeVar("Model", bound=BaseModel)


def entry(model: type[Model], place: str, table: object, hint: str = "", **given: Any) -> Model:
    """Validate a TOML table as a ``model``; ``given`` are fields that come from elsewhere.

    Raises
    ------
    ValueError
        With all problems of the table; values are not repeated, as they may be secrets.
    """
    if not isinstance(table, dict):
        raise ValueError(f"{place} must be a table.")  # noqa: TRY004 - read like any other error
    allowed = [name for name in model.model_fields if name not in given]
    # A misspelt key is most likely one of the missing ones.
    needed = [n for n in allowed if model.model_fields[n].is_required() and n not in table]
    strange = [name for name in table if name not in allowed]
    inner = _keys_of_tables(model)
    problems = [_unknown_key(place, name, allowed, hint, needed, inner=inner) for name in strange]
    try:
        made = model(**{k: v for k, v in table.items() if k in allowed}, **given)
    except ValidationError as error:
        problems += [_problem(model, place, each) for each in error.errors(include_input=False)]
    if problems:
        raise ValueError(" ".join(problems))
    return made


def require_tables(data: dict[str, Any], known: list[str]) -> None:
    """Raise an error for tables or top-level keys that nothing reads."""
    problems = [_unknown_key("the file", name, known) for name in data if name not in known]
    if problems:
        raise ValueError(" ".join(problems))


def _unknown_key(
    place: str,
    name: str,
    allowed: list[str],
    hint: str = "",
    needed: Sequence[str] = (),
    *,
    inner: Mapping[str, str] | None = None,
) -> str:
    inner = inner or {}
    if name in inner:
        meant = f" Did you mean {inner[name]}?"
    elif near := (
        difflib.get_close_matches(name, needed, n=1)
        or difflib.get_close_matches(name, allowed, n=1)
    ):
        meant = f" Did you mean {near[0]!r}?"
    elif near := difflib.get_close_matches(name, list(inner), n=1):
        meant = f" Did you mean {inner[near[0]]}?"
    else:
        meant = hint
    return f"{place} has no key {name!r}.{meant} Known: {', '.join(allowed)}."


def _keys_of_tables(model: type[BaseModel]) -> dict[str, str]:
    """Return the keys of nested tables, each with its place."""
    return {
        key: f"[{table}] {key}"
        for table, field in model.model_fields.items()
        for key in getattr(field.annotation, "model_fields", {})
    }


def _problem(model: type[BaseModel], place: str, error: Any) -> str:
    path = [str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        inner = _nested_model(model, path[:-1])
        return _unknown_key(f"{place} {'.'.join(path[:-1])}", path[-1], list(inner.model_fields))
    if error["type"] == "missing":
        return f"{place} needs the key {'.'.join(path)!r}."
    said = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{place} {'.'.join(path)}: {said}."


def _nested_model(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """Return the model of a nested table."""
    for name in path:
        kind = model.model_fields[name].annotation
        model = next(
            each
            for each in (kind, *get_args(kind))
            if isinstance(each, type) and issubclass(each, BaseModel)
        )
    return model
