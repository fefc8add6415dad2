"""Paraphrases: phrase swaps and lead-ins that keep the meaning."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tasks.kit.random_numbers import pick, shuffle
from tasks.rewriting.phrases import LINKING, NEUTRAL_LEADS, SAFE_AFTER, SAFE_BEFORE, SWAPS
from tasks.rewriting.sentences import led
from tasks.rewriting.text_splitting import spans, words

MOST_LEADS = 2


class Edit(NamedTuple):
    """A span of text and its replacement."""

    start: int
    end: int
    text: str


def reworded(text: str, perturbed: str, key: tuple[object, ...]) -> Iterator[str]:
    """Yield paraphrases with about as many edits as ``perturbed`` has, then with fewer."""
    wanted = max(1, (Counter(words(text)) - Counter(words(perturbed))).total())
    swaps = shuffle(_swaps(text), *key, "swaps")[:wanted]
    leads = shuffle(_leads(text, key), *key, "leads")[: min(wanted - len(swaps), MOST_LEADS)]
    for edits in (swaps + leads, swaps, swaps[:1], leads[:1]):
        if edits:
            yield _applied(text, edits)
    for edit in shuffle(_swaps(text) + _leads(text, key), *key, "single")[:20]:
        yield _applied(text, [edit])


def _applied(text: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for edit in sorted(edits):
        if edit.start >= at:
            parts += [text[at : edit.start], edit.text]
            at = edit.end
    return "".join(parts) + text[at:]


def _pattern(phrase: str) -> str:
    before, after = SAFE_BEFORE.get(phrase, ""), SAFE_AFTER.get(phrase, "")
    left = r"(?<![\w'-])" if phrase[0].isalpha() else ""
    right = r"(?![\w'-])" if phrase[-1].isalpha() else ""
    return f"{before}{left}{re.escape(phrase)}{right}{after}"


SWAP = re.compile("|".join(f"(?:{_pattern(phrase)})" for phrase in SWAPS), re.IGNORECASE)


def _swaps(text: str) -> list[Edit]:
    return [
        Edit(match.start(), match.end(), _cased(match.group(), SWAPS[match.group().lower()]))
        for match in SWAP.finditer(text)
        if match.group().lower() in SWAPS
    ]


def _cased(old: str, new: str) -> str:
    if old.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new


def _leads(text: str, key: tuple[object, ...]) -> list[Edit]:
    """Return lead-ins for statements: sentences that end with a full stop and have no lead-in."""
    edits = []
    for start, end in spans(text):
        sentence = text[start:end]
        if not sentence.endswith(".") or not sentence[0].isupper():
            continue
        if words(sentence)[0] not in LINKING:
            lead = pick(NEUTRAL_LEADS, *key, start, "lead")
            edits.append(Edit(start, end, led(lead, sentence)))
    return edits
