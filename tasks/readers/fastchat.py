"""Questions and answers in FastChat's format (MT-Bench): what a file is, and a folder as data."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tasks.kit.printable import several
from tasks.readers.bounded import FileRow, Problems, Table, clip, json_lines

FileKind = Literal["questions", "answers", "reference answers"]
FIELDS: dict[FileKind, frozenset[str]] = {
    "questions": frozenset({"question_id", "turns"}),
    "answers": frozenset({"question_id", "model_id", "choices"}),
}
REFERENCE = "reference_answer"
"""Part of the path of a file of reference answers."""
LAYOUT = (
    "A folder with question.jsonl, two files of answers in model_answer/ and, if you have them, "
    "reference answers in reference_answer/ is a dataset"
)
MOST_FILES = 100


class FastchatFile(NamedTuple):
    """A file of questions or answers."""

    kind: FileKind
    path: Path
    rows: dict[str, FileRow]
    """Question -> its row."""

    @property
    def model(self) -> str:
        """Name of the model that wrote the answers."""
        return next((str(row.fields["model_id"]) for row in self.rows.values()), self.path.stem)


def described(path: Path) -> str:
    """Say what a file of questions or answers is and which command takes it; empty for others."""
    if path.is_dir():
        parts = parts_in(path)
        kinds = [part.kind for part in parts]
        if not kinds:
            return ""
        models = ", ".join(part.model for part in parts if part.kind == "answers") or "no model"
        questions = sum(len(part.rows) for part in parts if part.kind == "questions")
        what = (
            f"FastChat questions and answers, {several(questions, 'question')}, answers of {models}"
        )
    elif part := _part(path, path.parent.name):
        of = "" if part.kind == "questions" else f" of {part.model}"
        what = f"FastChat {part.kind}{of}, {several(len(part.rows), 'row')}"
    else:
        return ""
    return (
        f"{path.name}: {what}. There is nothing to measure in it. {LAYOUT}: `voirdire audit "
        "--dataset FOLDER/`."
    )


def fastchat_table(folder: Path, problems: Problems, turn: int = 1) -> Table:
    """Return a turn of a folder's questions with the answers of its two models.

    The model that comes first by name is the anchor. Rows of the second turn have the first one
    too, and are named after it: ``81/turn_2``.
    """
    parts = parts_in(folder)
    questions = [part for part in parts if part.kind == "questions"]
    answers = sorted((part for part in parts if part.kind == "answers"), key=lambda p: p.model)
    references = [part for part in parts if part.kind == "reference answers"]
    if len(questions) != 1 or len(answers) != 2:
        found = ", ".join(part.model for part in answers) or "none"
        what = (
            f"is a folder with {several(len(questions), 'file')} of questions and "
            f"{several(len(answers), 'file')} of answers ({found}); needed are one and two"
        )
        problems.refuse("", what, f"{LAYOUT}.")
    return Table(None, _rows(questions[0], answers, references, problems, turn))


def _rows(
    questions: FastchatFile,
    answers: list[FastchatFile],
    references: list[FastchatFile],
    problems: Problems,
    turn: int,
) -> Iterator[FileRow]:
    for key, row in questions.rows.items():
        if turn > 1 and nth(row.fields.get("turns"), turn) is None:
            continue
        sides = dict(zip(("anchor", "target"), answers, strict=True))
        fields = {
            "question_id": key if turn == 1 else f"{key}/turn_{turn}",
            "category": row.fields.get("category"),
            "turn": turn,
            **{f"{side}_author": part.model for side, part in sides.items()},
        }
        for number, name, text in turn_texts(row, sides, references, turn):
            # The columns of the turn before the judged one end in _1.
            fields[name if number == turn else f"{name}_1"] = text
            if text is None and name in sides:
                what = f"question {clip(key)} has no answer of {clip(sides[name].model)}"
                which = "" if turn == 1 else f" in turn {number}"
                problems.add(row.where, f"{what}{which}", f"Add it to {sides[name].path.name}.")
        yield FileRow(
            row.where, {name: value for name, value in fields.items() if value is not None}
        )


def parts_in(folder: Path) -> list[FastchatFile]:
    """Return the files of questions and answers in a folder."""
    files = sorted(folder.rglob("*.jsonl"))[:MOST_FILES]
    found = (_part(file, str(file.relative_to(folder))) for file in files)
    return [part for part in found if part is not None]


def _part(path: Path, place: str) -> FastchatFile | None:
    """Read a file of questions or answers; None for any other file."""
    if path.suffix.lower() not in {".jsonl", ".ndjson"} or not path.is_file():
        return None
    problems = Problems(path.name)
    rows: dict[str, FileRow] = {}
    kind: FileKind | None = None
    for row in json_lines(path, problems).rows:
        if kind is None:
            kind = next((k for k, some in FIELDS.items() if some <= row.fields.keys()), None)
            if kind is None:
                return None
        if FIELDS[kind] <= row.fields.keys():
            rows[str(row.fields["question_id"])] = row
        else:
            missing = sorted(FIELDS[kind] - row.fields.keys())
            problems.add(row.where, f"has no field {', '.join(missing)}", "Add it.")
    if kind is None:
        return None
    problems.check()
    is_reference = kind == "answers" and (REFERENCE in place or REFERENCE in path.name)
    return FastchatFile("reference answers" if is_reference else kind, path, rows)


def turn_texts(
    row: FileRow,
    sides: Mapping[str, FastchatFile | None],
    references: Iterable[FastchatFile],
    turn: int,
) -> Iterator[tuple[int, str, Any]]:
    """Yield what a turn of a question consists of, and then the first turn before a later one.

    That is the number of the turn, the name of the text (``question``, a side, ``reference``) and
    the text, None if there is none.
    """
    key = str(row.fields["question_id"])
    for number in (turn, *([1] if turn > 1 else [])):
        yield number, "question", nth(row.fields.get("turns"), number)
        for side, part in sides.items():
            yield number, side, _answer(part.rows.get(key), number) if part else None
        yield number, "reference", _reference(row, references, number)


def _answer(row: FileRow | None, turn: int) -> Any:
    choice = nth(row.fields["choices"], 1) if row else None
    return nth(choice.get("turns"), turn) if isinstance(choice, dict) else None


def _reference(row: FileRow, references: Iterable[FastchatFile], turn: int) -> Any:
    key = str(row.fields["question_id"])
    given = [_answer(part.rows.get(key), turn) for part in references]
    written = nth(row.fields.get("reference"), turn)
    # MT-Bench writes "" for a turn without a reference.
    return next((text for text in (*given, written) if text not in (None, "")), None)


def nth(values: Any, number: int) -> Any:
    """Return an element of a list, counted from 1; None if there is none."""
    return values[number - 1] if isinstance(values, list) and len(values) >= number else None
