"""Models of what people write, in TOML files, options and forms."""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


class Written(BaseModel):
    """A table that people write: no value is converted to another type.

    Pydantic takes true and false as 1 and 0, and texts such as "3" and "yes" as numbers and
    booleans, although a value of another type is a mistake.
    """

    @field_validator("*", mode="before")
    @classmethod
    def _not_converted(cls, given: object, info: ValidationInfo) -> object:
        kind = cls.model_fields[str(info.field_name)].annotation
        if wanted := _misplaced(given, kind):
            raise PydanticCustomError(wanted, "Input should be of another type")
        for each in _kinds(kind):
            if get_origin(each) is dict and isinstance(given, Mapping):
                for key, value in given.items():
                    if _misplaced(value, get_args(each)[1]):
                        said = str(value).lower() if isinstance(value, bool) else repr(value)
                        raise ValueError(f"{key!r:.60} is {said:.60}, but must be a number")
        return given


def _misplaced(given: object, kind: Any) -> Literal["float_type", "bool_type"] | None:
    """Return pydantic's name for the problem of a boolean or text in another type's place."""
    kinds = _kinds(kind)
    if not isinstance(given, bool | str) or type(given) in kinds:
        return None
    if any(get_origin(each) is Literal for each in kinds):
        return None
    if kinds & {int, float}:
        return "float_type"
    return "bool_type" if bool in kinds else None


def _kinds(kind: Any) -> set[Any]:
    return {*get_args(kind)} if get_origin(kind) in (Union, UnionType) else {kind}
