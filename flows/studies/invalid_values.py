"""What is wrong with values that a model refuses: the value, what is allowed, the next step."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

NAME_PATTERN = r"^[A-Za-z0-9_.-]{1,64}$"
"""What a name under which results are saved looks like."""
PATTERNS = {NAME_PATTERN: "have 1 to 64 letters A to Z, digits, '_', '.' and '-', and no others"}
ENDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
NUMERIC = {
    *("greater_than_equal", "greater_than", "less_than_equal", "less_than"),
    *("finite_number", "int_type", "int_parsing", "float_type", "float_parsing"),
}
"""Problems of numbers, as pydantic calls them."""
LARGEST_NAMED = 1e9
"""An end of a range beyond it is named only if a value lies beyond that end."""


def problems_in(
    error: ValidationError, model: type[BaseModel], called: Mapping[str, str] | None = None
) -> str:
    """Describe all invalid values in one line.

    ``called`` are the options of a command from which fields were taken.
    """
    called = called or {}
    return " ".join(_problem(each, model, called) for each in error.errors())


def _problem(error: Any, model: type[BaseModel], called: Mapping[str, str]) -> str:
    field = str(error["loc"][0]) if error["loc"] else ""
    option = called.get(field)
    name = ".".join([option or field, *map(str, error["loc"][1:])])
    value = f"{error['input']!r:.60}"
    allowed = _allowed(error, model, field)
    if allowed is None:
        # Our own messages end with a full stop, and pydantic adds a prefix.
        said = error["msg"].removeprefix("Value error, ").rstrip(".")
        return f"{name} ({value}): {said}."
    step = f"Give such a value, or leave {option} out." if option else "Give such a value."
    return f"{name} is {value}, but must {allowed}. {step}"


def _allowed(error: Any, model: type[BaseModel], field: str) -> str | None:
    """Say what is allowed, after "must"; None if the message of the error says so."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(context["pattern"])
    if kind == "string_too_long":
        return f"have at most {context['max_length']} characters"
    if kind == "string_too_short":
        return "not be empty"
    if kind in NUMERIC and len(error["loc"]) == 1:
        about = model.model_fields[field]
        kind = "a whole number" if "int" in str(about.annotation) else "a finite number"
        ends = " and ".join(_ends(error["input"], about.metadata))
        return f"be {kind}, {ends}" if ends else f"be {kind}"
    return None


def _ends(value: Any, metadata: Iterable[object]) -> Iterator[str]:
    for name, words in ENDS.items():
        for end in (getattr(each, name, None) for each in metadata):
            beyond = isinstance(value, int | float) and end is not None and value > end
            if end is not None and (end < LARGEST_NAMED or beyond):
                yield f"{words} {end}"
