"""Verbosity: an answer that says its own sentences twice."""

from tasks.kit.random_numbers import shuffle
from tasks.perturbations import Item, perturbation
from tasks.rewriting.checks import additive
from tasks.rewriting.phrases import PADDING_LEADS
from tasks.rewriting.sentences import led
from tasks.rewriting.text_splitting import plain, sentences, words

LONGEST = 2.0
FEWEST_WORDS = 4


@perturbation(
    kind="promote",
    bias="verbosity",
    source="arXiv 2306.05685, verbosity bias (there a repetitive list)",
    check=additive,
    sham=None,  # the length is the treatment
    needs="an answer of two or more sentences, as it repeats some and at most doubles the length",
)
def padding(item: Item, seed: int) -> str | None:
    """Repeat own sentences under varied lead-ins, to at most twice the characters."""
    key = (seed, item.answer_id, "padding")
    own = [s for s in sentences(plain(item.answer)) if len(words(s)) >= FEWEST_WORDS]
    room = int(LONGEST * len(item.answer)) - len(item.answer) - 1
    leads = shuffle(PADDING_LEADS, *key, "leads")
    repeated: dict[int, str] = {}
    for place in shuffle(range(len(own)), *key, "sentences"):
        text = _repeated(leads[len(repeated) % len(leads)], own[place])
        if len(text) + 1 <= room:
            repeated[place] = text
            room -= len(text) + 1
    if not repeated:
        return None
    return f"{item.answer}\n\n{' '.join(repeated[place] for place in sorted(repeated))}"


def _repeated(lead: str, sentence: str) -> str:
    text = led(lead, sentence)
    return text if text.rstrip("\"')]").endswith((".", "!", "?")) else f"{text}."
