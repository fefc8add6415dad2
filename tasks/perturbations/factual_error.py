"""Misinformation oversight: an answer with wrong facts, which should cost it votes."""

from tasks.perturbations import Item, perturbation
from tasks.rewriting.checks import detracting
from tasks.rewriting.shams import paraphrase, respace


@perturbation(
    kind="detract",
    bias="misinformation oversight",
    source="arXiv 2402.10669, factual error",
    check=detracting,
    sham=paraphrase,
    second_sham=respace,
    from_data=True,
)
def factual_error(_item: Item, _seed: int) -> str | None:
    """Change facts; there is no template, because the flawed versions come with a dataset."""
    return None
