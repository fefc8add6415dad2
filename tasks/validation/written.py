"""Models of what people write, in TOML files, options and forms."""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


class Written(BaseModel):
    """A table that people write: in it true and false are no numbers.

    Pydantic takes them as 1 and 0, although a boolean in the place of a number is a mistake.
    """

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_as_number(cls, given: object, info: ValidationInfo) -> object:
        kind = cls.model_fields[str(info.field_name)].annotation
        if _is_misplaced(given, kind):
            raise PydanticCustomError("float_type", "Input should be a number")
        for each in _kinds(kind):
            if get_origin(each) is dict and isinstance(given, Mapping):
                for key, value in given.items():
                    if _is_misplaced(value, get_args(each)[1]):
                        said = str(value).lower()
                        raise ValueError(f"{key!r:.60} is {said}, but must be a number")
        return given


def _is_misplaced(given: object, kind: Any) -> bool:
    """Tell whether a value is a boolean where numbers are allowed, and booleans are not."""
    kinds = _kinds(kind)
    return isinstance(given, bool) and bool(kinds & {int, float}) and bool not in kinds


def _kinds(kind: Any) -> set[Any]:
    return {*get_args(kind)} if get_origin(kind) in (Union, UnionType) else {kind}
