"""Samples, the common form of all datasets, with labels of people, and the frames made of them."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from schemas.curation import Answers, Known, Questions, Versions
from tasks.agreement.pass_words import grade_of, number_of
from tasks.datasets import DATASETS, Imported
from tasks.judging.vote_wording import OTHER
from tasks.kit.printable import joined_few
from tasks.readers.bounded import SHOWN, Fault, FileRow, Problems, clip
from tasks.readers.expressions import with_point

Record = tuple[object, ...]
NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""Name of a dataset."""
END = re.compile(r"[^\W_]*$")
"""The last word of a column's name."""
FIRST = re.compile(
    r"(.*(?:answer|response|output|completion|reply|candidate|generation).*?)(a|1|first)",
    re.IGNORECASE,
)
"""A column of the first of two answers; what follows the stem tells them apart."""
SECOND = {"a": "b", "1": "2", "first": "second"}
CHOSEN = ("chosen", "rejected")
QUESTIONS = ("question", "prompt", "instruction", "input", "query", "task", "user")
"""Usual names of the column with the question."""

HUMAN = "human_"
"""Begins columns with people's grades: the columns ``PEOPLE``, or ``human_CRITERION``."""
LABEL = "human_label"
PEOPLE = [LABEL, "human_grade"]
SHARES = ["human_score", "label_chance"]
MOST_OWN = 20
"""Most of the user's own columns that an error names."""
MAP_IT = "map it (--map, or `columns` of the study)"
COMPARED = {"label", "human_score"}
"""Columns with which people compare two answers."""
OF_ONE = "what people say of one is human_label (pass or fail), human_grade or human_CRITERION"
KEPT = {"question", "anchor", "target", "answer"}
"""Columns that a file cannot do without."""
MOST_SHOWN = 10
"""Most labels that an error lists."""
LINE = re.compile(r"line (\d+)")
LONGEST_SCRIPT = 1500
"""Most characters of a command that an error has."""


def some_columns(columns: Sequence[str], is_known: Callable[[str], bool]) -> str:
    """Name columns of a file in an error: the user's own, and the first of those that are known."""
    own = [name for name in columns if not is_known(name)][:MOST_OWN]
    known = [name for name in columns if is_known(name)]
    return ", ".join(map(clip, [*own, *known[: max(0, SHOWN - len(own))]]))


def side_named(label: Any, paths: Mapping[str, str]) -> Any:
    """Return the side whose column a label names, wholly or by its end; else the label.

    Of the columns ``answer_a`` and ``answer_b``, that is ``A`` or ``answer_a``. ``paths`` are the
    columns of the sides, if they have other names.
    """
    if label is None:
        return None
    text = str(label).strip().casefold()
    columns = {side: paths.get(side, side).casefold() for side in OTHER}
    sides = [
        side
        for side, column in columns.items()
        if text in {column, *END.findall(column)[:1]} - {""}
    ]
    return sides[0] if len(sides) == 1 else label


def two_answers(columns: Sequence[str]) -> tuple[str, str] | None:
    """Say which columns seem to hold two answers to each question, and which mapping reads them.

    Such are ``answer_a`` and ``answer_b``. None if there are none, or a column has a name of ours.
    """
    by_name = {name.casefold(): name for name in columns}
    if {"answer", "anchor", "target", "question_1"} & {*by_name}:
        return None
    firsts = [found for found in map(FIRST.fullmatch, by_name) if found]
    pairs = [(found[0], f"{found[1]}{SECOND[found[2]]}") for found in firsts]
    both = next((pair for pair in [*pairs, CHOSEN] if {*pair} <= {*by_name}), None)
    if both is None:
        return None
    one, two = (by_name[name] for name in both)
    question = next((by_name[name] for name in QUESTIONS if name in by_name), "COLUMN")
    named = {"question": question, "anchor": one, "target": two}
    mapping = ",".join(f"{name}={column}" for name, column in named.items() if name != column)
    what = f"{clip(one)} and {clip(two)} seem to be two answers, which are called anchor and target"
    todo = (
        f"Map them, as in --map {shlex.quote(mapping)} (`columns` of the study); then columns that "
        "voirdire does not know are left out."
    )
    return what, todo


