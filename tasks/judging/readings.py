"""Verdicts by a pattern or a JSON pointer, which a user's own judge prompt defines.

A pattern or a JSON pointer finds a text, and a map says which choice the text is. Patterns are
those of Polars (Rust's regex), which takes linear time on any reply; it is imported when a pattern
is used, as the process that simulates judges does without.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tasks.judging.verdict_parser import Choice, parsed_object, refuses

Verdict = Literal["first", "second", "tie"]
PLACE = "{verdict}"


class Reading(BaseModel):
    """The texts that a verdict may be, in any case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    map: dict[str, Verdict] = Field(min_length=2)
    """Text in the reply -> the choice that it is."""

    @field_validator("map")
    @classmethod
    def _both_sides(cls, meanings: dict[str, Verdict]) -> dict[str, Verdict]:
        folded = [_folded(text) for text in meanings]
        if len({*folded}) < len(folded):
            raise ValueError("two texts differ only in case or white space. Keep one of them")
        if missing := {"first", "second"} - {*meanings.values()}:
            raise ValueError(f"no text is mapped to {min(missing)!r}. Add one")
        return meanings

    def meaning(self, text: str) -> Choice:
        """Return the choice that a text is; one that is not in the map is invalid."""
        known = {_folded(key): choice for key, choice in self.map.items()}
        return known.get(_folded(text), "invalid")

    def text_of(self, choice: str) -> str:
        """Return a text for a choice; if none means a tie, the text for the first answer."""
        return next(
            (text for text, meant in self.map.items() if meant == choice), next(iter(self.map))
        )


class Pattern(Reading):
    """A regular expression whose first group, or whole match, is the verdict's text."""

    pattern: str = Field(min_length=1, max_length=1000)
    example: str
    """A reply as the prompt asks for, with ``{verdict}`` in the verdict's place."""

    @model_validator(mode="after")
    def _reads_its_example(self) -> Self:
        import polars as pl

        try:
            pl.Series([""]).str.extract_all(self.pattern)
        except pl.exceptions.PolarsError as error:
            raise ValueError(
                f"the pattern {self.pattern!r:.80} is not a regular expression of Rust's regex: "
                f"{' '.join(str(error).split()):.200}"
            ) from error
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
        import polars as pl

        matches = pl.Series([reply]).str.extract_all(self.pattern).explode()
        texts = matches.str.extract(self.pattern, self._group()).drop_nulls().to_list()
        choices = {self.meaning(text) for text in texts}
        if not choices:
            return "abstain" if refuses(reply) else "invalid"
        return choices.pop() if len(choices) == 1 else "ambiguous"

    def _group(self) -> int:
        import polars as pl

        groups = pl.Series([""]).str.extract_groups(self.pattern)
        fields = groups.dtype.fields if isinstance(groups.dtype, pl.Struct) else []
        return 1 if fields else 0


class Pointer(Reading):
    """A JSON pointer (RFC 6901) to the verdict in a reply that is a JSON object, fenced or not."""

    pointer: str = Field(pattern=r"^(/[^/]*)+$", max_length=1000)

    def reply(self, text: str) -> str:
        """Return a reply with a verdict."""
        made: Any = text
        for name in reversed(self._names()):
            made = {name: made}
        return json.dumps(made)

    def read(self, reply: str) -> Choice:
        """Return the choice in a reply; one that is no JSON, or lacks the value, is invalid."""
        found = parsed_object(reply)
        if found is None:
            return "abstain" if refuses(reply) else "invalid"
        for name in self._names():
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return "invalid"
        if isinstance(found, bool | int | float):
            return self.meaning(json.dumps(found))
        return self.meaning(found) if isinstance(found, str) else "invalid"

    def _names(self) -> list[str]:
        parts = self.pointer.split("/")[1:]
        return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _folded(text: str) -> str:
    return text.strip().casefold()
