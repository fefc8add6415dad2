"""Curate: import questions with their answers, from the catalogue or the user's file."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from schemas.curation import Answers, Known, Questions, Versions
from tasks.datasets import DATASETS, Imported
from tasks.judging.turns import PAIR_TURN_PLACES, SINGLE_TURN_PLACES, TURN
from tasks.kit.printable import several
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import prompt_of
from tasks.readers.questions import READERS, load_own
from tasks.validation.unknown_names import UnknownNameError

FOLDER_VARIABLES = {"humans_or_llms": "VOIRDIRE_HUMANS_OR_LLMS"}
"""Dataset -> environment variable with its folder, if none is given."""
SHOWN = 3
EARLIER_TURN = [
    f"{{{place}}}"
    for place in dict.fromkeys((*SINGLE_TURN_PLACES, *PAIR_TURN_PLACES))
    if place != "reference_1"
]
"""Placeholders of judge prompts that need the turn before the judged one."""
MADE = {"human", "anchor_length", "target_length"}
"""Columns of the vote log that an audit or people in the booth make, not a file of questions."""


def import_dataset(
    dataset: str,
    folder: str | None = None,
    limit: int | None = None,
    category_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    turn: int = 1,
    pass_label: str | None = None,
) -> Imported:
    """Import a dataset of the catalogue, or the user's file if ``dataset`` is a path.

    Parameters
    ----------
    dataset
        A name of the catalogue, or a path: it has a slash or one of the known suffixes.
    folder
        Folder of a dataset that is not bundled; ignored by others.
    limit
        Keep at most this many questions, taken from the categories in turn.
    category_column
        Column of the user's file whose values are the categories of results.
    columns
        Columns of voirdire, each with the column of the user's file that it is called there.
    turn
        Turn of the conversations in a folder in FastChat's format.
    pass_label
        Label of people in the user's file that is a pass; the others are fails.

    Raises
    ------
    ValueError
        If a file is missing or invalid, or some questions have two answers and others one.
    LookupError
        If no dataset has that name.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; it must be at least 1. Leave it out to keep all.")
    if is_data_file(dataset):
        found = load_own(_path(dataset), category_column, columns, turn, pass_label)
    elif category_column is None and not columns and pass_label is None:
        found = _load(dataset, folder)
    else:
        if category_column is not None:
            given = f"category_column is {category_column!r:.80}"
        elif columns:
            given = f"--map is {'='.join(next(iter(columns.items())))!r:.80}"
        else:
            given = f"pass_label is {pass_label!r:.80}"
        file = _own_file(dataset, given)
        found = load_own(file, category_column, columns, turn, pass_label)
    _check(dataset, found)
    return found if limit is None else _keep_first(found, limit)


def require_shown(dataset: str, found: Imported, prompts: Sequence[str]) -> None:
    """Reject judge prompts that show fields which the questions do not have.

    Raise ValueError before anything is asked, with the first questions and the next step.
    """
    questions, answers = found.questions, found.answers
    compared = answers.filter(slot=1)
    turn = pl.col("context").str.starts_with(TURN)
    two_turns = questions.filter(turn)
    has = {
        "{answer_a} and {answer_b}": questions.join(compared, on="question_id", how="semi"),
        "{reference}": questions.filter(pl.col("reference").is_not_null()),
        "{context}": questions.filter(~turn),
        **dict.fromkeys(EARLIER_TURN, two_turns),
        "{reference_1}": two_turns.filter(~pl.col("context").str.ends_with(", null]}")),
    }
    one_turn = (
        "Choose a judge prompt for one turn, or add columns {} with the turn before the judged one."
    )
    both = "'question_1', 'anchor_1' and 'target_1' (of single answers 'question_1' and 'answer_1')"
    steps = {
        "{answer_a} and {answer_b}": "Choose a judge prompt that shows one answer, such as "
        "single_v1 or binary_v1, or add a column 'anchor' with another answer to each question.",
        "{reference}": "Choose another judge prompt, or add a column 'reference'.",
        "{context}": "Choose another judge prompt, or add a column 'context'.",
        **dict.fromkeys(EARLIER_TURN, one_turn.format(both)),
        "{reference_1}": one_turn.format("'reference_1'"),
    }
    for name in prompts:
        places = prompt_of(name).places
        for shown, there in has.items():
            lacking = questions.join(there, on="question_id", how="anti")["question_id"]
            if lacking.len() and shown.split("}")[0][1:] in places:
                some = ", ".join(lacking.head(SHOWN))
                partly = lacking.len() < questions.height and "reference" in shown
                raise ValueError(
                    f"the judge prompt {name!r} shows {shown}, which {lacking.len()} of "
                    f"{several(questions.height, 'question')} of dataset {dataset!r} "
                    f"{'does' if lacking.len() == 1 else 'do'} not have ({some}). "
                    f"{steps[shown]}{_only_these(dataset) if partly else ''}"
                )


