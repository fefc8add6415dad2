"""Validate tables of TOML files as models, with all problems in one error."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from tasks.validation.invalid_values import KEY, MUST, field_of, named, problem_of

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

    A ValueError gives all problems of the table, one per line. Texts may be secrets, so only
    ``show_values`` repeats them.
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
        found = [_problem(model, place, e, show_values=show_values) for e in error.errors()]
        problems += _with_alternatives(found)
    if problems:
        raise ValueError("\n".join(problems))
    return made


def require_tables(data: dict[str, Any], known: list[str]) -> None:
    """Raise an error for tables or top-level keys that nothing reads."""
    problems = [_unknown_key("the file", name, known) for name in data if name not in known]
    if problems:
        raise ValueError("\n".join(problems))


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


def _with_alternatives(problems: Sequence[str]) -> list[str]:
    """Make one problem of several if a value may have several types and has none of them."""
    found: dict[str, list[str]] = {}
    for problem in problems:
        about, _, allowed = problem.partition(MUST)
        found.setdefault(about, []).append(allowed)
    merged = []
    for about, several in found.items():
        *others, last = dict.fromkeys(several)
        kinds = [each.partition(". ")[0] for each in others]
        merged.append(f"{about}{MUST if last else ''}{', or '.join([*kinds, last])}")
    return merged


def _problem(model: type[BaseModel], place: str, error: Any, *, show_values: bool) -> str:
    path = _without_kinds(model, error["loc"])
    if error["type"] == "extra_forbidden":
        inner = _nested_model(model, path[:-1])
        return _unknown_key(f"{place} {named(path[:-1])}", str(path[-1]), list(inner.model_fields))
    if error["type"] == "missing":
        entries = f" {named(path[:-1])}" if any(isinstance(part, int) for part in path) else ""
        key = path[-1] if entries else ".".join(map(str, path))
        missing = field_of(model, path)
        what = f" {missing.description}." if missing and missing.description else ""
        return f"{place}{entries} needs the key {key!r}.{what}"
    whole = place == "the file"
    # What is wrong with a whole file follows its name.
    where = f"{'the key' if whole else place} {named(path)}" if path else place * (not whole)
    field = field_of(model, path)
    optional = "the key" if field and not field.is_required() else ""
    return problem_of(error, model, where, optional, shown=show_values)


def _without_kinds(model: type[BaseModel], path: Sequence[Any]) -> list[Any]:
    """Return the place of a value without the kinds of values that pydantic tries at a field."""
    if len(path) < 2 or not (field := model.model_fields.get(str(path[0]))):
        return [*path]
    kinds = {each.__name__ for each in _models(field.annotation)}
    return [part for part in path if part not in kinds and "[" not in str(part).removesuffix(KEY)]


def _nested_model(model: type[BaseModel], path: Sequence[object]) -> type[BaseModel]:
    """Return the model of a nested table, also of one in a list or under a name of the user's."""
    for name in path:
        if field := model.model_fields.get(str(name)):
            model = next(_models(field.annotation), model)
    return model


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type, such as the type of a list's entries."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models(part)
