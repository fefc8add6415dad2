"""Content of an answer without decoration, and counts of its decoration."""

import re
from functools import lru_cache
from typing import NamedTuple

from tasks.rewriting.phrases import NEUTRAL, NEUTRAL_LEADS, NOTE_HEAD, PADDING_LEADS, SWAPS
from tasks.rewriting.text_splitting import (
    EMOJI,
    FENCE,
    IMAGE,
    LINK,
    MARKER,
    SHORTCODE,
    TAG,
    plain,
    sentences,
    words,
)

CACHED_CHARACTERS = 20_000
"""Longer texts are not cached, to bound memory."""
CACHED_TEXTS = 4096

Rules = dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]

TAIL = re.compile(
    r"\n[#>*_\- \t]{0,12}(?:references?|sources?|bibliography|works[ ]cited)"
    r"[*_ \t]{0,8}(?::|\n|$)"
    r"|(?:^|(?<=[.!?)]\s))(?:references?|sources?):\s",
    re.IGNORECASE,
)
TAIL_HINTS = ("eference", "ource", "ibliograph", "orks cited", "EFERENCE", "OURCE", "ORKS C")
CITATION = re.compile(
    r"\([ ]{0,3}[A-Z][^()\n]{0,200}?,[ ]{0,3}(?:n\.[ ]?d\.|(?:1[5-9]|20)\d\d[a-z]?)[^()\n]{0,80}\)"
    r"|\([ ]{0,3}[A-Z][^()\n]{0,200}\((?:1[5-9]|20)\d\d[a-z]?\)[^()\n]{0,200}"
    r"(?:\([^()\n]{0,40}\)[^()\n]{0,200})?\)"
    r"|\[\d{1,3}(?:[ ]{0,2}[,\u2013-][ ]{0,2}\d{1,3}){0,9}\]"
)
NOTE = re.compile(rf"\n\n{NOTE_HEAD} [^\n]{{1,40}}\n[^\n]*\Z")
URL = re.compile(r"(?:https?://|www\.|doi:[ ]?)\S+", re.IGNORECASE)
SPAN = re.compile(
    r"\*\*[^*\n]{1,200}\*\*|__[^_\n]{1,200}__|`[^`\n]{1,200}`|~~[^~\n]{1,200}~~"
    r"|(?<![\w*])\*[^*\s][^*\n]{0,200}\*(?![\w*])|(?<![\w_])_[^_\s][^_\n]{0,200}_(?![\w_])"
)
TABLE = re.compile(r"^[ \t]{0,8}\|[^\n]{0,500}\|[ \t]{0,8}$", re.MULTILINE)


class Decorations(NamedTuple):
    """Counts of an answer's decorations, and of its words."""

    references: int
    """Entries of a reference list, citations and links."""
    markup: int
    """Formatted spans, headings, list items, table rows, tags; outside the reference list."""
    emoji: int
    padding: int
    """Sentences that repeat an earlier one."""
    words: int


def canonical(text: str) -> str:
    """Return the content words of ``text``; an answer and its shams have the same.

    Removed: markup, emoji, references, repeated sentences, neutral sentences, lead-ins.
    Idempotent.

    >>> canonical("**Put simply:** it doesn't move! 🌍 (Smith, 2019)")
    'it doesn t move'
    """
    return _canonical(text) if len(text) <= CACHED_CHARACTERS else _canonical.__wrapped__(text)


def features(text: str) -> Decorations:
    """Count references, markup, emoji, repeated sentences and words."""
    return _features(text) if len(text) <= CACHED_CHARACTERS else _features.__wrapped__(text)


@lru_cache(maxsize=CACHED_TEXTS)
def _canonical(text: str) -> str:
    kept: list[str] = []
    for sentence in dict.fromkeys(_statements(text)):
        kept += sentence
    return " ".join(_normalised(kept))


@lru_cache(maxsize=CACHED_TEXTS)
def _features(text: str) -> Decorations:
    body, tail = _split_references(text)
    statements = _statements(text)
    entries = sum(bool(line.strip(" \t-*•#")) for line in tail.split("\n")[1:])
    return Decorations(
        references=(entries or bool(tail)) + _count((CITATION, URL), body),
        markup=_count((SPAN, MARKER, LINK, IMAGE, TAG, TABLE, FENCE), body),
        emoji=_count((EMOJI, SHORTCODE), text),
        padding=len(statements) - len(set(statements)),
        words=len(words(plain(text))),
    )


def _count(patterns: tuple[re.Pattern[str], ...], text: str) -> int:
    return sum(1 for pattern in patterns for _ in pattern.finditer(text))


def _statements(text: str) -> list[tuple[str, ...]]:
    body, _ = _split_references(text)
    if NOTE_HEAD in body:
        body = NOTE.sub("", body)
    if "(" in body or "[" in body:
        body = CITATION.sub(" ", body)
    if ":" in body or "www" in body.casefold():
        body = URL.sub(" ", body)
    settled = (tuple(_normalised(words(sentence))) for sentence in sentences(plain(body)))
    return [statement for statement in settled if statement]


def _split_references(text: str) -> tuple[str, str]:
    if not any(hint in text for hint in TAIL_HINTS):
        return text, ""
    match = TAIL.search(text)
    if match is None:
        return text, ""
    return text[: match.start()], text[match.start() :].lstrip("\n")


def _rules(pairs: dict[str, str]) -> Rules:
    rules: Rules = {}
    for old, new in pairs.items():
        source = tuple(words(old))
        rules.setdefault(source[0], []).append((source, tuple(words(new))))
    return rules


SWAP_RULES = _rules(SWAPS)
LEAD_RULES = _rules(dict.fromkeys((*PADDING_LEADS, *NEUTRAL_LEADS), ""))
NEUTRAL_WORDS = frozenset(tuple(words(sentence)) for sentence in NEUTRAL)
LONGEST_NEUTRAL = max(map(len, NEUTRAL_WORDS))


def _normalised(found: list[str]) -> list[str]:
    """Drop lead-ins and neutral sentences and swap phrases until nothing changes."""
    while True:
        found, before = _without_leads(found), found
        if len(found) <= LONGEST_NEUTRAL and tuple(found) in NEUTRAL_WORDS:
            return []
        if not SWAP_RULES.keys().isdisjoint(found):
            found = _swapped(found)
        if found == before:
            return found


def _without_leads(found: list[str]) -> list[str]:
    start = 0
    while (match := _rule(found, start, LEAD_RULES)) is not None:
        start += len(match[0])
    return found[start:] if start else found


def _swapped(found: list[str]) -> list[str]:
    result: list[str] = []
    at = 0
    while at < len(found):
        match = _rule(found, at, SWAP_RULES)
        result += match[1] if match else found[at : at + 1]
        at += len(match[0]) if match else 1
    return result


def _rule(
    found: list[str], at: int, rules: Rules
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    if at >= len(found):
        return None
    for rule in rules.get(found[at], ()):
        if tuple(found[at : at + len(rule[0])]) == rule[0]:
            return rule
    return None
