"""A word of the question that names its topic."""

import re

from tasks._random import pick

NOUN = re.compile(r"[^\W\d_]{5,24}")
NOUN_CHOICES = 3
ASKING = frozenset({
    "about", "after", "analyze", "answer", "apply", "assess", "before", "between",
    "choose", "compare", "could", "create", "decide", "define", "demonstrate", "describe",
    "design", "determine", "differ", "difference", "different", "discuss", "equal",
    "evaluate", "every", "example", "explain", "first", "following", "given", "happen",
    "happens", "identify", "illustrate", "imagine", "judge", "might", "other", "people",
    "please", "propose", "reason", "should", "shows", "since", "state", "steps",
    "suggest", "their", "there", "these", "things", "think", "those", "three", "under",
    "using", "what", "whether", "which", "while", "would", "write",
})  # fmt: skip
"""Words that ask rather than name a topic."""


def topic_of(question: str, *key: object) -> str:
    """Return one of the longest words of the question that name a topic."""
    found = dict.fromkeys(word.casefold() for word in NOUN.findall(question))
    nouns = sorted((w for w in found if w not in ASKING), key=len, reverse=True)
    topic = pick(nouns[:NOUN_CHOICES], *key, "topic") if nouns else "the Subject"
    return topic[0].upper() + topic[1:]
