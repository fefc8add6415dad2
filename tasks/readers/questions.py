"""Read the user's own questions: JSON Lines, CSV or Parquet."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from schemas.curation import VERDICTS
from tasks.datasets import DATASETS, Imported
from tasks.kit.catalogue import nearest
from tasks.perturbations import PERTURBATIONS
from tasks.readers.bounded import (
    SHOWN,
    Fault,
    Problems,
    Reader,
    Row,
    Table,
    clip,
    csv_table,
    json_lines,
    open_table,
    repeated_columns,
    text_fault,
)
from tasks.readers.parquet import parquet_table
from tasks.readers.samples import Sample, Version, imported

REQUIRED = ["question_id", "question", "anchor", "target"]
AUTHORS = ["author", "anchor_author", "target_author"]
SHARES = ["human_score", "label_chance"]
OPTIONAL = ["category", "reference", *AUTHORS, "label", *SHARES]
LABELS = {"question_id", "category", *AUTHORS}
"""Columns that are used in ids and tables, so they must be short and on one line."""
MAX_LABEL = 200
NAME = re.compile(r"[A-Za-z0-9_.-]+")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
READERS: dict[str, Reader] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".csv": csv_table,
    ".parquet": partial(parquet_table, numbers=SHARES),
}
"""Suffix -> what opens such a file."""


def load_own(path: Path) -> Imported:
    """Import the questions of a file, under the file's name.

    A row has ``question_id``, ``question``, ``anchor`` and ``target``; may have those of
    ``OPTIONAL``; and brings the perturbed target in a column named like the perturbation. Missing
    values are a null, an empty CSV cell or no field at all. ``author`` is that of both answers.

    Raises
    ------
    ValueError
        With the first problems, each naming file, line, field, value and next step.
    """
    problems = Problems(path.name)
    table = open_table(path, problems, READERS)
    dataset = _dataset_name(path.stem)
    if table.columns is not None:
        _check_columns(table.columns, problems)
        problems.check()
    samples = list(_samples(table, problems))
    problems.check()
    if not samples:
        problems.add("", "has no questions", "Write at least one.")
        problems.check()
    return imported(dataset, samples)


def _dataset_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(
            f"the dataset name {clip(name)} is not allowed: use only letters A to Z, digits, '_', "
            "'.' and '-'. Rename the file."
        )
    if name in DATASETS and name not in DATASETS.own:
        raise ValueError(
            f"the dataset name {name!r} belongs to a built-in dataset. Rename the file."
        )
    return name


def _check_columns(columns: list[str], problems: Problems) -> None:
    repeated_columns(columns, problems)
    meant = _check_unknown(Row("header", dict.fromkeys(columns)), problems, set())
    missing = [column for column in REQUIRED if column not in columns and column not in meant]
    if missing:
        what = f"missing column {', '.join(map(repr, missing))}; required: {', '.join(REQUIRED)}"
        problems.add("header", what, "Add it. Columns must be separated by commas.")


def _check_unknown(row: Row, problems: Problems, reported: set[str]) -> set[str]:
    """Report unknown fields, and return the missing fields that they probably mean."""
    allowed = [*REQUIRED, *OPTIONAL, *PERTURBATIONS]
    free = [field for field in allowed if field not in row.fields]
    new = [field for field in row.fields if field not in allowed and field not in reported]
    meant = {field: nearest(field[:MAX_LABEL], free) for field in new}
    reported.update(new)
    for field in new[:SHOWN]:
        near = meant[field]
        hint = f": did you mean {near!r}?" if near else f"; allowed: {', '.join(allowed)}."
        todo = "Rename it." if near in REQUIRED else "Rename or remove it."
        problems.add(row.where, f"unknown column {clip(field)}{hint}", todo)
    return {near for near in meant.values() if near}


def _samples(table: Table, problems: Problems) -> Iterator[Sample]:
    seen: dict[str, str] = {}
    reported: set[str] = set()
    meant: set[str] = set()
    for row in table.rows:
        if table.columns is None:
            meant |= _check_unknown(row, problems, reported)
        faults = list(_faults(row.fields, seen))
        for field, fault in faults:
            # A misspelt column is reported once, not again as a missing one.
            if field not in meant or field in row.fields:
                problems.add(row.where, f"field {field!r} {fault.what}", fault.todo)
        if problems.full:
            return
        if not faults:
            seen[row.fields["question_id"]] = row.where
            yield _sample(row.fields)


def _faults(fields: dict[str, Any], seen: dict[str, str]) -> Iterator[tuple[str, Fault]]:
    faulty = False
    for field in [*REQUIRED, *OPTIONAL, *PERTURBATIONS]:
        fault = _fault(field, fields.get(field))
        if fault:
            faulty = True
            yield field, fault
    if faulty:
        return
    key = fields["question_id"]
    if key in seen:
        what = f"is {clip(key)}, which {seen[key]} already has; it must be unique"
        yield "question_id", Fault(what, "Give one of the two another id, or delete it.")
    if fields["anchor"].strip() == fields["target"].strip():
        what = f"is {clip(fields['target'])}, the same as 'anchor'; the two must differ"
        yield "target", Fault(what, "Write another answer or leave the question out.")


def _fault(field: str, value: object) -> Fault | None:
    if value is None:
        missing = Fault("is missing, but required", "Add it.")
        return missing if field in REQUIRED else None
    if field == "label" and value not in VERDICTS:
        what = f"is {clip(value)}; it must be one of {', '.join(VERDICTS)}"
        return Fault(what, "Write which answer is right, or leave it out.")
    if field in SHARES:
        return _share_fault(field, value)
    if field not in LABELS:
        return text_fault(value)
    return text_fault(value, MAX_LABEL) or _label_fault(str(value))


def _share_fault(field: str, value: object) -> Fault | None:
    number = _number(value)
    if number is not None and 0 <= number <= 1 and (number or field != "label_chance"):
        return None
    least = "above 0" if field == "label_chance" else "0"
    what = f"is {clip(value)}; it must be a number from {least} to 1"
    return Fault(what, "Correct it, or leave it out.")


def _number(value: object) -> float | None:
    """Return a number, or a text that is one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _label_fault(value: str) -> Fault | None:
    if value == value.strip() and not CONTROL.search(value):
        return None
    what = f"is {clip(value)}; it must be one line without leading or trailing spaces"
    return Fault(what, "Remove line breaks, control characters, and leading and trailing spaces.")


def _sample(fields: dict[str, Any]) -> Sample:
    return Sample(
        id=fields["question_id"],
        question=fields["question"],
        answers=(fields["anchor"], fields["target"]),
        versions=tuple(
            Version(2, name, fields[name]) for name in PERTURBATIONS if fields.get(name)
        ),
        category=fields.get("category"),
        reference=fields.get("reference"),
        authors=(
            fields.get("anchor_author") or fields.get("author"),
            fields.get("target_author") or fields.get("author"),
        ),
        label=fields.get("label"),
        human_score=_number(fields.get("human_score")),
        label_chance=_number(fields.get("label_chance")),
    )