def unknown_columns(
    meant: Mapping[str, str | None], allowed: Sequence[str], *, alone: bool, split: bool
) -> Iterator[Fault]:
    """Yield what is wrong with columns that voirdire does not know, and what to do.

    ``meant`` has the column that each probably means, or none; ``alone`` tells whether each
    question has one answer, ``split`` whether results are split by a column already.
    """
    compared = [name for name in meant if alone and name in COMPARED]
    for name in compared:
        what = f"column {clip(name)} compares two answers, and each question has one here"
        yield Fault(what, f"Rename it: {OF_ONE}.")
    alike = {name: near for name, near in meant.items() if near and name not in compared}
    for name, near in [*alike.items()][:SHOWN]:
        remove = "" if near in KEPT else ", remove it"
        what = f"unknown column {clip(name)}: did you mean {near!r}?"
        yield Fault(what, f"Rename it{remove}, or {MAP_IT}.")
    strange = [clip(name) for name in meant if name not in {*compared, *alike}]
    known = f"allowed: {', '.join(allowed)}."
    if len(strange) == 1:
        by = "" if split else ", split the results by it (--by, or `category_column` of the study)"
        todo = f"Rename it, remove it{by}, or {MAP_IT}."
        yield Fault(f"unknown column {strange[0]}; {known}", todo)
    elif strange:
        yield Fault(
            f"unknown columns {', '.join(strange[:MOST_OWN])}; {known}",
            "Rename them, remove them, or map those that are needed, as in --map question=COLUMN "
            "(`columns` of the study): then other columns are left out."
            + ("" if split else " One of them may split the results: --by COLUMN."),
        )


class Version(NamedTuple):
    """A perturbed version of one of the two answers."""

    slot: int
    perturbation: str
    text: str


class Sample(NamedTuple):
    """A question with its answers and the versions that come with them."""

    id: str
    question: str
    answers: tuple[str | None, str]
    """Anchor and target; no anchor if the question has one answer."""
    versions: tuple[Version, ...] = ()
    category: str | None = None
    reference: str | None = None
    authors: tuple[str | None, str | None] = (None, None)
    label: str | None = None
    """The correct verdict, if the second answer is the target."""
    human_score: float | None = None
    """People's score of the second answer, 0 to 1."""
    label_chance: float | None = None
    context: str | None = None
    human_values: str | None = None
    """People's grades of the second answer, as JSON."""
    group: str | None = None
    """Category by another column than ``category``."""
    turn: str | None = None

    def known(self, slot: int) -> Record:
        """Return what is known of the pair in which the answer of this slot is the target."""
        authors, label, score, said = self.authors, self.label, self.human_score, self.human_values
        if slot == 1:
            authors, label = authors[::-1], OTHER.get(label or "", label)
            score, said = None if score is None else 1 - score, None
        return (*authors, label, score, self.label_chance, said, self.group, self.turn)


def dataset_name(name: str) -> str:
    """Return the name of a dataset, which is its file's name.

    Raise ValueError if it is not allowed, or names a built-in dataset.
    """
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


def imported(dataset: str, samples: Iterable[Sample]) -> Imported:
    """Return the frames of ``samples``, each id under the dataset's name."""
    questions: list[Record] = []
    answers: list[Record] = []
    versions: list[Record] = []
    known: list[Record] = []
    for sample in samples:
        key = f"{dataset}/{sample.id}"
        about = (sample.question, sample.reference, sample.context)
        questions.append((key, dataset, sample.category, *about))
        there = [(slot, text) for slot, text in enumerate(sample.answers, start=1) if text]
        answers.extend(
            (f"{key}/a{slot}", key, slot, sample.authors[slot - 1], text) for slot, text in there
        )
        known.extend((f"{key}/a{slot}", *sample.known(slot)) for slot, _ in there)
        versions.extend((f"{key}/a{v.slot}", v.perturbation, v.text) for v in sample.versions)
    return Imported(
        Questions.of(_frame(Questions.dtypes(), questions)),
        Answers.of(_frame(Answers.dtypes(), answers)),
        Versions.of(_frame(Versions.dtypes(), versions)),
        Known.of(_frame(Known.dtypes(), known)),
    )


