"""Samples, into which every dataset is read, and the frames made of them."""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from schemas.curation import Answers, Questions, Versions
from tasks.datasets import Imported

Record = tuple[object, ...]


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
    author: str | None = None


def imported(dataset: str, samples: Iterable[Sample]) -> Imported:
    """Return the frames of ``samples``, each id under the dataset's name."""
    questions: list[Record] = []
    answers: list[Record] = []
    versions: list[Record] = []
    for sample in samples:
        key = f"{dataset}/{sample.id}"
        questions.append((key, dataset, sample.category, sample.question, sample.reference))
        answers.extend(
            (f"{key}/a{slot}", key, slot, sample.author, text)
            for slot, text in enumerate(sample.answers, start=1)
        )
        versions.extend((f"{key}/a{v.slot}", v.perturbation, v.text) for v in sample.versions)
    return Imported(
        Questions.of(_frame(Questions.dtypes(), questions)),
        Answers.of(_frame(Answers.dtypes(), answers)),
        Versions.of(_frame(Versions.dtypes(), versions)),
    )


def _frame(schema: dict[str, pl.DataType], rows: list[Record]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")
