"""Validate tables of TOML files as models, with all problems in one error."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from tasks.validation.invalid_values import field_of, named, problem_of

Model = TypeVar("Model", bound=BaseModel)


def entry(
    model: type[Model],
    place: str,
    table: object,
    hint: str = "",
    *,
    show_values: bool = False,
    **given: Any,
) -> Model:
    """Validate a TOML table as a ``model``; ``given`` are fields that come from elsewhere.

    A ValueError gives all problems of the table. Texts may be secrets, so only ``show_values``
    repeats them.
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
        problems += [_problem(model, place, e, show_values=show_values) for e in error.errors()]
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


def _problem(model: type[BaseModel], place: str, error: Any, *, show_values: bool) -> str:
    path = [str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        inner = _nested_model(model, path[:-1])
        return _unknown_key(f"{place} {'.'.join(path[:-1])}", path[-1], list(inner.model_fields))
    if error["type"] == "missing":
        return f"{place} needs the key {'.'.join(path)!r}."
    where = (
        f"{'the key' if place == 'the file' else place} {named(error['loc'])}" if path else place
    )
    field = field_of(model, error["loc"])
    optional = "the key" if field and not field.is_required() else ""
    return problem_of(error, model, where, optional, shown=show_values)


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
