"""Describe values that a model refuses: the value, what is allowed, the next step.

Options, study files, provider files and prompt files share this wording.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

NAME_PATTERN = r"^[A-Za-z0-9_.-]{1,64}$"
"""What a name under which results are saved looks like."""
MODULE_PATTERN = r"^(\w+(\.\w+)*)?$"
POINTER_PATTERN = r"^(/[^/]*)+$"
PATTERNS = {
    POINTER_PATTERN: "begin with /, such as /result/grade",
    NAME_PATTERN: "have 1 to 64 letters A to Z, digits, '_', '.' and '-', and no others",
    MODULE_PATTERN: "be the name of a module, such as tools.server",
}
ENDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
WHOLE = {"int_type", "int_parsing", "int_from_float", "int_parsing_size"}
NUMERIC = {
    *("greater_than_equal", "greater_than", "less_than_equal", "less_than"),
    *("finite_number", "float_type", "float_parsing"),
    *WHOLE,
}
"""Problems of numbers, as pydantic calls them."""
KINDS = {
    "string_type": "be a text in quotes",
    "bool_type": "be true or false",
    "bool_parsing": "be true or false",
    "list_type": "be a list in square brackets",
    "dict_type": "be a table",
    "model_type": "be a table",
    "literal_error": "be {expected}",
    "string_too_long": "have at most {max_length} characters",
    "string_too_short": "not be empty",
    "too_short": "have {min_length} or more entries",
}
"""Other problems of pydantic -> what is allowed, after "must"."""
LARGEST_NAMED = 1e9
"""An end of a range beyond it is named only if a value lies beyond that end."""
MUST = ", but must "
KEY = "[key]"
"""Last part of a place where pydantic refuses a key instead of its value."""
WORDS = {str: "a text", list: "a list", dict: "a table"}


def problems_in(
    error: ValidationError, model: type[BaseModel], called: Mapping[str, str] | None = None
) -> str:
    """Describe all invalid values in one line.

    ``called`` names the options of a command that fields come from.
    """
    found = []
    for each in error.errors():
        field, *inner = each["loc"] or ("",)
        option = (called or {}).get(str(field))
        found.append(problem_of(each, model, named([option or field, *inner]), option or ""))
    return " ".join(found)


def named(path: Sequence[object]) -> str:
    """Write the place of a value: ``thresholds.minimum_shift``, ``judges (entry 1)``."""
    name = ".".join(str(part) for part in path if isinstance(part, str) and part != KEY)
    entries = [part for part in path if isinstance(part, int)]
    return f"{name} (entry {entries[-1] + 1})" if entries else name


def problem_of(
    error: Any, model: type[BaseModel], name: str, optional: str = "", *, shown: bool = True
) -> str:
    """Describe an invalid value: what it is, what is allowed, the next step.

    Parameters
    ----------
    error
        One of the errors of pydantic on ``model``.
    name
        The field, as the user calls it.
    optional
        What may also be left out, if anything.
    shown
        Whether texts may be shown; one in the wrong place may be a secret.
    """
    is_key = bool(error["loc"]) and error["loc"][-1] == KEY
    allowed = _allowed(error, field_of(model, error["loc"]))
    if allowed is None:
        # Our own messages end with a full stop, and pydantic adds a prefix.
        said = error["msg"].removeprefix("Value error, ").rstrip(".")
        value = f" ({_value(error['input'])})" if shown and error["loc"] else ""
        return f"{name}{value}: {said}." if name else f"{said}."
    if is_key:
        return f"{name}: this key must {allowed}. Use such a key."
    value = _value(error["input"]) if shown else _kind(error["input"])
    step = f"Give such a value, or leave {optional} out." if optional else "Give such a value."
    return f"{name} is {value}{MUST}{allowed}. {step}"


def field_of(model: type[BaseModel], path: Sequence[object]) -> FieldInfo | None:
    """Return the field at a place, also of a nested model; None for entries of lists and tables."""
    *outer, last = path or ("",)
    for name in outer:
        field = model.model_fields.get(str(name))
        kinds = (field.annotation, *get_args(field.annotation)) if field else ()
        inner = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
        if not inner:
            return None
        model = inner[0]
    return model.model_fields.get(str(last))


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value!r:.60}"


def _kind(value: Any) -> str:
    """Return the value; in place of a text, which may be a secret, its type."""
    hidden = next((word for kind, word in WORDS.items() if isinstance(value, kind)), None)
    if not hidden:
        return _value(value)
    return f"{hidden} (not shown, because it may hold a secret)"


def _allowed(error: Any, field: FieldInfo | None) -> str | None:
    """Say what is allowed, after "must"; None if the message of the error says so."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return PATTERNS.get(pattern, f"match the regular expression {pattern}")
    if kind in NUMERIC:
        about = str(field.annotation) if field else ""
        metadata = field.metadata if field else [SimpleNamespace(**context)]
        number = "a whole number" if kind in WHOLE or "int" in about else "a finite number"
        ends = " and ".join(_ends(error["input"], metadata))
        return f"be {number}, {ends}" if ends else f"be {number}"
    return KINDS[kind].format(**context) if kind in KINDS else None


def _ends(value: Any, metadata: Iterable[object]) -> Iterator[str]:
    for name, words in ENDS.items():
        for end in (getattr(each, name, None) for each in metadata):
            beyond = isinstance(value, int | float) and end is not None and value > end
            if end is not None and (end < LARGEST_NAMED or beyond):
                yield f"{words} {end}"
