"""Judge prompts as data, one per TOML file."""

import hashlib
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tasks._catalogue import Catalogue, tables

PLACE = re.compile(r"\{(question|answer_a|answer_b)\}")


VERDICT = {"type": "string", "enum": ["A", "B", "C"]}


def _object_of(**properties: Any) -> dict[str, Any]:
    schema = {
        "type": "object", "properties": properties, "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip
    named = {"name": "verdict", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": named}


RESPONSE_FORMAT = _object_of(reason={"type": "string"}, verdict=VERDICT)
"""The object that a prompt with ``verdict = "json"`` asks for."""

VERDICT_ONLY = _object_of(verdict=VERDICT)
"""The same without a reason: a small model may not find the end of one."""


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
        """Return what tells its wording from others, as ``mart.numbers`` does."""
        text = "\x1f".join((self.kind, self.verdict, self.system, self.user))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def params(self) -> dict[str, Any]:
        """What the form of the verdict adds to a request."""
        form = RESPONSE_FORMAT if self.reason else VERDICT_ONLY
        return {"response_format": form} if self.verdict == "json" else {}

    def messages(
        self, question: str, first: str, second: str, before: str = ""
    ) -> list[dict[str, str]]:
        """Fill the places in one pass, so that no text is read as a place.

        ``before`` is a system message of the judge's own.
        """
        texts = {"question": question, "answer_a": first, "answer_b": second}
        user = PLACE.sub(lambda place: texts[place[1]], self.user)
        words = "\n\n".join(filter(None, (before, self.system)))
        system = [{"role": "system", "content": words}] if words else []
        return [*system, {"role": "user", "content": user}]


PROMPTS: Catalogue[Prompt] = tables(
    "judge prompt", Path(__file__).parent, lambda name, data: Prompt(prompt=name, **data)
)
