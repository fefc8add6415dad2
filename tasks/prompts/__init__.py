"""Judge prompts as data, one per TOML file."""

from functools import partial
from pathlib import Path
from typing import Any

from tasks.kit.catalogue import Catalogue, tables
from tasks.kit.user_folder import own_folder
from tasks.prompting.fastchat import prompts_of
from tasks.prompting.prompt import Prompt
from tasks.validation.toml_tables import entry

REWORDED = "~"
"""Separates the name of a prompt from the name of its variant."""

AT = "@"
"""Separates a prompt's name from its digest."""


def _prompt(name: str, data: dict[str, Any]) -> Prompt:
    return entry(Prompt, "the file", data, show_values=True, prompt=name)


PROMPTS: Catalogue[Prompt] = tables(
    "judge prompt",
    Path(__file__).parent,
    _prompt,
    own=partial(own_folder, "prompts"),
    split={".jsonl": prompts_of},
)


def without_digest(label: str) -> str:
    """Return a judge prompt's name without the digest of its wording."""
    return label.rpartition(AT)[0] or label


def label_of(name: str) -> str:
    """Return the name of a judge prompt as votes and results have it.

    A bundled prompt never changes its wording; one of the user's own may, so its digest is a part
    of its name, and votes under another wording stay apart.

    Raise LookupError if there is no such prompt, or the name has the digest of another wording.
    """
    known = without_digest(name)
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
    return PROMPTS[without_digest(label_of(label))]


def variants_of(label: str) -> dict[str, Prompt]:
    """Return the variants of a judge prompt by name.

    Variants of a prompt of the user's own are named with a digest of their words, as the prompt is.
    """
    prompt = prompt_of(label)
    own = without_digest(label) in PROMPTS.own
    found = {name: prompt.reworded(name) for name in prompt.variants}
    return {f"{name}{AT}{each.digest}" if own else name: each for name, each in found.items()}


def is_known(label: str) -> bool:
    """Tell whether a judge prompt is there, with this wording."""
    try:
        label_of(label)
    except LookupError:
        return False
    return True
