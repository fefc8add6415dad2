"""Beauty: the same words as a list with bold words and emoji."""

import re

from tasks.kit.random_numbers import pick, shuffle, uniform
from tasks.perturbations import Item, perturbation
from tasks.rewriting.checks import same_words
from tasks.rewriting.phrases import COMMON
from tasks.rewriting.shams import respace, ruled
from tasks.rewriting.text_splitting import sentences

EMOJI = ("✨", "💡", "🌟", "📌", "🔍", "✅", "📘", "🎯", "🚀", "🧩", "🌱", "🔑")
BOLD_SENTENCE = 2
EMOJI_SHARE = 0.6
KEY_WORD = re.compile(r"(?<!\S)[^\W\d_]{7,30}(?=[,;:.!?]?(?:\s|$))")
MARKED = re.compile(r"[*_`|<>\[\]\\~]")


@perturbation(
    kind="promote",
    bias="beauty",
    source="arXiv 2402.10669, rich content",
    check=same_words,
    sham=respace,
    second_sham=ruled,
)
def rich_content(item: Item, seed: int) -> str | None:
    """Set each sentence as a list item with bold words and emoji; add and drop no word."""
    key = (seed, item.answer_id, "rich_content")
    own = sentences(item.answer)
    lines = [_line(sentence, place, key) for place, sentence in enumerate(own)]
    return "\n".join(lines) or None


def _line(sentence: str, place: int, key: tuple[object, ...]) -> str:
    bullet = "- " if sentence[0].isalpha() else ""
    emoji = place == 0 or uniform(*key, place, "emoji") < EMOJI_SHARE
    tail = f" {pick(EMOJI, *key, place)}" if emoji else ""
    return f"{bullet}{_bold(sentence, *key, place)}{tail}"


def _bold(sentence: str, *key: object) -> str:
    if MARKED.search(sentence):  # asterisks inside code, links or tables would break them
        return sentence
    spots = [m for m in KEY_WORD.finditer(sentence) if m.group().casefold() not in COMMON]
    for spot in sorted(shuffle(spots, *key)[:BOLD_SENTENCE], key=re.Match.start, reverse=True):
        sentence = f"{sentence[: spot.start()]}**{spot.group()}**{sentence[spot.end() :]}"
    return sentence
