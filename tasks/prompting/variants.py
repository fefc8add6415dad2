"""Variants of a judge prompt: other words of the same meaning."""

import re
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from tasks.prompting.prompt import Prompt

NAME = re.compile(r"[a-z0-9_]{1,32}")


class Variant(BaseModel):
    """A prompt in other words of the same meaning; texts left out are as in the prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str | None = None
    user: str | None = None


def require_rewording(prompt: "Prompt") -> None:
    """Reject variants that are not the same prompt in other words.

    A ValueError gives the name of the variant.
    """
    wordings = {(prompt.system, prompt.user): "the prompt itself"}
    for name in prompt.variants:
        if not NAME.fullmatch(name):
            raise ValueError(
                f"the name of variant {name!r:.40} must be 1 to 32 lower-case letters, digits and "
                "'_'"
            )
        worded = prompt.reworded(name)
        if strange := sorted(worded.places ^ prompt.places):
            raise ValueError(
                f"variant {name!r} and the prompt itself differ in {{{strange[0]}}}. Show the same "
                "texts in both"
            )
        if twin := wordings.get((worded.system, worded.user)):
            raise ValueError(
                f"variant {name!r} has the words of {twin}. Give it a system or user text of its "
                "own"
            )
        wordings[worded.system, worded.user] = f"variant {name!r}"
