"""Judge prompts as data, one per TOML file."""

import hashlib
import itertools
import json
import re
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from tasks.judging.readings import Pattern, Pointer
from tasks.judging.verdict_parser import VERDICTS, Choice, parse, parse_json
from tasks.kit.catalogue import Catalogue, entry, tables
from tasks.kit.home import own_folder

PLACE = re.compile(r"(?<!\{)\{([a-z_][a-z0-9_]*)\}(?!\})")
"""A placeholder. A word in double braces is not one."""
PLACES = {"question": False, "answer_a": True, "answer_b": True, "mark": False}
"""Placeholder -> whether a prompt must have it."""
MARK_DIGITS = 12

AT = "@"
"""Separates a prompt's name from its digest."""

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


def frame_mark(question: str, first: str, second: str) -> str:
    """Return the mark of the lines that frame these texts: a code that is found in none of them.

    The digest of all three texts in their order, so the same ballot always has the same mark.
    Nobody needs a secret: whoever writes a mark into a text changes the digest, and a digest that
    does occur in a text is passed over for the next one, so no text can hold its own mark.
    """
    texts = "\x1f".join(map(_sha256, (question, first, second)))
    seen = unicodedata.normalize("NFKC", f"{question}\n{first}\n{second}").casefold()
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
    kind: Literal["pair"]
    source: str
    verdict: Literal["tag", "json"] | Pattern | Pointer = "tag"
    """``[[A]]`` at the end of the reply, an object of ``RESPONSE_FORMAT``, or the text that a
    pattern or a JSON pointer finds."""
    reason: bool = True
    """Whether that object begins with a reason."""
    response_format: dict[str, Any] | None = None
    """What a request says of the form of the reply, for a verdict by pattern or pointer."""
    system: str = ""
    user: str

    @field_validator("verdict", mode="before")
    @classmethod
    def _one_kind(cls, given: object) -> object:
        """Choose the reading by its key, so that errors are about that one alone."""
        if not isinstance(given, dict):
            return given
        named = {"pattern", "pointer"} & {*given}
        if len(named) != 1:
            raise ValueError("it needs the key 'pattern' or the key 'pointer', and not both")
        return Pattern(**given) if named == {"pattern"} else Pointer(**given)

    @field_validator("user")
    @classmethod
    def _with_its_places(cls, user: str) -> str:
        places = set(PLACE.findall(user))
        strange = [f"{{{name}}} is not a placeholder" for name in sorted(places - {*PLACES})]
        missing = [
            f"{{{name}}} is missing"
            for name, needed in PLACES.items()
            if needed and name not in places
        ]
        if problems := strange + missing:
            known = ", ".join(f"{{{name}}}" for name in PLACES)
            raise ValueError(
                f"{'; '.join(problems)}. Placeholders: {known}. Write other words in double braces"
            )
        return user

    @model_validator(mode="after")
    def _form_is_its_own(self) -> Self:
        if self.response_format is not None and isinstance(self.verdict, str):
            raise ValueError(
                f"response_format is set by verdict {self.verdict!r}. Leave it out, or read the "
                "verdict by a pattern or pointer"
            )
        return self

    @property
    def verdict_form(self) -> str:
        """Return in words how the verdict is read: ``tag``, ``json``, or the reading as JSON."""
        if isinstance(self.verdict, str):
            return self.verdict
        return json.dumps(self.verdict.model_dump(), sort_keys=True)

    @property
    def digest(self) -> str:
        """Return what tells its wording, and how it is read, from others."""
        form = self.verdict_form
        if self.response_format is not None:
            form += json.dumps(self.response_format, sort_keys=True)
        return wording_digest(self.kind, form, self.system, self.user)

    @property
    def params(self) -> dict[str, Any]:
        """What the form of the verdict adds to a request."""
        form = self.response_format
        if self.verdict == "json":
            form = RESPONSE_FORMAT if self.reason else VERDICT_ONLY
        return {"response_format": form} if form is not None else {}

    @property
    def replies(self) -> dict[str, str]:
        """Reply to this prompt for each verdict, as simulated judges give it; none: the usual."""
        if isinstance(self.verdict, str):
            return {}
        return {tag: self.verdict.reply(self.verdict.text_of(to)) for tag, to in VERDICTS.items()}

    def read(self, reply: str) -> Choice:
        """Return the choice that a reply states."""
        if self.verdict == "tag":
            return parse(reply)
        if self.verdict == "json":
            return parse_json(reply, reason=self.reason)
        return self.verdict.read(reply)

    def messages(
        self, question: str, first: str, second: str, before: str = ""
    ) -> list[dict[str, str]]:
        """Fill the places in one pass, so that no text is read as a place.

        ``before`` is a system message of the judge's own. ``{mark}`` becomes ``frame_mark``.
        """
        texts = {"question": question, "answer_a": first, "answer_b": second}
        if "{mark}" in self.user:
            texts["mark"] = frame_mark(question, first, second)
        user = PLACE.sub(lambda place: texts[place[1]], self.user)
        words = "\n\n".join(filter(None, (before, self.system)))
        system = [{"role": "system", "content": words}] if words else []
        return [*system, {"role": "user", "content": user}]


def _prompt(name: str, data: dict[str, Any]) -> Prompt:
    return entry(Prompt, "the file", data, prompt=name)


PROMPTS: Catalogue[Prompt] = tables(
    "judge prompt", Path(__file__).parent, _prompt, own=partial(own_folder, "prompts")
)


def label_of(name: str) -> str:
    """Return the name of a judge prompt as votes and results have it.

    A bundled prompt never changes its wording; one of the user's own may, so its digest is a part
    of its name, and votes under another wording stay apart.

    Raises
    ------
    LookupError
        If there is no such prompt, or the name has the digest of another wording.
    """
    known = name.rpartition(AT)[0] or name
    PROMPTS.require(known)
    label = f"{known}{AT}{PROMPTS[known].digest}" if known in PROMPTS.own else known
    if name not in {known, label}:
        raise LookupError(
            f"the judge prompt {known!r} has changed: it is {label} now, not {name}. Use "
            f"{known!r}, or restore {PROMPTS.own.get(known, 'its file')}."
        )
    return label


def prompt_of(label: str) -> Prompt:
    """Return the judge prompt with this name, or with this name and digest.

    Raises
    ------
    LookupError
        As :func:`label_of`.
    """
    return PROMPTS[label_of(label).rpartition(AT)[0] or label]


def is_known(label: str) -> bool:
    """Tell whether a judge prompt is there, with this wording."""
    try:
        label_of(label)
    except LookupError:
        return False
    return True
