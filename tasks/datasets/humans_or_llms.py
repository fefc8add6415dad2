"""The public questions of "Humans or LLMs as the Judge?"."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from tasks.datasets import Imported, dataset
from tasks.kit.printable import several
from tasks.readers.bounded import Problems, clip, existing_file, json_lines, text_fault
from tasks.readers.samples import Sample, Version, imported

RAW = "raw.jsonl"
PERTURBED = {
    "factual_error": "factual_error",
    "gender": "gender_bias",
    "reference": "fake_reference",
    "rich_content": "rich_content",
}
"""Name of a perturbation in the study's files -> our name."""
FILES = [RAW, *(f"{name}.jsonl" for name in PERTURBED)]
LINK = "https://github.com/FreedomIntelligence/Humans_LLMs_Judgement_Bias"
HOW = (
    f"Get {', '.join(FILES)} from {LINK}, and give the folder that holds them as folder, or in "
    "the environment variable VOIRDIRE_HUMANS_OR_LLMS."
)
AGAIN = f"Get the file again from {LINK}."


def _text(value: object) -> object:
    if fault := text_fault(value):
        raise ValueError(fault.what)
    return value


Text = Annotated[str, BeforeValidator(_text)]


class Answer(BaseModel):
    """An answer of a row."""

    answer: Text
    answer_id: Text
    perturb: str | None = None
    """The study's name of the perturbation; empty or missing if there is none."""


class Both(BaseModel):
    """Both answers of a row."""

    answer1: Answer
    answer2: Answer


class Perturbed(BaseModel):
    """A row of a file of perturbed answers."""

    question_id: Text
    question: Text
    answers: Both

    @property
    def pair(self) -> tuple[Answer, Answer]:
        """The answers in the order of their slots."""
        return self.answers.answer1, self.answers.answer2

    @property
    def slots(self) -> list[int]:
        """The slots whose answer is perturbed."""
        return [slot for slot, answer in enumerate(self.pair, start=1) if answer.perturb]


class Raw(Perturbed):
    """A row of the file of originals."""

    model_id: Text
    level: Text


AnyRow = TypeVar("AnyRow", bound=Perturbed)


@dataset(source=f"arXiv 2402.10669; {LINK}", license="Apache-2.0")
def humans_or_llms(folder: Path | None) -> Imported:
    """Import 142 questions with four perturbations each from the study's files.

    https://github.com/FreedomIntelligence/Humans_LLMs_Judgement_Bias, Apache-2.0, of Chen et
    al. 2024, "Humans or LLMs as the Judge? A Study on Judgement Bias", arXiv 2402.10669. The
    folder holds ``raw.jsonl``, the questions with both answers, and a file per perturbation.
    One raw row (made up, in the shape of the file)::

        {"question_id": "Applying_99", "question": "How would you halve 2/3?",
         "prompt": "How would you halve 2/3? Your answer should be within 150 words.",
         "temperature": 0.5, "model_id": "gpt-4", "level": "Applying",
         "answers": {"answer1": {"answer": "Halve the numerator: 1/3.", "answer_id": "aB3dE5gH"},
                     "answer2": {"answer": "Multiply by 1/2: 1/3.", "answer_id": "Zy8wV6uT"}}}

    In the other files the id ends in ``-gender`` and the like, the level is missing, and the
    perturbed answer has ``"perturb": "gender"`` and a longer ``answer_id``: it is answer1 in
    some rows and answer2 in others. That answer is the target. The originals are those of
    ``raw.jsonl``; a row that shows another question or another unperturbed answer is refused
    (none does). Two questions (``Remembering_15`` and ``Remembering_27``) have identical
    answers; they are kept here and fail as pairs later. Line breaks and spaces around the
    perturbed texts are removed: 106 of the factual errors have them and no original does.
    """
    if folder is None:
        raise ValueError(f"humans_or_llms is not bundled. {HOW}")
    if missing := [file for file in FILES if not (folder / file).is_file()]:
        place = clip(str(folder))
        raise ValueError(f"humans_or_llms: no file {', '.join(missing)} in {place}. {HOW}")
    raw = _raw(folder / RAW)
    versions = {name: _versions(folder / f"{name}.jsonl", name, raw) for name in PERTURBED}
    return imported(
        "humans_or_llms",
        (_sample(row, [versions[name][key] for name in PERTURBED]) for key, row in raw.items()),
    )


