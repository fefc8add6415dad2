"""Placeholders of judge prompts: which there are, and how they are filled."""

import re
from collections.abc import Mapping

from tasks.judging.turns import PAIR_TURN_PLACES, SINGLE_TURN_PLACES, TURN_PLACES

PAIR_PLACES = {"question": False, "answer_a": True, "answer_b": True}
SINGLE_PLACES = {"question": False, "answer": True}
OTHER_PLACES = {"reference": False, "context": False, "mark": False}
"""Placeholder -> whether a prompt must have it."""
LISTS = {"rubric": "criteria", "labels": "labels"}
"""Kind of prompt -> placeholder of its own, which is replaced by a list."""
KNOWN = {*PAIR_PLACES, *SINGLE_PLACES, *OTHER_PLACES, *LISTS.values(), *TURN_PLACES}
PLACE = re.compile(
    rf"(?<!\{{)\{{((?:{'|'.join(sorted(KNOWN))})(?=\}})|[a-z_][a-z0-9_]*(?=\}}(?!\}})))\}}"
)
"""A placeholder. A word in double braces is not one; an unknown word at the end of an object in
JSON, as in ``{"a": {b}}``, is not one either."""
PLACE_OR_ESCAPE = re.compile(rf"{PLACE.pattern}|\{{(\{{[A-Za-z_][A-Za-z0-9_]*\}})\}}")
"""A placeholder, or a word in double braces, which is sent in single ones."""


def places_of(kind: str) -> dict[str, bool]:
    """Return the placeholders of a kind of prompt, and whether it must have them."""
    shown = PAIR_PLACES if kind == "pair" else SINGLE_PLACES
    turns = PAIR_TURN_PLACES if kind == "pair" else SINGLE_TURN_PLACES
    own = (LISTS[kind],) if kind in LISTS else ()
    return shown | OTHER_PLACES | dict.fromkeys((*turns, *own), False)


def places_in(*texts: str) -> set[str]:
    """Return the names of the placeholders in texts."""
    return {name for text in texts for name in PLACE.findall(text)}


def require_places(kind: str, texts: Mapping[str, str]) -> None:
    """Reject texts with an unknown placeholder, or without one that the kind needs.

    A ValueError gives the key of the text, all problems, and what is allowed.
    """
    allowed = places_of(kind)
    strange = [
        f"{key}: {{{name}}} is not a placeholder"
        for key, text in texts.items()
        for name in sorted(places_in(text) - {*allowed})
    ]
    there = places_in(*texts.values())
    missing = [
        f"{{{name}}} is missing" for name, needed in allowed.items() if needed and name not in there
    ]
    if problems := strange + missing:
        known = ", ".join(f"{{{name}}}" for name in allowed)
        raise ValueError(
            f"{'; '.join(problems)}. Placeholders: {known}. Write other words in double braces"
        )


def filled(template: str, texts: Mapping[str, str]) -> str:
    """Fill the placeholders in one pass, so that no text is read as a placeholder.

    A word in several braces loses one pair of them; other braces stay.

    >>> filled('{answer} {{answer}} {"a": {"b": 1}}', {"answer": "{{x}}"})
    '{{x}} {answer} {"a": {"b": 1}}'
    """
    return PLACE_OR_ESCAPE.sub(lambda found: texts[found[1]] if found[1] else found[2], template)
