"""Shams: meaning-free edits that are as long as the perturbation."""

from tasks.kit.random_numbers import shuffle
from tasks.perturbations import Item
from tasks.rewriting.checks import SHAM_TOLERANCE, sham_failure
from tasks.rewriting.paraphrase import reworded
from tasks.rewriting.plain_content import canonical
from tasks.rewriting.sentences import SHORTEST, extended, noted
from tasks.rewriting.text_splitting import spans, topic_of

SHORTEST_RULE = 3
"""Longest run of dashes that is not yet written as a horizontal rule."""

WIDEST = 8
"""Most spaces between two words: more would not pass for sloppy typing."""


def closing(item: Item, perturbed: str, seed: int) -> str | None:
    """Append a closing paragraph of neutral sentences; paraphrase if there is no room."""
    longer = _longer(item, item.answer, perturbed, seed, apart=True)
    return longer or paraphrase(item, perturbed, seed)


def addition(item: Item, perturbed: str, seed: int) -> str | None:
    """Append neutral sentences; paraphrase if there is no room."""
    longer = _longer(item, item.answer, perturbed, seed, apart=False)
    return longer or paraphrase(item, perturbed, seed)


def note(item: Item, perturbed: str, seed: int) -> str | None:
    """Append a note that only names the question's subject; paraphrase if there is no room."""
    longer = noted(
        item.answer, topic_of(item.question, *_key(item, seed)), len(perturbed), _key(item, seed)
    )
    return _accepted(item.answer, perturbed, longer) or paraphrase(item, perturbed, seed)


def ruled(item: Item, perturbed: str, seed: int) -> str | None:
    """Put sentences on lines of their own, with horizontal rules of dashes between them."""
    breaks = _breaks(item.answer)
    need = len(perturbed) - len(item.answer)
    if breaks:
        dashes, more = divmod(max(need, 0), len(breaks))
        rules = {
            at: "\n" + "-" * (dashes + (rank < more) - 1) + "\n" if dashes > SHORTEST_RULE else "\n"
            for rank, at in enumerate(breaks)
        }
        text = "".join(rules.get(at, c) for at, c in enumerate(item.answer))
        if accepted := _accepted(item.answer, perturbed, text):
            return accepted
    return respace(item, perturbed, seed)


def paraphrase(item: Item, perturbed: str, seed: int) -> str | None:
    """Swap phrases, insert lead-ins and, if needed, add neutral sentences.

    If a short answer has no room for any of these, only its spacing changes.
    """
    for text in reworded(item.answer, perturbed, _key(item, seed)):
        accepted = _accepted(item.answer, perturbed, text)
        accepted = accepted or _longer(item, text, perturbed, seed, apart=False)
        if accepted:
            return accepted
    return respace(item, perturbed, seed)


def respace(item: Item, perturbed: str, seed: int) -> str | None:
    """Insert line breaks between sentences and widen the spaces between words."""
    need = len(perturbed) - len(item.answer)
    if need < -SHAM_TOLERANCE * len(perturbed):
        return None
    for breaks in (_breaks(item.answer), []):
        text = _respaced(item.answer, max(need, 0), breaks, _key(item, seed))
        if accepted := _accepted(item.answer, perturbed, text):
            return accepted
    return None


def _longer(item: Item, text: str, perturbed: str, seed: int, *, apart: bool) -> str | None:
    if len(text) + SHORTEST > (1 + SHAM_TOLERANCE) * len(perturbed):
        return None
    longer = extended(text, len(perturbed), _key(item, seed), apart=apart)
    return _accepted(item.answer, perturbed, longer)


def _respaced(text: str, need: int, breaks: list[int], key: tuple[object, ...]) -> str:
    """Distribute ``need`` characters over the spaces; gaps at ``breaks`` become line breaks."""
    gaps = dict.fromkeys(_gaps(text), " ")
    for at in shuffle(breaks, *key, "breaks"):
        gaps[at] = "\n\n" if need else "\n"
        need = max(need - 1, 0)
    inside = [at for at in gaps if gaps[at] == " "]
    if inside:
        each, more = divmod(need, len(inside))
        for rank, at in enumerate(shuffle(inside, *key, "gaps")):
            gaps[at] = " " * min(1 + each + (rank < more), WIDEST)
    return "".join(gaps.get(at, character) for at, character in enumerate(text))


def _gaps(text: str) -> list[int]:
    """Return the positions of single spaces between words."""
    return [
        at
        for at in range(1, len(text) - 1)
        if text[at] == " " and not text[at - 1].isspace() and not text[at + 1].isspace()
    ]


def _breaks(text: str) -> list[int]:
    """Return the spaces before sentences that start with a letter, so without markup."""
    gaps = set(_gaps(text))
    return [start - 1 for start, _ in spans(text) if start - 1 in gaps and text[start].isalpha()]


def _accepted(original: str, perturbed: str, sham: str) -> str | None:
    if sham_failure(original, perturbed, sham) is None and canonical(sham) == canonical(original):
        return sham
    return None


def _key(item: Item, seed: int) -> tuple[object, ...]:
    return (seed, item.answer_id, "sham")