def _sample(row: Raw, versions: list[Version]) -> Sample:
    first, second = row.pair
    return Sample(
        id=row.question_id,
        question=row.question,
        answers=(first.answer, second.answer),
        versions=tuple(versions),
        category=row.level,
        authors=(row.model_id, row.model_id),
    )


def _raw(path: Path) -> dict[str, Raw]:
    problems = Problems(path.name)
    rows: dict[str, Raw] = {}
    for where, row in _rows(path, Raw, problems):
        if row.question_id in rows:
            what = f"field 'question_id' {clip(row.question_id)} occurs twice; it must be unique"
            problems.add(where, what, AGAIN)
        rows[row.question_id] = row
    problems.check()
    if not rows:
        problems.refuse("", "has no questions", AGAIN)
    return rows


def _versions(path: Path, name: str, raw: dict[str, Raw]) -> dict[str, Version]:
    problems = Problems(path.name)
    versions: dict[str, Version] = {}
    for where, row in _rows(path, Perturbed, problems):
        question_id = row.question_id.removesuffix(f"-{name}")
        fault = _disagreement(row, name, raw.get(question_id))
        if fault or question_id in versions:
            problems.add(where, fault or "field 'question_id' occurs twice", AGAIN)
        else:
            slot = row.slots[0]
            # A judge could tell the perturbed answer by the line breaks around it.
            text = row.pair[slot - 1].answer.strip()
            versions[question_id] = Version(slot, PERTURBED[name], text)
    problems.check()
    if missing := [key for key in raw if key not in versions]:
        lacking = several(len(missing), "question")
        what = f"has no row for {lacking} of {RAW}, the first {clip(missing[0])}"
        problems.refuse("field 'question_id'", what, AGAIN)
    return versions


def _disagreement(row: Perturbed, name: str, raw: Raw | None) -> str | None:
    if raw is None or not row.question_id.endswith(f"-{name}"):
        wanted = f"it must be an id of {RAW} with '-{name}' after it"
        return f"field 'question_id' is {clip(row.question_id)}; {wanted}"
    given = [answer.perturb for answer in row.pair]
    if len(row.slots) != 1 or name not in given:
        return f"field 'perturb' is {clip(given)}; it must be {name!r} in one answer only"
    if row.question != raw.question:
        return f"field 'question' is {clip(row.question)}; {RAW} has {clip(raw.question)}"
    return _other_answers(row, raw)


def _other_answers(row: Perturbed, raw: Raw) -> str | None:
    for slot, (ours, original) in enumerate(zip(row.pair, raw.pair, strict=True), start=1):
        field = f"answers.answer{slot}"
        if ours.perturb and not ours.answer_id.startswith(original.answer_id):
            return (
                f"field '{field}.answer_id' is {clip(ours.answer_id)}; "
                f"it must begin with {clip(original.answer_id)}, its id in {RAW}"
            )
        if not ours.perturb and ours.answer != original.answer:
            return f"field '{field}.answer' is {clip(ours.answer)}; {RAW} has another answer"
    return None


def _rows(path: Path, model: type[AnyRow], problems: Problems) -> Iterator[tuple[str, AnyRow]]:
    for where, fields in json_lines(existing_file(path, problems), problems).rows:
        try:
            yield where, model.model_validate(fields)
        except ValidationError as error:
            for fault in error.errors():
                problems.add(where, _say(fault), AGAIN)


def _say(fault: ErrorDetails) -> str:
    field = ".".join(map(str, fault["loc"]))
    said = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "value_error":
        return f"field {field!r} {said}"
    if fault["type"] == "missing":
        return f"field {field!r} is missing; it is needed"
    return f"field {field!r} is {clip(fault['input'])}; {said}"
