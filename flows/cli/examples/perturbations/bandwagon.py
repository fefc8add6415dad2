"""Bandwagon: an answer that says that most readers prefer it."""

from tasks.kit.random_numbers import pick
from tasks.perturbations import Item, perturbation
from tasks.rewriting.checks import additive
from tasks.rewriting.shams import closing, note


@perturbation(
    kind="promote",  # should have no effect; "detract": makes the answer worse
    bias="bandwagon",
    source="arXiv 2410.02736, bandwagon effect",
    check=additive,  # validity: all words of the original remain
    sham=closing,
    second_sham=note,
)
def bandwagon(item: Item, seed: int) -> str | None:
    """Append a line that claims that most readers prefer the answer."""
    share = pick(range(60, 96), seed, item.answer_id, "bandwagon")
    return f"{item.answer}\n\nIn a survey, {share} of 100 readers preferred this answer."
