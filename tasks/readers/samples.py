"""Samples, the common form of all datasets, and the frames made of them."""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from schemas.curation import Answers, Known, Questions, Versions
from tasks.datasets import Imported

Record = tuple[object, ...]
OTHER = {"anchor": "target", "target": "anchor"}


class Version(NamedTuple):
    """A perturbed version of one of the two answers."""

    slot: int
    perturbation: str
    text: str


class Sample(NamedTuple):
    """A question with its two answers and the versions that come with them."""

    id: str
    question: str
    answers: tuple[str, str]
    versions: tuple[Version, ...] = ()
    category: str | None = None
    reference: str | None = None
    authors: tuple[str | None, str | None] = (None, None)
    label: str | None = None
    """The correct verdict, if the second answer is the target."""
    human_score: float | None = None
    """People's score of the second answer, 0 to 1."""
    label_chance: float | None = None

    def known(self, slot: int) -> Record:
        """Return what is known of the pair in which the answer of this slot is the target."""
        if slot == 2:
            return (*self.authors, self.label, self.human_score, self.label_chance)
        label = OTHER.get(self.label or "", self.label)
        score = None if self.human_score is None else 1 - self.human_score
        return (*self.authors[::-1], label, score, self.label_chance)


def imported(dataset: str, samples: Iterable[Sample]) -> Imported:
    """Return the frames of ``samples``, each id under the dataset's name."""
    questions: list[Record] = []
    answers: list[Record] = []
    versions: list[Record] = []
    known: list[Record] = []
    for sample in samples:
        key = f"{dataset}/{sample.id}"
        questions.append((key, dataset, sample.category, sample.question, sample.reference))
        answers.extend(
            (f"{key}/a{slot}", key, slot, sample.authors[slot - 1], text)
            for slot, text in enumerate(sample.answers, start=1)
        )
        known.extend((f"{key}/a{slot}", *sample.known(slot)) for slot in (1, 2))
        versions.extend((f"{key}/a{v.slot}", v.perturbation, v.text) for v in sample.versions)
    return Imported(
        Questions.of(_frame(Questions.dtypes(), questions)),
        Answers.of(_frame(Answers.dtypes(), answers)),
        Versions.of(_frame(Versions.dtypes(), versions)),
        Known.of(_frame(Known.dtypes(), known)),
    )


def _frame(schema: dict[str, pl.DataType], rows: list[Record]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")
