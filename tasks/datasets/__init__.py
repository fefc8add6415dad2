"""Datasets, one importer per file: ``@dataset(...)`` on a function named like the file."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pandera.typing.polars import DataFrame

from schemas.curation import Answers, Known, Questions, Versions
from tasks.kit.catalogue import Catalogue, modules
from tasks.kit.user_folder import own_folder

DATA_FILES = (".jsonl", ".csv", ".parquet")
"""Suffixes of files with questions and answers."""


class Imported(NamedTuple):
    """What an importer returns."""

    questions: DataFrame[Questions]
    answers: DataFrame[Answers]
    versions: DataFrame[Versions]
    known: DataFrame[Known] = Known.empty()


@dataclass(frozen=True)
class Dataset:
    """A named source of questions with two answers each."""

    name: str
    source: str
    license: str
    load: Callable[[Path | None], Imported]
    """Reads from the given folder; bundled datasets ignore it."""
    summary: str


def dataset(
    *,
    source: str,
    license: str,  # noqa: A002
) -> Callable[[Callable[[Path | None], Imported]], Dataset]:
    """Declare a dataset."""

    def declare(load: Callable[[Path | None], Imported]) -> Dataset:
        summary = (load.__doc__ or "").strip().split("\n")[0]
        return Dataset(getattr(load, "__name__", ""), source, license, load, summary)

    return declare


def _of_file(name: str, file: Path) -> Dataset:
    def load(_: Path | None) -> Imported:
        from tasks.readers.questions import load_own

        return load_own(file)

    return Dataset(name, str(file), "unknown", load, f"Your questions of {file.name}.")


DATASETS: Catalogue[Dataset] = modules(
    "dataset",
    __name__,
    Path(__file__).parent,
    Dataset,
    own=partial(own_folder, "datasets"),
    others=dict.fromkeys(DATA_FILES, _of_file),
)