def _frame(schema: dict[str, pl.DataType], rows: list[Record]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


class PassLabel:
    """Reads a label of the user's own as a pass, and the other labels of people as fails."""

    def __init__(self, label: str) -> None:
        self.label = label.strip()
        self.seen: dict[str, None] = {}
        """The different labels of people, in order."""

    def read(self, rows: Iterable[FileRow]) -> Iterator[FileRow]:
        """Yield the rows with pass or fail for each label; numbers in other columns are grades."""
        for row in rows:
            said = {name: self._verdict(name, value) for name, value in row.fields.items()}
            yield FileRow(row.where, said)

    def check(self, problems: Problems) -> None:
        """Report a label that nobody gave: everything would be a fail."""
        if not self.seen or any(map(self._passes, self.seen)):
            return
        labels = joined_few([clip(label)[1:-1] for label in self.seen], MOST_SHOWN)
        what = f"no label of people is {clip(self.label)}; the labels are: {labels}"
        problems.add("", what, "Name the one that counts as a pass with --pass.")

    def _verdict(self, name: str, value: object) -> object:
        if value is None or not is_of_people(name):
            return value
        if name != LABEL and number_of(value) is not None:
            return value
        text = value.strip() if isinstance(value, str) else json.dumps(value)
        self.seen[text] = None
        return "pass" if self._passes(text) else "fail"

    def _passes(self, text: str) -> bool:
        return text.lower() == self.label.lower()


OUT_OF = re.compile(r"([0-9]+(?:[.][0-9]+)?)\s*(?:/|of|out of)\s*[0-9]+(?:[.][0-9]+)?")
"""A grade with its scale, such as 8/10."""


def number_as_text(value: object) -> object:
    """Return a number or truth value of JSON as text; anything else as it is."""
    return f"{value:g}" if isinstance(value, int | float) else value


def is_of_people(name: str) -> bool:
    """Tell whether a column holds what people say of an answer."""
    return name.startswith(HUMAN) and name not in SHARES


def fault_of_label(value: object) -> Fault | None:
    """Return what is wrong with a label of people that is neither a grade nor pass or fail."""
    if grade_of(value) is not None:
        return None
    what = f"is {clip(value)}; it must be a grade, or a word such as pass or fail"
    if number := with_point(value):
        return Fault(f"{what}. It has a decimal comma", f"Write {number:.40}.")
    if isinstance(value, str) and (graded := OUT_OF.fullmatch(value.strip())):
        return Fault(what, f"Write the number alone: {graded[1]:.40}.")
    todo = (
        "Write a number, pass or fail, or leave it out; --pass LABEL (`pass_label` of the study) "
        "names a word of your own that passes, and the others fail."
    )
    return Fault(what, todo)


def fault_of_share(field: str, value: object) -> Fault | None:
    """Return what is wrong with a score, or with the probability of having been selected."""
    number = number_of(value)
    if number is not None and 0 <= number <= 1 and (number or field != "label_chance"):
        return None
    least = "above 0" if field == "label_chance" else "0"
    what = f"is {clip(value)}; it must be a number from {least} to 1"
    return Fault(what, "Correct it, or leave it out.")


def human_values(fields: Mapping[str, Any]) -> str | None:
    """Return what people say of an answer, as JSON: criterion -> grade."""
    grades = {
        name.removeprefix(HUMAN): grade_of(value)
        for name, value in fields.items()
        if is_of_people(name) and value is not None
    }
    return json.dumps(grades) if grades else None


class SameAnswers:
    """Rows of a file whose two answers are equal: one problem, however many they are."""

    def __init__(self, called: Mapping[str, str], *, one_file: bool) -> None:
        self._anchor, self._target = (called.get(name, name) for name in ("anchor", "target"))
        self._places: list[str] = []
        self._lines: list[int] = []
        self._first = FileRow("", {})
        self._is_last = False
        self._whole_lines = one_file

    def add(self, row: FileRow, *, named: bool) -> bool:
        """Keep the place of the next row if its answers are equal; tell whether they are.

        ``named`` says whether it has an id of its own.
        """
        line = LINE.fullmatch(row.where)
        place = int(line[1]) if line else 0
        # Texts of CSV may have several lines.
        if not line or (self._is_last and place != self._lines[-1] + 1):
            self._whole_lines = False
        self._is_last = row.fields["anchor"].strip() == row.fields["target"].strip()
        if self._is_last:
            self._first = self._first if self._places else row
            key = f" ({clip(row.fields['question_id'])})" if named else ""
            self._places.append(f"{row.where}{key}")
            self._lines.append(place)
        return self._is_last

    def check(self, problems: Problems) -> None:
        """Report the rows."""
        places = self._places
        if len(places) == 1:
            given = clip(self._first.fields["target"])
            what = f"field {self._target!r} is {given}, the same as {self._anchor!r}"
            todo = "Write another answer or leave the question out."
            problems.add(self._first.where, f"{what}; the two must differ", todo)
        elif places:
            what = (
                f"{self._target!r} is the same as {self._anchor!r} in {len(places)} rows, which "
                f"leaves nothing to compare: {joined_few(places, MOST_SHOWN)}"
            )
            todo = f"Write other answers, or delete these rows{self._command()}."
            problems.add("", what, todo)

    def _command(self) -> str:
        ends = ["d"] * (len(self._lines) - 1) + [",$d" if self._is_last else "d"]
        script = ";".join(f"{line}{end}" for line, end in zip(self._lines, ends, strict=True))
        if not self._whole_lines or len(script) > LONGEST_SCRIPT:
            return ""
        return f": `sed '{script}' FILE > NEW_FILE` writes the others"
