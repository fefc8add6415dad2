"""A judge prompt: what it must have, the messages that it makes, and how replies are read."""

import hashlib
import itertools
import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from schemas.keys import Choice
from tasks.judging.patterns import Pattern, Pointer
from tasks.judging.rating_parser import (
    REASON,
    Criterion,
    Grading,
    Rated,
    RatingPattern,
    RatingPointer,
    Scale,
    parse_two,
)
from tasks.judging.turns import TURN_PLACES
from tasks.judging.verdict_parser import VERDICTS, parse, parse_json
from tasks.prompting.placeholders import filled, places_in, require_places
from tasks.prompting.variants import Variant, require_rewording

MARK_DIGITS = 12

NAMED = re.compile(r"(?=\S)[^\x00-\x1f\x7f\[\],]{1,64}(?<=\S)")
"""A criterion or a label."""
RESERVED = ("none", REASON)

VERDICT = {"type": "string", "enum": ["A", "B", "C"]}


def _object_of(**properties: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    named = {"name": "verdict", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": named}


RESPONSE_FORMAT = _object_of(reason={"type": "string"}, verdict=VERDICT)
"""The object that a prompt with ``verdict = "json"`` asks for."""

VERDICT_ONLY = _object_of(verdict=VERDICT)
"""The same without a reason: a small model may not find the end of one."""


def frame_mark(*shown: str) -> str:
    """Return the mark of the lines that frame these texts: a code that is found in none of them.

    The digest of all texts in their order, so the same ballot always has the same mark.
    Nobody needs a secret: whoever writes a mark into a text changes the digest, and a digest that
    does occur in a text is passed over for the next one, so no text can hold its own mark.
    """
    texts = "\x1f".join(map(_sha256, shown))
    seen = unicodedata.normalize("NFKC", "\n".join(shown)).casefold()
    marks = (_sha256(f"{texts}\x1f{n}")[:MARK_DIGITS] for n in itertools.count())
    return next(mark for mark in marks if mark not in seen)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def wording_digest(kind: str, verdict: str, system: str, user: str) -> str:
    """Return a short digest of a judge prompt's wording."""
    return hashlib.sha256("\x1f".join((kind, verdict, system, user)).encode()).hexdigest()[:12]


class Prompt(BaseModel):
    """An instruction to a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: str
    kind: Literal["pair", "single", "binary", "rubric", "labels"]
    """Two answers are compared (``pair``); or one gets a grade (``single``), passes or fails
    (``binary``), gets a grade for each criterion (``rubric``), or a set of labels (``labels``)."""
    source: str = Field(description="Write where its words come from, such as 'my own' or a link")
    verdict: (
        Literal["tag", "json", "ratings"] | Pattern | Pointer | RatingPattern | RatingPointer
    ) = "tag"
    """How the reply is read: ``[[A]]``, ``[[7]]``, ``[[pass]]``, ``[[clarity: 4]]`` or
    ``[[label, label]]`` (``tag``); an object of the form that ``params`` asks for (``json``); the
    grades of both answers, ``[[7, 5]]`` (``ratings``); or what a pattern or pointer finds."""
    reason: bool = True
    """Whether that object begins with a reason."""
    response_format: dict[str, Any] | None = None
    """What a request says of the form of the reply, for a verdict by pattern or pointer."""
    scale: Scale | None = None
    """Scale of the grades, for kind ``single`` and verdict ``ratings``."""
    criteria: tuple[Criterion, ...] = ()
    """Criteria of a rubric."""
    labels: tuple[str, ...] = ()
    """All labels that may be chosen."""
    passes: str = "pass"
    """What a judge writes if an answer passes; and ``fails`` if not."""
    fails: str = "fail"
    system: str = ""
    user: str
    """Both texts may have placeholders."""
    variants: dict[str, Variant] = {}
    """Other wordings of the same meaning, by name; ``--reworded`` asks about control pairs in these
    words too."""

    @field_validator("verdict", mode="before")
    @classmethod
    def _one_kind(cls, given: object, info: ValidationInfo) -> object:
        """Choose the reading by its key, so that errors are about that one alone."""
        if not isinstance(given, dict):
            return given
        if "kind" not in info.data:
            return "tag"  # Without a valid kind nothing can be said of the verdict.
        named = {"pattern", "pointer"} & {*given}
        if len(named) != 1:
            raise ValueError("it needs the key 'pattern' or the key 'pointer', and not both")
        if info.data["kind"] == "pair":
            return Pattern(**given) if named == {"pattern"} else Pointer(**given)
        return RatingPattern(**given) if named == {"pattern"} else RatingPointer(**given)

    @model_validator(mode="after")
    def _has_its_places(self) -> Self:
        require_places(self.kind, {"system": self.system, "user": self.user})
        return self

    @model_validator(mode="after")
    def _form_is_its_own(self) -> Self:
        if self.response_format is not None and isinstance(self.verdict, str):
            raise ValueError(
                f"response_format is set by verdict {self.verdict!r}. Leave it out, or read the "
                "verdict by a pattern or pointer"
            )
        if self.verdict == "ratings" and self.kind != "pair":
            raise ValueError(f"verdict 'ratings' is for kind 'pair', not {self.kind!r}. Use 'tag'")
        require_tables(self)
        if self.pointwise:
            self.grading.check_reading()
        return self

    @model_validator(mode="after")
    def _variants_reword(self) -> Self:
        require_rewording(self)
        return self

    def reworded(self, name: str) -> "Prompt":
        """Return the prompt in the words of a variant."""
        given = self.variants[name].model_dump(exclude_none=True)
        own = {field: getattr(self, field) for field in self.model_fields_set - {"variants"}}
        return Prompt(**{**own, **given})

    @property
    def pointwise(self) -> bool:
        """Tell whether the prompt shows one answer."""
        return self.kind != "pair"

    @cached_property
    def grading(self) -> Grading:
        """Return what a pointwise prompt asks for, and how it is read."""
        shared = {"reason", "scale", "criteria", "labels", "passes", "fails"}
        given = {name: getattr(self, name) for name in shared}
        return Grading(kind=self.kind, form=self.verdict, **given)

    @property
    def places(self) -> set[str]:
        """Return the names of its placeholders."""
        return places_in(self.system, self.user)

    @property
    def verdict_form(self) -> str:
        """Return in words how the verdict is read: ``tag``, ``json``, or the reading as JSON."""
        if self.pointwise:
            asked = self.grading.model_dump(exclude_defaults=True, exclude={"kind", "form"})
            form = self.verdict if isinstance(self.verdict, str) else self.verdict.model_dump()
            return json.dumps({"form": form, **asked}, sort_keys=True)
        if self.verdict == "ratings" and self.scale:
            return json.dumps({"form": "ratings", "scale": self.scale.model_dump()}, sort_keys=True)
        if isinstance(self.verdict, str):
            return self.verdict
        return json.dumps(self.verdict.model_dump(), sort_keys=True)

    @property
    def reading(self) -> tuple[str, ...]:
        """Return what identifies the way to read replies; empty for bundled ways to read a pair.

        It is a part of a ballot's id: a vote holds what was read.
        """
        usual = self.kind == "pair" and self.verdict in ("tag", "json")
        return () if usual else (self.verdict_form,)

    @property
    def digest(self) -> str:
        """Return what identifies its wording and the way to read replies."""
        form = self.verdict_form
        if self.response_format is not None:
            form += json.dumps(self.response_format, sort_keys=True)
        return wording_digest(self.kind, form, self.system, self.user)

    @property
    def params(self) -> dict[str, Any]:
        """Parameters that the form of the verdict adds to a request."""
        form = self.response_format
        if self.verdict == "json" and self.pointwise:
            form = _object_of(**self.grading.json_schema)
        elif self.verdict == "json":
            form = RESPONSE_FORMAT if self.reason else VERDICT_ONLY
        return {"response_format": form} if form is not None else {}

    @property
    def replies(self) -> dict[str, str]:
        """Reply to this prompt for each verdict, as simulated judges give it; none: the usual."""
        if self.verdict == "ratings" and self.scale:
            low, high = f"{self.scale.low:g}", f"{self.scale.high:g}"
            return {"A": f"[[{high},{low}]]", "B": f"[[{low},{high}]]", "C": f"[[{low},{low}]]"}
        if not isinstance(self.verdict, Pattern | Pointer):
            return {}
        return {tag: self.verdict.reply(self.verdict.text_of(to)) for tag, to in VERDICTS.items()}

    def read(self, reply: str) -> Choice:
        """Return the choice that a reply to a pair states."""
        if self.verdict == "json":
            return parse_json(reply, reason=self.reason)
        if self.verdict == "ratings" and self.scale:
            return parse_two(reply, self.scale)[0]
        if isinstance(self.verdict, Pattern | Pointer):
            return self.verdict.read(reply)
        return parse(reply)

    def rate(self, reply: str) -> Rated:
        """Return the choice and the rating that a reply states, of a pair maybe two grades."""
        if self.pointwise:
            return self.grading.read(reply)
        if self.verdict == "ratings" and self.scale:
            return Rated(*parse_two(reply, self.scale))
        return Rated(self.read(reply), {})

    def messages(
        self,
        question: str,
        first: str,
        second: str = "",
        before: str = "",
        *,
        reference: str | None = None,
        context: str | None = None,
        earlier: Mapping[str, str] = {},
    ) -> list[dict[str, str]]:
        """Return the messages to a judge, with the places filled.

        ``first`` is the answer of a pointwise prompt. ``before`` is a system message of the judge's
        own, sent as it is. ``earlier`` has the texts of the places for an earlier turn. ``{mark}``
        becomes ``frame_mark`` of all texts.
        """
        answers = (first,) if self.pointwise else (first, second)
        names = ("answer",) if self.pointwise else ("answer_a", "answer_b")
        texts = {"question": question, **dict(zip(names, answers, strict=True))}
        places = self.places
        others = {"reference": reference or "", "context": context or ""}
        others |= dict.fromkeys(sorted(TURN_PLACES), "") | dict(earlier)
        others = {name: text for name, text in others.items() if name in places}
        if "mark" in places:
            texts["mark"] = frame_mark(question, *answers, *others.values())
        texts |= others | self._lists()
        words = "\n\n".join(filter(None, (before, filled(self.system, texts))))
        system = [{"role": "system", "content": words}] if words else []
        return [*system, {"role": "user", "content": filled(self.user, texts)}]

    def _lists(self) -> dict[str, str]:
        """Return the texts of the places for criteria and labels."""
        criteria = (
            f"- {each.name} ({each.low:g} to {each.high:g}){f': {each.about}' * bool(each.about)}"
            for each in self.criteria
        )
        labels = (f"- {label}" for label in self.labels)
        return {"criteria": "\n".join(criteria), "labels": "\n".join(labels)}


def require_tables(prompt: Prompt) -> None:
    """Reject a prompt without the keys that its kind needs, or with keys of another kind.

    A ValueError gives the key and the kind that it belongs to.
    """
    kinds = {"scale": "single", "criteria": "rubric", "labels": "labels"}
    wanted = {key for key, kind in kinds.items() if prompt.kind == kind}
    if prompt.verdict == "ratings":
        wanted = {"scale"}
    given = {key for key in kinds if getattr(prompt, key)}
    if prompt.kind != "binary":
        usual = Prompt.model_fields
        given |= {n for n in ("passes", "fails") if getattr(prompt, n) != usual[n].default}
        kinds |= {"passes": "binary", "fails": "binary"}
    if missing := wanted - given:
        key = min(missing)
        if getattr(prompt, key) == () and key in prompt.model_fields_set:
            raise ValueError(f"the key {key!r} is empty, but kind {prompt.kind!r} needs {key}")
        raise ValueError(f"kind {prompt.kind!r} needs the key {key!r}")
    if strange := given - wanted:
        name = min(strange)
        raise ValueError(
            f"the key {name!r} belongs to kind {kinds[name]!r}, and this is {prompt.kind!r}. "
            "Leave it out, or change the kind"
        )
    _require_names(prompt)


def _require_names(prompt: Prompt) -> None:
    """Reject names of criteria and labels that a reply could not state."""
    for what, names in (
        ("criteria", [each.name for each in prompt.criteria]),
        ("labels", [*prompt.labels]),
        ("texts for pass and fail", [prompt.passes, prompt.fails]),
    ):
        if len({name.strip().casefold() for name in names}) < len(names):
            raise ValueError(f"two {what} have the same name. Keep one of them")
        barred = [
            name for name in names if not NAMED.fullmatch(name) or name.casefold() in RESERVED
        ]
        if barred:
            raise ValueError(
                f"{what}: {min(barred)!r} cannot be found in a reply. Use one line of at most 64 "
                f"characters without commas and brackets that is not {' or '.join(RESERVED)}"
            )
