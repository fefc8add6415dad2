"""Curate: import questions with two answers each, from the catalogue or the user's file."""

import os
from pathlib import Path

import polars as pl

from schemas.curation import Answers, Known, Questions, Versions
from tasks.datasets import DATASETS, Imported
from tasks.kit.catalogue import UnknownNameError
from tasks.perturbations import PERTURBATIONS
from tasks.readers.questions import READERS, load_own

FOLDER_VARIABLES = {"humans_or_llms": "VOIRDIRE_HUMANS_OR_LLMS"}
"""Dataset -> environment variable with its folder, if none is given."""
SHOWN = 3


def import_dataset(dataset: str, folder: str | None = None, limit: int | None = None) -> Imported:
    """Import a dataset of the catalogue, or the user's file if ``dataset`` is a path.

    Parameters
    ----------
    dataset
        A name of the catalogue, or a path: it has a slash or one of the known suffixes.
    folder
        Folder of a dataset that is not bundled; ignored by others.
    limit
        Keep at most this many questions, taken from the categories in turn.

    Raises
    ------
    ValueError
        If a file is missing or invalid, or a question does not have two answers.
    LookupError
        If no dataset has that name.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; it must be at least 1. Leave it out to keep all.")
    found = load_own(_path(dataset)) if _is_path(dataset) else _load(dataset, folder)
    _check(dataset, found)
    return found if limit is None else _keep_first(found, limit)


def _is_path(dataset: str) -> bool:
    separators = {"/", os.sep}
    return any(s in dataset for s in separators) or Path(dataset).suffix.lower() in READERS


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"path {text!r}: {error} Write the whole path.") from error


def _load(name: str, folder: str | None) -> Imported:
    try:
        entry = DATASETS[name]
    except UnknownNameError as error:
        hint = f"Or give the path of your own file ({', '.join(READERS)})."
        raise UnknownNameError(f"{error} {hint}") from None
    variable = FOLDER_VARIABLES.get(name)
    place = folder or (os.environ.get(variable) if variable else None)
    return entry.load(_path(place) if place else None)


def _check(name: str, found: Imported) -> None:
    questions, answers, versions, known = found
    # The schema allows only slots 1 and 2, so two different slots are both of them.
    pairs = (
        answers.group_by("question_id")
        .agg(pl.len().alias("answers"), pl.col("slot").n_unique())
        .filter((pl.col("answers") == 2) & (pl.col("slot") == 2))
    )
    faults = {
        "questions without one answer in slot 1 and one in slot 2": questions.join(
            pairs, on="question_id", how="anti"
        )["question_id"],
        "answers to no question": answers.join(questions, on="question_id", how="anti")[
            "answer_id"
        ],
        "empty answers": _blank(answers, "answer"),
        "versions of no answer": versions.join(answers, on="answer_id", how="anti")["answer_id"],
        "facts about no answer": known.join(
            answers, left_on="sample", right_on="answer_id", how="anti"
        )["sample"],
        "empty versions": _blank(versions, "version"),
        "versions by no known perturbation": versions.filter(
            ~pl.col("perturbation").is_in(list(PERTURBATIONS))
        )["perturbation"],
    }
    problems = [
        f"{ids.len()} {what} ({', '.join(ids.head(SHOWN))})"
        for what, ids in faults.items()
        if ids.len()
    ]
    if questions.is_empty():
        problems.append("no questions")
    if problems:
        raise ValueError(
            f"dataset {name!r} has {'; '.join(problems)}. Correct its importer or files."
        )


def _blank(frame: pl.DataFrame, text: str) -> pl.Series:
    return frame.filter(pl.col(text).str.strip_chars() == "")["answer_id"]


def _keep_first(found: Imported, limit: int) -> Imported:
    """Take questions from the categories in turn, sorted by id, until there are enough."""
    questions = (
        found.questions.with_columns(turn=pl.int_range(pl.len()).over("category"))
        .sort("turn", "category", nulls_last=True, maintain_order=True)
        .head(limit)
    )
    answers = found.answers.join(questions, on="question_id", how="semi")
    return Imported(
        Questions.of(questions),
        Answers.of(answers),
        Versions.of(found.versions.join(answers, on="answer_id", how="semi")),
        Known.of(found.known.join(answers, left_on="sample", right_on="answer_id", how="semi")),
    )
