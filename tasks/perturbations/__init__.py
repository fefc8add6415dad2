"""Perturbations, one per file: ``@perturbation(...)`` on a function named like the file."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from tasks.kit.catalogue import Catalogue, modules
from tasks.kit.user_folder import own_folder


class Item(NamedTuple):
    """What a recipe may read."""

    answer_id: str
    question: str
    answer: str


Recipe = Callable[[Item, int], str | None]
"""(item, seed) -> perturbed text; None if none can be made without a dataset or a model."""

Sham = Callable[[Item, str, int], str | None]
"""(item, perturbed text, seed) -> the answer after a meaning-free edit of equal size."""

ValidityCheck = Callable[[str, str], str | None]
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
    check: ValidityCheck
    summary: str
    second_sham: Sham | None = None
    """A sham of another kind, so that a preference about one kind is not mistaken for a bias."""
    needs: str = ""
    """What the template needs of an answer, if it does not change each one."""
    from_data: bool = False
    """Whether only a dataset brings its texts, as there is no template."""


def perturbation(
    *,
    kind: Literal["promote", "detract"],
    bias: str,
    source: str,
    check: ValidityCheck,
    sham: Sham | None,
    second_sham: Sham | None = None,
    recipe: int = 1,
    needs: str = "",
    from_data: bool = False,
) -> Callable[[Recipe], Perturbation]:
    """Declare a perturbation; raise ``recipe`` whenever its output changes."""

    def declare(make: Recipe) -> Perturbation:
        summary = (make.__doc__ or "").strip().split("\n")[0]
        name = getattr(make, "__name__", "")
        return Perturbation(
            name,
            kind,
            bias,
            source,
            recipe,
            make,
            sham,
            check,
            summary,
            second_sham,
            needs,
            from_data,
        )

    return declare


SECOND = "/second"
"""Suffix of the name of a perturbation that is compared with its second sham."""


def perturbation_named(name: str) -> Perturbation:
    """Return the perturbation ``name``, or ``name/second``: the same with its second sham."""
    base = PERTURBATIONS[name.removesuffix(SECOND)]
    return base if name == base.name else replace(base, name=name, sham=base.second_sham)


def asked_under(names: Iterable[str], sham: str) -> list[str]:
    """Return the names under which judges are asked about perturbations: one per sham.

    ``sham`` is ``first``, ``second``, ``both`` or ``none``; one without a second sham keeps its
    first.
    """
    asked = []
    for name in names:
        known = name in PERTURBATIONS and PERTURBATIONS[name].second_sham
        second = [f"{name}{SECOND}"] if known else []
        first = [] if sham == "second" and second else [name]
        asked += first + (second if sham in {"second", "both"} else [])
    return asked


PERTURBATIONS: Catalogue[Perturbation] = modules(
    "perturbation",
    __name__,
    Path(__file__).parent,
    Perturbation,
    own=partial(own_folder, "perturbations"),
)
