"""Verdicts by a pattern or a JSON pointer, which a user's own judge prompt defines.

A pattern or a JSON pointer finds a text, and a map says which choice the text is. Polars runs
the patterns (with Rust's regex, in linear time on any reply); it is imported when a pattern is
used, as the process that simulates judges does without it.
"""

import json
from collections.abc import Collection, Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from schemas.keys import Choice, Preference
from tasks.judging.verdict_parser import parsed_object, refuses
from tasks.validation.invalid_values import POINTER_PATTERN

PLACE = "{verdict}"


class VerdictMap(BaseModel):
    """The texts that a verdict may be, in any case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    map: dict[str, Preference] = Field(min_length=2)
    """Text in the reply -> the choice that it is."""

    @field_validator("map")
    @classmethod
    def _both_sides(cls, meanings: dict[str, Preference]) -> dict[str, Preference]:
        if len({folded(text) for text in meanings}) < len(meanings):
            raise ValueError("two texts differ only in case or white space. Keep one of them")
        if missing := {"first", "second"} - {*meanings.values()}:
            raise ValueError(f"no text is mapped to {min(missing)!r}. Add one")
        return meanings

    def meaning(self, text: str) -> Choice:
        """Return the choice that a text is; one that is not in the map is invalid."""
        known = {folded(key): choice for key, choice in self.map.items()}
        return known.get(folded(text), "invalid")

    def text_of(self, choice: str) -> str:
        """Return a text for a choice; if none means a tie, the text for the first answer."""
        return next(
            (text for text, meant in self.map.items() if meant == choice), next(iter(self.map))
        )


class Pattern(VerdictMap):
    """A regular expression whose first group, or whole match, is the verdict's text."""

    pattern: str = Field(min_length=1, max_length=1000)
    example: str
    """A reply as the prompt asks for, with ``{verdict}`` in the verdict's place."""

    @model_validator(mode="after")
    def _reads_its_example(self) -> Self:
        require_pattern(self.pattern)
        for text, choice in self.map.items():
            if (found := self.read(self.reply(text))) != choice:
                raise ValueError(
                    f"the pattern reads the example with {text!r:.40} as {found!r}, not as "
                    f"{choice!r}. Correct the pattern, the map or the example"
                )
        return self

    def reply(self, text: str) -> str:
        """Return the example reply with a verdict."""
        return self.example.replace(PLACE, text)

    def read(self, reply: str) -> Choice:
        """Return the choice in a reply: what all matches say, else it is ambiguous."""
        choices = {self.meaning(text) for (text,) in matched(self.pattern, reply)}
        if not choices:
            return "abstain" if refuses(reply) else "invalid"
        return choices.pop() if len(choices) == 1 else "ambiguous"


class Pointer(VerdictMap):
    """A JSON pointer (RFC 6901) to the verdict in a reply that is a JSON object, fenced or not."""

    pointer: str = Field(pattern=POINTER_PATTERN, max_length=1000)

    def reply(self, text: str) -> str:
        """Return a reply with a verdict."""
        return json.dumps(placed(self.pointer, text))

    def read(self, reply: str) -> Choice:
        """Return the choice in a reply; one that is no JSON, or lacks the value, is invalid."""
        whole = parsed_object(reply)
        if whole is None:
            return "abstain" if refuses(reply) else "invalid"
        found = value_at(self.pointer, whole)
        if isinstance(found, bool | int | float):
            return self.meaning(as_mapped(found, self.map))
        return self.meaning(found) if isinstance(found, str) else "invalid"


def require_pattern(pattern: str) -> None:
    """Reject a pattern that is not a regular expression of Rust's regex."""
    import polars as pl

    try:
        pl.Series([""]).str.extract_all(pattern)
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"the pattern {pattern!r:.80} is not a regular expression of Rust's regex: "
            f"{_said(str(error)):.200}"
        ) from error


def _said(error: str) -> str:
    """Return what an error of Polars says of a pattern, without the pattern and the expression."""
    about = error.partition("This error occurred in the following expression")[0]
    return " ".join(about.rpartition("error: ")[2].split())


def matched(pattern: str, reply: str, groups: int = 1) -> list[tuple[str, ...]]:
    """Return the first ``groups`` groups of each match, the whole match if there is no group."""
    import polars as pl

    fields = pl.Series([""]).str.extract_groups(pattern).dtype
    first = 1 if isinstance(fields, pl.Struct) and fields.fields else 0
    matches = pl.Series([reply]).str.extract_all(pattern).explode()
    found = [matches.str.extract(pattern, first + at).to_list() for at in range(groups)]
    return [texts for texts in zip(*found, strict=True) if None not in texts]


def as_mapped(value: object, known: Collection[str]) -> str:
    """Return a value of JSON as the text that a map names: 4.0 as 4, unless 4.0 is ``known``."""
    text = value if isinstance(value, str) else json.dumps(value)
    if text in known or not isinstance(value, float) or not value.is_integer():
        return text
    return json.dumps(int(value))


def value_at(pointer: str, whole: object) -> object:
    """Return the value that a JSON pointer finds; None if there is none."""
    found = whole
    for name in _names(pointer):
        if isinstance(found, Mapping) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def placed(pointer: str, value: object) -> object:
    """Return nested objects in which a JSON pointer finds ``value``."""
    for name in reversed(_names(pointer)):
        value = {name: value}
    return value


def _names(pointer: str) -> list[str]:
    parts = pointer.split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def folded(text: str) -> str:
    """Return a text as it is compared: without case and surrounding white space."""
    return text.strip().casefold()
