"""Judge prompts as data, one per TOML file."""

import hashlib
import itertools
import re
import unicodedata
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tasks.kit.catalogue import Catalogue, tables

PLACE = re.compile(r"\{(question|answer_a|answer_b|mark)\}")
MARK_DIGITS = 12

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
    verdict: Literal["tag", "json"] = "tag"
    """``[[A]]`` at the end of the reply, or an object of ``RESPONSE_FORMAT``."""
    reason: bool = True
    """Whether that object begins with a reason."""
    system: str
    user: str

    @property
    def digest(self) -> str:
        """Return what tells its wording from others."""
        return wording_digest(self.kind, self.verdict, self.system, self.user)

    @property
    def params(self) -> dict[str, Any]:
        """What the form of the verdict adds to a request."""
        form = RESPONSE_FORMAT if self.reason else VERDICT_ONLY
        return {"response_format": form} if self.verdict == "json" else {}

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


PROMPTS: Catalogue[Prompt] = tables(
    "judge prompt", Path(__file__).parent, lambda name, data: Prompt(prompt=name, **data)
)
