"""Parse the verdict in a judge's reply."""

import json
import re
import string
import unicodedata
from typing import Any

from schemas.keys import Choice

TAG = re.compile(r"\[\[[\s\xa0]*(a|b|c|tie)[\s\xa0]*\]\]", re.IGNORECASE | re.ASCII)
MEANING: dict[str, Choice] = {"a": "first", "b": "second", "c": "tie", "tie": "tie"}

VERDICTS: dict[str, Choice] = {"A": "first", "B": "second", "C": "tie"}
"""What ``verdict`` may be in an object."""

FENCE = re.compile(r"\A```(?:json)?\s*|\s*```\Z", re.IGNORECASE)

OPENING = 600
"""Characters in which a refusal must begin; further on, a judge rather quotes an answer."""

# A sentence of the judge's own, so that "answer A says: I cannot help" is no refusal.
REFUSAL = re.compile(
    r"""
    (?: \A | [.!?] ) [\s*_"]{0,9}
    (?: (?: (?:i\ am|i'm)\ (?:so\ |very\ )?sorry | sorry | apologies | unfortunately
          | as\ an\ ai [^.,\n]{0,40} ) [,.;]? \s (?:but\ )? ){0,3}
    i (?:
        (?: \ am | 'm )\ not\ familiar\ with
      | (?: \ can't | \ cannot | \ can\ not | \ won't | \ will\ not | \ must\ decline\ to
          | \ decline\ to | \ refuse\ to | (?: \ am | 'm )\ (?: unable | not\ able )\ to )
        \ (?: assist | help | comply | answer | compare | judge | evaluate | assess | choose
             | rate | rank | decide | engage | take\ part | fulfill? | provide\ (?: a | any ) )
    )\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Refusals ("I'm sorry, but I can't help with that") and "I am not familiar with ..."."""


def parse(reply: str) -> Choice:
    """Return the choice that a reply states, by all its ``[[A]]``, ``[[B]]``, ``[[C]]`` tags.

    White space inside the brackets is ignored. Tags that differ count only if one of them ends the
    reply.
    """
    found: set[Choice] = set()
    last: re.Match[str] | None = None
    for last in TAG.finditer(reply):
        found.add(MEANING[last[1].lower()])
    if last is None:
        return "abstain" if refuses(reply) else "invalid"
    if len(found) == 1:
        return found.pop()
    return MEANING[last[1].lower()] if _ends(reply, last.end()) else "ambiguous"


def parse_json(reply: str, *, reason: bool = True) -> Choice:
    """Return the choice in a reply that must be the object asked for, fenced or not.

    It holds a ``verdict`` and, if asked for, a ``reason``; each once, and nothing else.
    """
    found = parsed_object(reply)
    if found is None:
        return "abstain" if refuses(reply) else "invalid"
    names = {"reason", "verdict"} if reason else {"verdict"}
    whole = isinstance(found, dict) and found.keys() == names
    if not whole or not all(isinstance(text, str) for text in found.values()):
        return "invalid"
    return VERDICTS.get(found["verdict"], "invalid")


def parsed_object(reply: str) -> Any:
    """Return what a reply is as JSON, fenced or not; None if it is no JSON."""
    try:
        return json.loads(FENCE.sub("", reply.strip()), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object, or an empty one if a name occurs twice in it."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else {}


def _ends(reply: str, start: int) -> bool:
    return all(_is_punctuation(reply[at]) for at in range(start, len(reply)))


def _is_punctuation(character: str) -> bool:
    return (
        character.isspace()
        or character in string.punctuation
        or unicodedata.category(character).startswith("P")
    )


def refuses(reply: str) -> bool:
    """Tell whether a reply begins with a refusal."""
    return REFUSAL.search(reply[:OPENING].replace("\u2019", "'")) is not None
