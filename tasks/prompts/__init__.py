"""Judge prompts as data, one per TOML file."""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tasks._catalogue import Catalogue, tables

PLACE = re.compile(r"\{(question|answer_a|answer_b)\}")


class Prompt(BaseModel):
    """An instruction to a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: str
    kind: Literal["pair"]
    source: str
    system: str
    user: str

    def messages(self, question: str, first: str, second: str) -> list[dict[str, str]]:
        """Fill the places in one pass, so that no text is read as a place."""
        texts = {"question": question, "answer_a": first, "answer_b": second}
        user = PLACE.sub(lambda place: texts[place[1]], self.user)
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": user}]


PROMPTS: Catalogue[Prompt] = tables(
    "judge prompt", Path(__file__).parent, lambda name, data: Prompt(prompt=name, **data)
)
