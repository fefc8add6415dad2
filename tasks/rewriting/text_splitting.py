"""Split text into words and sentences in linear time; find a question's topic."""

import re
from collections.abc import Iterator

from tasks.kit.random_numbers import pick
from tasks.rewriting.phrases import ASKING

WORD = re.compile(r"[^\W_]+")
EMOJI = re.compile(
    "[0-9#*]\ufe0f?\u20e3"
    "|[\U0001f000-\U0001faff\u2600-\u27bf\u231a-\u23ff\u2b05-\u2b55\u3030\u303d]"
    "[\ufe0f\u200d\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
)
SHORTCODE = re.compile(r"(?<!\w):(?:[a-z][a-z0-9_+-]{1,40}|[+-]1|100):(?!\w)")
FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n`]{0,40}$", re.MULTILINE)
IMAGE = re.compile(r"!\[[^\[\]\n]{0,300}\]\([^()\n]{0,500}\)")
LINK = re.compile(r"\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)")
TAG = re.compile(
    r"</?(?:a|b|blockquote|br|code|details|div|em|h[1-6]|hr|i|img|li|mark|ol|p|pre|small|span"
    r"|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)\b[^<>\n]{0,300}>",
    re.IGNORECASE,
)
MARKER = re.compile(r"^[ \t]{0,12}(?:(?:[-*+•>]|#{1,6}|\d{1,2}[.)])[ \t]{1,8}){1,4}", re.MULTILINE)
INSIDE = re.compile(r"(?<=[^\W\d_])\*\*(?=[^\W\d_])")
SENTENCE_END = re.compile(
    r"""(?<=[.!?])["'\u201d\u2019)\]*_`]{0,4}\s+(?=["'\u201c\u2018(\[*_`]{0,4}[^\W\d_a-z])"""
)


def words(text: str) -> list[str]:
    """Return the runs of letters and digits, casefolded."""
    return WORD.findall(text.casefold())


def plain(text: str) -> str:
    """Return the text without markup and emoji, with its words unchanged."""
    if not text.isascii():
        text = EMOJI.sub(" ", text)
    if ":" in text:
        text = SHORTCODE.sub(" ", text)
    if "```" in text or "~~~" in text:
        text = FENCE.sub("", text)
    if "](" in text:
        text = LINK.sub(r"\1", IMAGE.sub(" ", text))
    if "<" in text:
        text = TAG.sub(" ", text)
    if "**" in text:
        text = INSIDE.sub("", text)
    return MARKER.sub("", text)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence; a line break also ends a sentence."""
    start = 0
    for line in text.split("\n"):
        left = start
        marker = MARKER.match(line)
        for match in SENTENCE_END.finditer(line, marker.end() if marker else 0):
            yield from _trimmed(text, left, start + match.end())
            left = start + match.end()
        yield from _trimmed(text, left, start + len(line))
        start += len(line) + 1


def sentences(text: str) -> list[str]:
    """Return the sentences without surrounding white space."""
    return [text[start:end] for start, end in spans(text)]


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        left = start + len(piece) - len(piece.lstrip())
        yield left, left + len(stripped)


NOUN = re.compile(r"[^\W\d_]{5,24}")
NOUN_CHOICES = 3


def topic_of(question: str, *key: object) -> str:
    """Return one of the longest words of the question that name a topic."""
    found = dict.fromkeys(word.casefold() for word in NOUN.findall(question))
    nouns = sorted((w for w in found if w not in ASKING), key=len, reverse=True)
    topic = pick(nouns[:NOUN_CHOICES], *key, "topic") if nouns else "the Subject"
    return topic[0].upper() + topic[1:]
