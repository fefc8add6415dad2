"""Ratings in a judge's reply to a pointwise prompt, and replies that state given ratings.

A rating is read where the prompt asks for it, and nowhere else: never the first number in the
text. Different ratings in one reply are ambiguous; one that is off the declared scale, or none, is
invalid.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from schemas.keys import Choice, RatingKind
from tasks.agreement.pass_words import LARGEST_GRADE
from tasks.judging.patterns import as_mapped, folded, matched, placed, require_pattern, value_at
from tasks.judging.verdict_parser import parsed_object, refuses
from tasks.validation.invalid_values import POINTER_PATTERN
from tasks.validation.strict_models import Written

Value = float | bool | tuple[str, ...]
"""A grade, whether an answer passed, or the labels that it got."""

ANY_TAG = re.compile(r"\[\[([^\[\]\n]{1,400})\]\]")
NUMBER = re.compile(
    r"([+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?)(?:\s*/\s*([0-9]{1,12}(?:\.[0-9]{1,12})?))?"
)
LIKE_NUMBER = re.compile(r"[+-]?\.?[0-9]|[+-]?(?:nan|inf)", re.IGNORECASE)
"""Begins what is meant as a number, readable or not; ``[[rating]]`` only repeats the prompt."""
NO_LABEL = "none"
ANY_CASE = "(?i)"
"""Begins a pattern that does not distinguish case."""
WHOLE_ONLY = ", which has whole grades only unless it sets whole = false"
WHOLE = ""
"""Name of the criterion of a prompt that has no criteria."""
PLACE, CRITERION = "{verdict}", "{criterion}"
JSON_NAMES = {"single": "rating", "binary": "verdict", "labels": "labels"}
REASON = "reason"


class Scale(Written):
    """The grades that a judge may give."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    low: float
    high: float
    whole: bool = True
    """Whether grades are whole numbers."""
    passes_at: float | None = None
    """Grades from this one on pass."""

    @model_validator(mode="after")
    def _is_a_scale(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low ({self.low:g}) must be below high ({self.high:g})")
        if self.whole and not (self.low.is_integer() and self.high.is_integer()):
            raise ValueError(
                f"its ends {self.low:g} and {self.high:g} must be whole numbers, or set "
                "whole = false"
            )
        if self.passes_at is not None and not self.low < self.passes_at <= self.high:
            raise ValueError(
                f"passes_at ({self.passes_at:g}) must be above low ({self.low:g}) and at most high "
                f"({self.high:g})"
            )
        return self

    def holds(self, grade: float) -> bool:
        """Tell whether a grade is on the scale."""
        return self.low <= grade <= self.high and (not self.whole or grade.is_integer())


class Criterion(Scale):
    """A criterion of a rubric with its own scale."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_ .-]{0,63}$")
    about: str = ""
    weight: float = Field(default=1, gt=0)
    """Weight in the mean over all criteria."""


class _Mapped(Written):
    """A reading with a map from texts to values: a grade, ``pass``, ``fail``, or a label."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    map: dict[str, float | str] = {}


class RatingPattern(_Mapped):
    """A regular expression whose first group, or whole match, is the rating.

    For a rubric the first group is the criterion, and the second the grade.
    """

    pattern: str = Field(min_length=1, max_length=1000)
    example: str
    """A reply as the prompt asks for, with ``{verdict}`` in the rating's place. For a rubric the
    part of it about one ``{criterion}``."""


class RatingPointer(_Mapped):
    """A JSON pointer (RFC 6901) to a number, text, truth value, labels, or grades by criterion."""

    pointer: str = Field(pattern=POINTER_PATTERN, max_length=1000)


class Rated(NamedTuple):
    """What was read from a reply."""

    choice: Choice | Literal["rated"]
    values: dict[str, Value]
    """Criterion, or ``WHOLE`` -> what the reply says, also a grade that is off the scale."""

    @property
    def as_json(self) -> str | None:
        """Return the values as ``votes.rating`` keeps them; None if there are none."""
        return json.dumps(self.values) if self.values else None


class Grading(BaseModel):
    """What a pointwise prompt asks for, and how the rating is read and written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: RatingKind
    form: Literal["tag", "json"] | RatingPattern | RatingPointer = "tag"
    reason: bool = True
    """Whether a reply in JSON begins with a reason."""
    scale: Scale | None = None
    criteria: tuple[Criterion, ...] = ()
    labels: tuple[str, ...] = ()
    passes: str = "pass"
    fails: str = "fail"

    @property
    def scales(self) -> dict[str, Scale | None]:
        """Return the scale of each criterion; none for verdicts and labels."""
        if self.kind == "rubric":
            return {criterion.name: criterion for criterion in self.criteria}
        return {WHOLE: self.scale}

    @property
    def mapped(self) -> tuple[float, ...]:
        """Return the grades, or pass (1) and fail (0), that the texts of a map mean.

        It is empty for labels and if there is no map.
        """
        values = (self._value_of(to) for to in self._map.values())
        return tuple(float(value) for value in values if not isinstance(value, tuple))

    def read(self, reply: str) -> Rated:
        """Return the rating that a reply states."""
        found = self._candidates(reply)
        if not any(found.values()):
            return Rated("abstain" if refuses(reply) else "invalid", {})
        values: dict[str, Value] = {}
        several = faulty = False
        for name, scale in self.scales.items():
            candidates = {*found.get(name, ())}
            several |= len(candidates) > 1
            value = candidates.pop() if len(candidates) == 1 else None
            if value is not None:
                values[name] = value
            faulty |= value is None or not (
                scale is None or (isinstance(value, float) and scale.holds(value))
            )
        if several:
            return Rated("ambiguous", values)
        return Rated("invalid" if faulty else "rated", values)

    def write(self, values: Mapping[str, Value], reason: str) -> str:
        """Return a reply that states a rating, as simulated judges give it."""
        if self.form == "json":
            return json.dumps({**({REASON: reason} if self.reason else {}), **self._named(values)})
        if isinstance(self.form, RatingPointer):
            named = {name: self._plain(value) for name, value in values.items()}
            return json.dumps(
                placed(self.form.pointer, named if self.kind == "rubric" else named[WHOLE])
            )
        if isinstance(self.form, RatingPattern):
            form = self.form.example
            return "\n".join(
                form.replace(CRITERION, name).replace(PLACE, self._text(value))
                for name, value in values.items()
            )
        tags = [f"{name}: {self._text(value)}".removeprefix(": ") for name, value in values.items()]
        return " ".join([reason, *(f"[[{tag}]]" for tag in tags)])

    def check_reading(self) -> None:
        """Reject a map to values that are not the prompt's, and a pattern that misses its example.

        A ValueError gives the value, and what is allowed.
        """
        if isinstance(self.form, str):
            return
        wrong = [f"{text!r} = {to!r}" for text, to in self.form.map.items() if not self._allows(to)]
        if wrong:
            raise ValueError(f"map: {', '.join(wrong)} is not {self._allowed()}")
        if len({*map(folded, self.form.map)}) < len(self.form.map):
            raise ValueError("two texts differ only in case or white space. Keep one of them")
        verdicts = {"pass", "fail"} if self.kind == "binary" else {*self.labels}
        if self.form.map and (without := verdicts - {*self.form.map.values()}):
            raise ValueError(f"map: no text means {min(without)!r}. Add one")
        if isinstance(self.form, RatingPattern):
            require_pattern(self.form.pattern)
            for values in self._examples():
                if self.read(self.write(values, "")) != Rated("rated", values):
                    shown = ", ".join(self._text(value) for value in values.values())
                    folds = self.form.model_copy(update={"pattern": ANY_CASE + self.form.pattern})
                    loose = self.model_copy(update={"form": folds})
                    todo = (
                        f"A pattern distinguishes case: begin it with {ANY_CASE}"
                        if loose.read(self.write(values, "")) == Rated("rated", values)
                        else "Correct the pattern, the map or the example"
                    )
                    several = ", and a reply may choose several labels" * (self.kind == "labels")
                    raise ValueError(
                        f"the pattern does not read {shown} in the example{several}. {todo}"
                    )

    @property
    def json_schema(self) -> dict[str, Any]:
        """Return the schema of each field of a reply in JSON."""
        fields: dict[str, Any] = {REASON: {"type": "string"}} if self.reason else {}
        if self.kind == "rubric":
            return fields | {each.name: _number_type(each) for each in self.criteria}
        if self.kind == "labels":
            items = {"type": "string", "enum": [*self.labels]}
            return fields | {JSON_NAMES["labels"]: {"type": "array", "items": items}}
        if self.kind == "binary":
            enum = {"type": "string", "enum": [self.passes, self.fails]}
            return fields | {JSON_NAMES["binary"]: enum}
        return fields | {JSON_NAMES["single"]: _number_type(self.scale)}

    def _candidates(self, reply: str) -> dict[str, list[Value | None]]:
        """Return what the reply says of each criterion; None for what cannot be read."""
        if self.form == "tag":
            return self._tagged(reply)
        if isinstance(self.form, RatingPattern):
            if self.kind != "rubric":
                texts = matched(self.form.pattern, reply)
                return {WHOLE: [self._value(text) for (text,) in texts]}
            pairs = matched(self.form.pattern, reply, groups=2)
            return self._by_criterion((name, self._value(text)) for name, text in pairs)
        whole = parsed_object(reply)
        return {} if whole is None else self._in_json(whole)

    def _in_json(self, whole: object) -> dict[str, list[Value | None]]:
        if isinstance(self.form, RatingPointer):
            return self._in_value(value_at(self.form.pointer, whole))
        if not isinstance(whole, dict) or whole.keys() != self.json_schema.keys():
            return {WHOLE: [None]}
        if self.reason and not isinstance(whole.pop(REASON), str):
            return {WHOLE: [None]}
        typed = {name: each if self._is_typed(each) else None for name, each in whole.items()}
        return self._in_value(typed if self.kind == "rubric" else typed[JSON_NAMES[self.kind]])

    def _is_typed(self, value: object) -> bool:
        """Tell whether a value in JSON has the type that ``json_schema`` asks for."""
        if self.kind == "binary":
            return isinstance(value, str)
        return isinstance(value, list if self.kind == "labels" else int | float)

    def _tagged(self, reply: str) -> dict[str, list[Value | None]]:
        tags = [tag[1].strip() for tag in ANY_TAG.finditer(reply)]
        if self.kind == "rubric":
            parts = [tag.partition(":") for tag in tags]
            return self._by_criterion(
                (name, self._value(text))
                for name, _, text in parts
                if LIKE_NUMBER.match(text.strip())
            )
        if self.kind == "single":
            return {WHOLE: [self._value(tag) for tag in tags if LIKE_NUMBER.match(tag)]}
        if self.kind == "labels":
            known = {folded(label) for label in self.labels} | {NO_LABEL}
            about = [tag for tag in tags if not known.isdisjoint(map(folded, tag.split(",")))]
            return {WHOLE: [self._value(tag) for tag in about]}
        texts = {folded(self.passes), folded(self.fails)}
        return {WHOLE: [self._value(tag) for tag in tags if folded(tag) in texts]}

    def _by_criterion(
        self, found: Iterable[tuple[str, Value | None]]
    ) -> dict[str, list[Value | None]]:
        names = {folded(each.name): each.name for each in self.criteria}
        candidates: dict[str, list[Value | None]] = {}
        for name, value in found:
            if (known := names.get(folded(name))) is not None:
                candidates.setdefault(known, []).append(value)
        return candidates

    def _in_value(self, found: object) -> dict[str, list[Value | None]]:
        if self.kind != "rubric":
            return {WHOLE: [self._of_json(found)]}
        if not isinstance(found, Mapping):
            return {WHOLE: [None]}
        named = {str(name): self._of_json(value) for name, value in found.items()}
        return self._by_criterion(named.items()) or {WHOLE: [None]}

    def _of_json(self, found: object) -> Value | None:
        if isinstance(found, str):
            return self._value(found)
        if isinstance(found, list):
            simple = str | bool | int | float if self._map else str
            whole = self.kind == "labels" and all(isinstance(each, simple) for each in found)
            texts = (
                each if isinstance(each, str) else as_mapped(each, self._map) for each in found
            )
            return self._chosen([*texts]) if whole else None
        if isinstance(found, bool):
            plain = self.kind == "binary" and not self._map
            return found if plain else self._value(json.dumps(found))
        if not isinstance(found, int | float):
            return None
        if self._map:
            return self._value(as_mapped(found, self._map))
        numeric = self.kind in {"single", "rubric"} and abs(found) <= LARGEST_GRADE
        return float(found) if numeric else None

    @property
    def _map(self) -> dict[str, float | str]:
        return {} if isinstance(self.form, str) else self.form.map

    def _value(self, text: str) -> Value | None:
        """Return the value that a text is; None if it is none."""
        if self.kind == "labels":
            plain, known = folded(text), {*map(folded, self._map)}
            whole = [text] if plain in known else text.split(",")
            return self._chosen([] if plain in {"", NO_LABEL} - known else whole)
        if self._map:
            meanings = {folded(key): to for key, to in self._map.items()}
            to = meanings.get(folded(text))
            return self._value_of(to) if to is not None else None
        if self.kind == "binary":
            return {folded(self.passes): True, folded(self.fails): False}.get(folded(text))
        number = NUMBER.fullmatch(text.strip())
        if number is None:
            return None
        if number[2] is not None and float(number[2]) not in self._highs():
            return None
        return float(number[1])

    def _highs(self) -> set[float]:
        return {scale.high for scale in self.scales.values() if scale}

    def _value_of(self, to: float | str) -> Value:
        if self.kind == "binary":
            return to == "pass"
        if self.kind == "labels":
            return (str(to),) if to != NO_LABEL else ()
        return float(to)

    def _chosen(self, texts: list[str]) -> tuple[str, ...] | None:
        """Return the labels that are chosen, in the order of the prompt; None if one is unknown."""
        meanings = self._map or {label: label for label in self.labels}
        known = {folded(text): label for text, label in meanings.items()}
        keys = {folded(text) for text in texts}
        if not keys <= known.keys():
            return None
        chosen = {known[key] for key in keys}
        return tuple(label for label in self.labels if label in chosen)

    def _allows(self, to: float | str) -> bool:
        if self.kind == "binary":
            return to in {"pass", "fail"}
        if self.kind == "labels":
            return to in {*self.labels, NO_LABEL}
        scales = [scale for scale in self.scales.values() if scale]
        return isinstance(to, float) and all(scale.holds(to) for scale in scales)

    def _allowed(self) -> str:
        if self.kind == "binary":
            return "pass or fail"
        if self.kind == "labels":
            return "one of the labels, or none"
        given = () if isinstance(self.form, str) else self.form.map.values()
        is_part = any(isinstance(to, float) and not to.is_integer() for to in given)
        whole = is_part and any(scale and scale.whole for scale in self.scales.values())
        return f"a grade on the scale{WHOLE_ONLY * whole}"

    def _examples(self) -> list[dict[str, Value]]:
        """Return ratings that the example of a pattern must state."""
        sets: list[dict[str, Value]] = [{WHOLE: self.labels}] if self.kind == "labels" else []
        if self._map:
            ones = (self._value_of(to) for to in self._map.values())
            return [*(dict.fromkeys(self.scales, one) for one in ones), *sets]
        if self.kind == "binary":
            return [{WHOLE: True}, {WHOLE: False}]
        if self.kind == "labels":
            return [*sets, {WHOLE: self.labels[:1]}]
        ends = [(name, scale) for name, scale in self.scales.items() if scale]
        return [{n: scale.low for n, scale in ends}, {n: scale.high for n, scale in ends}]

    def _text(self, value: Value) -> str:
        for text, to in self._map.items():
            if self._value_of(to) == value:
                return text
        if isinstance(value, bool):
            return self.passes if value else self.fails
        if isinstance(value, float):
            return f"{value:.12g}"
        return ", ".join(self._label_texts(value)) or NO_LABEL

    def _label_texts(self, labels: tuple[str, ...]) -> list[str]:
        texts = {to: text for text, to in reversed(self._map.items())}
        return [texts.get(label, label) for label in labels]

    def _plain(self, value: Value) -> object:
        if isinstance(value, tuple):
            return self._label_texts(value)
        if self._map or isinstance(value, bool):
            return self._text(value)
        return int(value) if value.is_integer() else value

    def _named(self, values: Mapping[str, Value]) -> dict[str, object]:
        plain = {name: self._plain(value) for name, value in values.items()}
        return plain if self.kind == "rubric" else {JSON_NAMES[self.kind]: plain[WHOLE]}


def parse_two(reply: str, scale: Scale) -> tuple[Choice, dict[str, Value]]:
    """Return the better of two answers and the grades of both, ``[[rating_a,rating_b]]``."""
    parts = [tag[1].split(",") for tag in ANY_TAG.finditer(reply)]
    found = {
        tuple(_grade(grade, scale) for grade in two)
        for two in parts
        if len(two) == 2 and any(LIKE_NUMBER.match(grade.strip()) for grade in two)
    }
    if len(found) != 1:
        return "ambiguous" if found else "abstain" if refuses(reply) else "invalid", {}
    (first, valid), (second, also) = found.pop()
    if first is None or second is None:
        return "invalid", {}
    better: Choice = "tie" if first == second else "first" if first > second else "second"
    return better if valid and also else "invalid", {"first": first, "second": second}


def _grade(text: str, scale: Scale) -> tuple[float | None, bool]:
    """Return a grade, also one off the scale, and whether it is valid."""
    rated = Grading(kind="single", scale=scale).read(f"[[{text}]]")
    grade = rated.values.get(WHOLE)
    return (grade if isinstance(grade, float) else None), rated.choice == "rated"


def _number_type(scale: Scale | None) -> dict[str, str]:
    return {"type": "integer" if scale is not None and scale.whole else "number"}
