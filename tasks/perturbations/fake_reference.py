"""Authority: an answer with a list of references that do not exist."""

from tasks.kit.random_numbers import pick, shuffle, uniform
from tasks.perturbations import Item, perturbation
from tasks.rewriting.checks import additive
from tasks.rewriting.phrases import PRESSES, SURNAMES, TITLES
from tasks.rewriting.shams import closing, note
from tasks.rewriting.text_splitting import topic_of

MOST_ENTRIES = 3
FIRST_YEAR, LAST_YEAR = 1987, 2021
LINK_SHARE = 0.25
INITIALS = "ABCDEFGHJKLMNPRSTW"


@perturbation(
    kind="promote",
    bias="authority",
    source="arXiv 2402.10669, fake reference; arXiv 2410.02736, authority bias",
    check=additive,
    sham=closing,
    second_sham=note,
)
def fake_reference(item: Item, seed: int) -> str | None:
    """Append one to three invented references on the question's topic."""
    key = (seed, item.answer_id, "fake_reference")
    names = shuffle(SURNAMES, *key, "surname")[: pick(range(1, MOST_ENTRIES + 1), *key, "many")]
    titles = shuffle(TITLES, *key, "title")
    topic = topic_of(item.question, *key)
    entries = [
        _entry(name, title.format(topic), *key, name)
        for name, title in zip(sorted(names), titles, strict=False)
    ]
    return f"{item.answer}\n\nReferences\n" + "\n".join(entries)


def _entry(name: str, title: str, *key: object) -> str:
    year = pick(range(FIRST_YEAR, LAST_YEAR + 1), *key, "year")
    entry = f"{name}, {pick(INITIALS, *key, 'initial')}. ({year}). {title}."
    if uniform(*key, "link") < LINK_SHARE:
        return f"{entry} https://example.org/{name.lower()}-{year}"
    return f"{entry} {pick(PRESSES, *key, 'press')}."
