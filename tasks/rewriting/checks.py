"""Validity checks of perturbed texts and shams; each returns the first fault found."""

import math
import re
from collections import Counter

from tasks.rewriting.plain_content import canonical, features
from tasks.rewriting.text_splitting import plain, words

WORDS_KEPT = 0.70
SHORTEST = 0.80
LONGEST = 1.25
SHAM_TOLERANCE = 0.05
COMPARED_WORDS = 20_000
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def additive(original: str, perturbed: str) -> str | None:
    """Check that the original's words remain, in order."""
    if failure := _empty_or_unchanged(original, perturbed):
        return failure
    left = iter(words(perturbed))
    for word in words(original):
        if all(word != other for other in left):
            return f"the word {_clip(word)} is missing or out of order"
    return None


def same_words(original: str, perturbed: str) -> str | None:
    """Check that the words are the same without markup and emoji."""
    if failure := _empty_or_unchanged(original, perturbed):
        return failure
    before, after = words(plain(original)), words(plain(perturbed))
    for place, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            return f"word {place} is {_clip(new)}, was {_clip(old)}"
    if len(before) != len(after):
        return f"has {len(after)} words, needs the original's {len(before)}"
    return None


def detracting(original: str, perturbed: str) -> str | None:
    """Check that most words and the length are kept, and that the content changes."""
    if failure := _empty_or_unchanged(original, perturbed):
        return failure
    ratio = len(perturbed) / len(original)
    if not SHORTEST <= ratio <= LONGEST:
        needed = f"{SHORTEST:.2f} to {LONGEST:.2f}"
        return f"is {_rounded_away(ratio)} of the original's length, needs {needed}"
    before, after = words(original), words(perturbed)
    share = (Counter(before) & Counter(after)).total() / len(before)
    if share >= WORDS_KEPT:
        longest = max(len(before), len(after))
        if longest > COMPARED_WORDS:
            return f"has {longest} words, can compare {COMPARED_WORDS}"
        share = _kept(before, after)
    if share < WORDS_KEPT:
        return f"keeps {_rounded_away(share)} of the words, needs {WORDS_KEPT:.2f}"
    if canonical(original) == canonical(perturbed):
        return "changes no content"
    return None


def words_kept(original: str, perturbed: str) -> float | None:
    """Return the share of the original's words kept in order; None if too long to compare."""
    before, after = words(original), words(perturbed)
    if not before:
        return None
    if additive(original, perturbed) is None:
        return 1.0
    if max(len(before), len(after)) > COMPARED_WORDS:
        return None
    return _kept(before, after)


def sham_failure(original: str, perturbed: str, sham: str) -> str | None:
    """Check that a sham is as long as the perturbed text and adds nothing that could matter."""
    if not sham.strip():
        return "is empty"
    if sham == original:
        return "is identical to the original"
    if sham == perturbed:
        return "is identical to the perturbed text"
    ratio = len(sham) / len(perturbed)
    if abs(len(sham) - len(perturbed)) > SHAM_TOLERANCE * len(perturbed):
        return f"is {_rounded_away(ratio)} of the perturbed text's length, needs 0.95 to 1.05"
    return _added_feature(original, sham)


def _added_feature(original: str, sham: str) -> str | None:
    before, after = features(original), features(sham)
    for what in ("references", "markup", "emoji", "padding"):
        more = getattr(after, what) - getattr(before, what)
        if more > 0:
            return f"adds {what} ({more})"
    new = sorted(set(NUMBER.findall(sham)) - set(NUMBER.findall(original)))
    return f"adds the number {_clip(new[0])}" if new else None


def _empty_or_unchanged(original: str, perturbed: str) -> str | None:
    if not perturbed.strip():
        return "is empty"
    if perturbed.split() == original.split():
        return "is identical to the original"
    if not words(original):
        return "the original has no words"
    return None


def _kept(before: list[str], after: list[str]) -> float:
    return _common(before, after) / len(before)


def _common(before: list[str], after: list[str]) -> int:
    """Return the length of the longest common subsequence, with one big integer as bit row.

    Hyyrö (2004), "Bit-parallel LCS-length computation revisited": a cleared bit is a match.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(before):
        places[word] = places.get(word, 0) | 1 << place
    full = (1 << len(before)) - 1
    row = full
    for word in after:
        hits = row & places.get(word, 0)
        if hits:
            row = ((row + hits) | (row - hits)) & full
    return len(before) - row.bit_count()


def _rounded_away(value: float) -> str:
    """Format a value that violates a limit, rounded away from the limit."""
    return f"{(math.floor if value < 1 else math.ceil)(value * 100) / 100:.2f}"


def _clip(word: str) -> str:
    return repr(word if len(word) <= 30 else word[:29] + "…")