def _only_these(dataset: str) -> str:
    """Say how to audit only questions that have a reference answer."""
    if is_data_file(dataset) and _path(dataset).is_dir():
        data = f"a copy of {dataset} whose question.jsonl has"
    else:
        data = "a file with"
    return f" To audit the questions that have one, name {data} only those."


def cannot_compute(dataset: str, found: Imported) -> str:
    """Say what cannot be computed from the columns of the user's own pairs, and what is missing.

    Empty for other datasets, whose columns nobody can add to, and for single answers.
    """
    own = is_data_file(dataset) or dataset in DATASETS.own
    if not own or found.answers.filter(slot=1).is_empty():
        return ""
    # Imports all statistics.
    from tasks.statistics import OWN_AUTHOR, filled_columns, lacking_line

    # No column shows whether a judge is also an author.
    known = filled_columns(found.questions, found.known) | MADE | {OWN_AUTHOR}
    lines = [lacking_line(known, "Cannot be computed from these columns")]
    flaws = [name for name, entry in PERTURBATIONS.items() if entry.kind == "detract"]
    if not found.versions["perturbation"].is_in(flaws).any():
        lines.append(f"Discernment needs the column {' or '.join(sorted(flaws))}.")
    return " ".join(filter(None, lines))


def _own_file(dataset: str, given: str) -> Path:
    file = DATASETS.own.get(dataset)
    if file is None or file.suffix.lower() not in READERS:
        raise ValueError(
            f"{given}, but the dataset {dataset!r} has columns and categories of its own. Leave it "
            "out, or give the path of your own file as the dataset."
        )
    return file


def categories_of(dataset: Imported) -> pl.DataFrame:
    """Return the ``category`` of each ``question_id``, by the study's column if it names one."""
    chosen = (
        dataset.known.filter(pl.col("category").is_not_null())
        .join(dataset.answers, left_on="sample", right_on="answer_id")
        .select("question_id", chosen="category")
        .unique("question_id")
    )
    return dataset.questions.join(chosen, on="question_id", how="left").select(
        "question_id", category=pl.coalesce("chosen", "category")
    )


def is_data_file(dataset: str) -> bool:
    """Tell whether a file or folder is meant; one that exists is, unless a dataset is so named."""
    separators = {"/", os.sep}
    written = any(s in dataset for s in separators) or Path(dataset).suffix.lower() in READERS
    return written or (dataset not in DATASETS and Path(dataset).exists())


def file_of(dataset: str) -> str:
    """Name the file of a dataset, for messages; a bundled one by its name."""
    file = _path(dataset) if is_data_file(dataset) else DATASETS.own.get(dataset)
    return file.name if file else f"dataset {dataset}"


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
    path = _path(place) if place else None
    with DATASETS.running(name):
        return entry.load(path)


def _check(name: str, found: Imported) -> None:
    questions, answers, versions, known = found
    # The schema allows only slots 1 and 2, so two different slots are both of them.
    slots = answers.group_by("question_id").agg(
        pl.len().alias("answers"), pl.col("slot").n_unique(), last=pl.col("slot").max()
    )
    both = slots.filter((pl.col("answers") == 2) & (pl.col("slot") == 2))
    alone = slots.filter((pl.col("answers") == 1) & (pl.col("last") == 2))
    needed, what = both, "question{} without one answer in slot 1 and one in slot 2"
    if both.is_empty() and not alone.is_empty():
        needed, what = alone, "question{} without one answer, in slot 2"
    faults = {
        what: questions.join(needed, on="question_id", how="anti")["question_id"],
        "answer{} to no question": answers.join(questions, on="question_id", how="anti")[
            "answer_id"
        ],
        "empty answer{}": _blank(answers, "answer"),
        "version{} of no answer": versions.join(answers, on="answer_id", how="anti")["answer_id"],
        "fact{} about no answer": known.join(
            answers, left_on="sample", right_on="answer_id", how="anti"
        )["sample"],
        "empty version{}": _blank(versions, "version"),
        "version{} by no known perturbation": versions.filter(
            ~pl.col("perturbation").is_in(list(PERTURBATIONS))
        )["perturbation"],
    }
    problems = [
        f"{ids.len()} {what.format('' if ids.len() == 1 else 's')} ({', '.join(ids.head(SHOWN))})"
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
