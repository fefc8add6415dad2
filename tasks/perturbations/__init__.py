"""Perturbations, one per file: ``@perturbation(...)`` on a function named like the file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tasks._catalogue import Catalogue, modules


class Item(NamedTuple):
    """What a recipe may read."""

    answer_id: str
    question: str
    answer: str


Recipe = Callable[[Item, int], str | None]
"""(item, seed) -> perturbed text; None if none can be made without a dataset or a model."""

Sham = Callable[[Item, str, int], str | None]
"""(item, perturbed text, seed) -> the answer after a meaning-free edit of equal size."""

Check = Callable[[str, str], str | None]
"""(original, perturbed) -> the first validity rule that fails, in words; None if valid."""


@dataclass(frozen=True)
class Perturbation:
    """A change to an answer, its sham twin and its validity check."""

    name: str
    kind: Literal["promote", "detract"]
    bias: str
    source: str
    recipe: int
    make: Recipe
    sham: Sham | None
    check: Check
    summary: str


def perturbation(
    *,
    kind: Literal["promote", "detract"],
    bias: str,
    source: str,
    check: Check,
    sham: Sham | None,
    recipe: int = 1,
) -> Callable[[Recipe], Perturbation]:
    """Declare a perturbation; raise ``recipe`` whenever its output changes."""

    def declare(make: Recipe) -> Perturbation:
        summary = (make.__doc__ or "").strip().split("\n")[0]
        name = getattr(make, "__name__", "")
        return Perturbation(name, kind, bias, source, recipe, make, sham, check, summary)

    return declare


PERTURBATIONS: Catalogue[Perturbation] = modules(
    "perturbation", __name__, Path(__file__).parent, Perturbation
)
