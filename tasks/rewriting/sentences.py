"""Building sentences: lead-ins, and neutral sentences that fill a given length."""

from tasks.kit.random_numbers import shuffle
from tasks.rewriting.phrases import NEUTRAL, NOTE_HEAD, NOTES, OPENERS

SHORTEST = min(map(len, NEUTRAL))
ROOM = 60
"""Number of characters that one or two neutral sentences can always fill closely."""


def led(lead: str, sentence: str) -> str:
    """Put a lead-in before ``sentence``, with a colon where its capital must stay.

    >>> led("In short", "The tide falls."), led("In short", "Paris is a city.")
    ('In short, the tide falls.', 'In short: Paris is a city.')
    """
    first = sentence.split(maxsplit=1)[0]
    if first[0].isupper() and first.lower() in OPENERS:
        return f"{lead}, {sentence[0].lower()}{sentence[1:]}"
    return f"{lead}: {sentence}"


def extended(text: str, length: int, key: tuple[object, ...], *, apart: bool) -> str:
    """Append neutral sentences to bring ``text`` as close to ``length`` as possible."""
    joint = " " if not apart and text.endswith((".", "!", "?")) else "\n\n"
    free = [s for s in shuffle(NEUTRAL, *key, "neutral") if s not in text]
    return text + joint + " ".join(_sentences_for(length - len(text) - len(joint), free))


def noted(text: str, topic: str, length: int, key: tuple[object, ...]) -> str:
    """Append a note that names the topic without content, to bring ``text`` close to ``length``."""
    head = f"{text}\n\n{NOTE_HEAD} {topic}\n"
    free = shuffle([note.format(topic.lower()) for note in NOTES], *key, "notes")
    return head + " ".join(_sentences_for(length - len(head), free))


def _sentences_for(wanted: int, free: list[str]) -> list[str]:
    taken: list[str] = []
    left = wanted + 1  # the joint before the first sentence is counted elsewhere
    for sentence in free:
        if left - len(sentence) - 1 >= ROOM:
            taken.append(sentence)
            left -= len(sentence) + 1
    rest = [s for s in free if s not in taken]
    return taken + _nearest(left, rest)


def _nearest(left: int, rest: list[str]) -> list[str]:
    """Return the one or two sentences, or none, whose length is closest to ``left``."""
    sizes = [len(sentence) + 1 for sentence in rest]
    best: tuple[int, ...] = ()
    missed = abs(left)
    for place, size in enumerate(sizes):
        if (miss := abs(left - size)) < missed:
            best, missed = (place,), miss
    for place, size in enumerate(sizes):
        # Written out and ended early: this is half of the time of a perturbation.
        if not missed:
            break
        for second in range(place + 1, len(sizes)):
            if (miss := abs(left - size - sizes[second])) < missed:
                best, missed = (place, second), miss
    return [rest[place] for place in best]
