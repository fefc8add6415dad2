"""Tables of TOML as entries; an error names the table, the key and what is allowed."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def entry(model: type[Model], place: str, table: object, hint: str = "", **given: Any) -> Model:
    """Return a table as a ``model``, of which ``given`` stands elsewhere.

    Raises
    ------
    ValueError
        With every problem of the table at once; values, which may be secrets, are not repeated.
    """
    if not isinstance(table, dict):
        raise ValueError(f"{place} must be a table.")  # noqa: TRY004 - read like any other error
    allowed = [name for name in model.model_fields if name not in given]
    # What is misspelt is most likely what is missing.
    needed = [n for n in allowed if model.model_fields[n].is_required() and n not in table]
    strange = [name for name in table if name not in allowed]
    inner = _keys_of_tables(model)
    problems = [_strange(place, name, allowed, hint, needed, inner=inner) for name in strange]
    try:
        made = model(**{k: v for k, v in table.items() if k in allowed}, **given)
    except ValidationError as error:
        problems += [_problem(model, place, each) for each in error.errors(include_input=False)]
    if problems:
        raise ValueError(" ".join(problems))
    return made


def require_tables(data: dict[str, Any], known: list[str]) -> None:
    """Refuse a file with tables, or keys above all tables, that nothing reads."""
    problems = [_strange("the file", name, known) for name in data if name not in known]
    if problems:
        raise ValueError(" ".join(problems))


def _strange(
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
    """Return the keys of the tables within a table, each with its place."""
    return {
        key: f"[{table}] {key}"
        for table, field in model.model_fields.items()
        for key in getattr(field.annotation, "model_fields", {})
    }


def _problem(model: type[BaseModel], place: str, error: Any) -> str:
    path = [str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        inner = _inner(model, path[:-1])
        return _strange(f"{place} {'.'.join(path[:-1])}", path[-1], list(inner.model_fields))
    if error["type"] == "missing":
        return f"{place} needs the key {'.'.join(path)!r}."
    said = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{place} {'.'.join(path)}: {said}."


def _inner(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """Return the model of a table within a table."""
    for name in path:
        kind = model.model_fields[name].annotation
        model = next(
            each
            for each in (kind, *get_args(kind))
            if isinstance(each, type) and issubclass(each, BaseModel)
        )
    return model
