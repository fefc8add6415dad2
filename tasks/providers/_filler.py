"""Does an answer have filler sentences or odd spacing, as anybody's might? No list of texts."""

import re

from tasks.perturbations._words import plain, sentences, words

TALK = frozenset({
    "answer", "answered", "answers", "closing", "explanation", "hope", "paragraph",
    "pause", "phrase", "question", "questions", "read", "reader", "readers", "reading", "reads",
    "reply", "sentence", "sentences", "text", "texts", "thank", "thanks", "thoughts", "topic",
    "topics", "word", "words",
})  # fmt: skip
"""Words with which a text speaks of itself, of its subject as a subject, or of its reader."""

ASIDE = TALK | {"here", "i", "me", "my", "nothing", "such", "this", "you", "your"}

LONG = 6
"""Letters of a word that may be about the matter itself."""

WIDE = re.compile(r"\S {2,}\S")
MOST_WIDE = 2
"""Wide gaps between words that pass for slips."""


def has_filler(question: str, text: str) -> bool:
    """Tell whether an answer speaks of itself instead of the question, or is oddly spaced.

    A sentence is filler if it has two words of ``ASIDE``, one of them of ``TALK``, that the
    question has not, and no long word that the question or another sentence has.

    >>> has_filler("Why do leaves fall?", "Trees save water. Thank you for reading this text.")
    True
    >>> has_filler("Why do leaves fall?", "Trees save water, so their leaves fall.")
    False
    """
    if len(WIDE.findall(text)) > MOST_WIDE:
        return True
    asked = set(words(question))
    found = [set(words(sentence)) for sentence in sentences(plain(text))]
    return any(
        len((ASIDE - asked) & sentence) > 1
        and not (TALK - asked).isdisjoint(sentence)
        and _matter(sentence).isdisjoint(asked.union(*(s for s in found if s is not sentence)))
        for sentence in found
    )


def _matter(sentence: set[str]) -> set[str]:
    return {word for word in sentence if len(word) >= LONG} - TALK
