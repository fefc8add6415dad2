"""Which words changed between two texts."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal, NamedTuple

MOST_WORDS = 4000
"""Longer changed passages are not compared word by word, which takes quadratic time."""

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
Change = Literal["same", "removed", "added"]


class Part(NamedTuple):
    """A passage and what happened to it."""

    change: Change
    text: str


def changed_words(before: str, after: str) -> list[Part]:
    """Return the passages of both texts in order, each the same, removed or added.

    The parts that are not ``added`` spell ``before``; those that are not ``removed``, ``after``.
    """
    return list(_merged(_parts(WORDS.findall(before), WORDS.findall(after))))


def _parts(old: list[str], new: list[str]) -> Iterator[Part]:
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    inner = old[head : len(old) - tail], new[head : len(new) - tail]
    yield Part("same", "".join(old[:head]))
    if max(map(len, inner)) > MOST_WORDS:
        yield from (Part("removed", "".join(inner[0])), Part("added", "".join(inner[1])))
    else:
        for kind, i, j, k, m in SequenceMatcher(None, *inner, autojunk=False).get_opcodes():
            gone, come = "".join(inner[0][i:j]), "".join(inner[1][k:m])
            if kind == "equal":
                yield Part("same", gone)
            else:
                yield from (Part("removed", gone), Part("added", come))
    yield Part("same", "".join(old[len(old) - tail :]))


def _alike(one: list[str], other: list[str]) -> int:
    """Return how many words two lists begin with alike."""
    both = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))


def _merged(parts: Iterator[Part]) -> Iterator[Part]:
    """Leave out empty parts and join neighbours of one kind."""
    last: Part | None = None
    for part in parts:
        if not part.text:
            continue
        if last and last.change == part.change:
            last = Part(last.change, last.text + part.text)
            continue
        if last:
            yield last
        last = part
    if last:
        yield last
