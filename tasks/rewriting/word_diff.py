"""Which words changed between two texts."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import groupby, takewhile
from typing import Literal, NamedTuple

MOST_WORDS, MOST_PIECES = 2000, 60
"""Longer changed passages are not compared by words, or by pieces: that takes quadratic time."""

WORDS = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")
"""Words with the white space before them, as to compare each space with each takes most time."""
PIECES = re.compile(r"\s+|\w+|[^\w\s]")
Change = Literal["same", "removed", "added"]


class Passage(NamedTuple):
    """A passage and what happened to it."""

    change: Change
    text: str


class WordDifference(NamedTuple):
    """What to show of two texts."""

    parts: list[Passage]
    note: str
    """That only white space differs, or empty."""


WHITE_SPACE = "only white space differs"


def difference(before: str, after: str) -> WordDifference:
    """Return the changed words of two texts; if only white space differs, the second without marks.

    Marks around each space would make the text unreadable.
    """
    if before != after and before.split() == after.split():
        return WordDifference([Passage("same", after)], WHITE_SPACE)
    return WordDifference(changed_words(before, after), "")


def changed_words(before: str, after: str) -> list[Passage]:
    """Return the passages of both texts in order, each the same, removed or added.

    The parts that are not ``added`` spell ``before``; those that are not ``removed``, ``after``.
    """
    return list(_merged(_parts(WORDS.findall(before), WORDS.findall(after))))


def _parts(old: list[str], new: list[str]) -> Iterator[Passage]:
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    inner = old[head : len(old) - tail], new[head : len(new) - tail]
    yield Passage("same", "".join(old[:head]))
    for same, gone, come in _compared(*inner, MOST_WORDS):
        if same:
            yield Passage("same", gone)
            continue
        # White space and marks around a word may be the same.
        for alike, less, more in _compared(PIECES.findall(gone), PIECES.findall(come), MOST_PIECES):
            yield Passage("same" if alike else "removed", less)
            yield Passage("added", "" if alike else more)
    yield Passage("same", "".join(old[len(old) - tail :]))


def _compared(old: list[str], new: list[str], most: int) -> Iterator[tuple[bool, str, str]]:
    """Yield passages of both lists in order, and whether they are the same.

    Lists of more than ``most`` texts are one passage.
    """
    if max(len(old), len(new)) > most:
        yield False, "".join(old), "".join(new)
        return
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield kind == "equal", "".join(old[i:j]), "".join(new[k:m])


def _alike(one: list[str], other: list[str]) -> int:
    """Return how many words two lists begin with alike."""
    both = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))


def _merged(parts: Iterator[Passage]) -> Iterator[Passage]:
    """Leave out empty parts and join neighbours of one kind."""
    filled = (part for part in parts if part.text)
    for change, alike in groupby(filled, key=lambda part: part.change):
        yield Passage(change, "".join(part.text for part in alike))
