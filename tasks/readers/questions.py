"""Read the user's own questions: JSON Lines, CSV or Parquet."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from schemas.curation import VERDICTS
from schemas.keys import content_key
from tasks.agreement.pass_words import number_of
from tasks.datasets import Imported
from tasks.judging.turns import TURN, as_context
from tasks.perturbations import PERTURBATIONS
from tasks.readers.bounded import (
    SHOWN,
    Fault,
    FileRow,
    Problems,
    Reader,
    Table,
    clip,
    csv_table,
    json_lines,
    line_fault,
    open_table,
    reads_gzip,
    repeated_columns,
    text_fault,
    with_columns,
)
from tasks.readers.fastchat import fastchat_table
from tasks.readers.parquet import parquet_table
from tasks.readers.samples import (
    HUMAN,
    MAP_IT,
    PEOPLE,
    SHARES,
    PassLabel,
    SameAnswers,
    Sample,
    Version,
    dataset_name,
    fault_of_label,
    fault_of_share,
    human_values,
    imported,
    is_of_people,
    number_as_text,
    side_named,
    some_columns,
    two_answers,
    unknown_columns,
)
from tasks.validation.unknown_names import nearest

REQUIRED = ["question", "anchor", "target"]
ANSWER = "answer"
ALONE = ["question", "target"]
"""Required if each question has one answer, also called ``answer``."""
AUTHORS = ["author", "anchor_author", "target_author"]
EARLIER = ["question_1", "anchor_1", "target_1"]
"""Columns of the turn before; with one of them, all are required."""
BEFORE = [*EARLIER, "reference_1"]
ALIASES = {ANSWER: "target", "answer_1": "target_1"}
OPTIONAL = ["question_id", "category", "turn", "reference", "context", *BEFORE, *AUTHORS, "label"]
OPTIONAL += SHARES
OF_PAIRS = {"anchor", "anchor_1", "anchor_author", "target_author", "label", "human_score"}
"""Columns that mean nothing if a question has one answer."""
GROUP = "\0group"
"""Where the values of the column are put that the categories are taken from."""
LABELS = {"question_id", "category", "turn", GROUP, *AUTHORS}
"""Columns that are used in ids and tables, so they must be short and on one line."""
MAX_LABEL, ID_DIGITS = 200, 16
CORRECT = "Correct the name."
BY = "--by (`category_column` of the study)"
MAPPING = "the mapping (--map, or `columns` of the study)"
SEPARATED = "Columns are separated by commas, semicolons or tabs."
READERS: dict[str, Reader] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".csv": csv_table,
    ".parquet": partial(parquet_table, numbers=[*SHARES, "turn"], prefixes=(HUMAN,)),
}
"""Suffix -> what opens such a file."""


@reads_gzip()
def load_own(
    path: Path,
    category_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    turn: int = 1,
    pass_label: str | None = None,
) -> Imported:
    """Import the questions of a file, or of a folder in FastChat's format, under its name.

    A row has ``question``, ``anchor`` and ``target``; may have columns of ``OPTIONAL``; and has the
    perturbed target in a column named like the perturbation. Missing values are a null, an empty
    CSV cell or no field at all. ``author`` is the author of both answers. Without ``anchor``, each
    question has one answer, ``answer`` or ``target``. A row without ``question_id`` gets an id made
    of its texts. ``human_label``, ``human_grade`` and ``human_CRITERION`` hold what people say of
    the target: a grade, pass or fail, or ``pass_label`` and others, which fail. Categories are the
    values of ``category_column`` or, without it, of ``category``, else of ``turn``.

    ``columns`` maps columns to the names that they have in the file, in JSON also to dotted paths;
    then other columns of the file are left out.

    A ValueError gives the first problems, each naming file, line, field, value and next step.
    """
    problems = Problems(path.name)
    names = _Names(columns or {}, category_column)
    names.check(problems)
    readers = READERS | ({".parquet": names.parquet_table} if columns else {})
    of_folder = partial(fastchat_table, turn=turn)
    table = (of_folder if path.is_dir() else partial(open_table, readers=readers))(path, problems)
    problems.check()
    if category_column is not None:
        table, given = with_columns(table)
        if given and category_column not in {*given, *(columns or {}).values()}:
            shown = some_columns(given, _is_known)
            what = f"has no column {clip(category_column)}, which {BY} names"
            problems.refuse("header" if table.columns else "", f"{what}; it has {shown}", CORRECT)
    if columns:
        table = names.applied(table, problems)
        category_column = names.renamed(category_column)
    # Categories stand apart, where they do not collide with a column of that name.
    column = category_column
    kept = table.columns and [name for name in table.columns if name != column or _is_known(name)]
    labels = PassLabel(pass_label) if pass_label else None
    rows = labels.read(table.rows) if labels else table.rows
    table = Table(kept, (_with_group(row, column) for row in rows))
    dataset = dataset_name(path.stem)
    form, table = _form_of(table, problems)
    # Errors call a column as the file does.
    paths = columns or {}
    called = {name: paths.get(other, other) for name, other in form.called.items()}
    form = form._replace(called={**paths, GROUP: category_column or GROUP, **called})
    if table.columns is not None:
        _check_columns(table.columns, problems, form)
        problems.check()
    same = SameAnswers(form.called, one_file=not path.is_dir())
    samples = list(_samples(table, problems, form, same))
    same.check(problems)
    if labels:
        labels.check(problems)
    problems.check()
    if not samples:
        problems.refuse("", "has no questions", "Write at least one.")
    return imported(dataset, samples)


class _Names(NamedTuple):
    """Which column of the user's file, or path in JSON, each column is taken from."""

    paths: Mapping[str, str]
    category: str | None
    """Column that categories are taken from, as the file names it."""

    def check(self, problems: Problems) -> None:
        """Report columns that do not exist, and columns of the file that are named twice."""
        allowed = [*PAIRED.allowed, ANSWER, *PEOPLE]
        for name in self.paths:
            if not _is_known(name):
                near = nearest(name[:MAX_LABEL], allowed)
                hint = f"did you mean {near!r}?" if near else f"allowed: {', '.join(allowed)}."
                what = f"{MAPPING} names {clip(name)}, which voirdire does not have; {hint}"
                problems.add("", what, CORRECT)
        for path, name in {path: name for name, path in self.paths.items()}.items():
            both = [other for other, same in self.paths.items() if same == path]
            if len(both) > 1:
                what = f"{MAPPING} uses {clip(path)} for {' and '.join(map(clip, both))}"
                problems.add("", what, f"Name another column for {clip(name)}.")
        problems.check()

    def renamed(self, column: str | None) -> str | None:
        """Return the name that a column of the file gets."""
        return next((name for name, path in self.paths.items() if path == column), column)

    def parquet_table(self, path: Path, problems: Problems) -> Table:
        """Open a Parquet file, only the columns that are used."""
        may = {*LABELS, *SHARES}
        numbers = {
            *(path for name, path in self.paths.items() if name in may or name.startswith(HUMAN)),
            *may.difference(self.paths),
            *([self.category] if self.category else []),
        }
        return parquet_table(path, problems, numbers, (HUMAN,), self.is_used)

    def is_used(self, column: str) -> bool:
        """Tell whether a column of the file is used: mapped, or called as voirdire calls it."""
        if column in {self.category, *self.paths.values()}:
            return True
        # Another answer beside those that are mapped.
        beside = column == ANSWER and {"target", "anchor"} & {*self.paths}
        return column not in self.paths and _is_known(column) and not beside

    def applied(self, table: Table, problems: Problems) -> Table:
        """Return the file under the names of voirdire, without columns that are not used."""
        rows, columns = table.rows, table.columns
        if columns is None:
            held = list(rows)
            problems.check()
            rows = iter(held)
            found = {p for p in self.paths.values() for row in held if _at(row.fields, p)}
            there = sorted({name for row in held[:SHOWN] for name in row.fields})
        else:
            there, found = columns, {*columns}
            repeated_columns(columns, problems)
        for name, path in self.paths.items():
            if path not in found:
                shown = ", ".join(map(clip, there))
                what = f"has no column {clip(path)}, for {name!r} by {MAPPING}; it has {shown}"
                problems.add("", f"{what:.900}", CORRECT)
        problems.check()
        if columns is not None:
            kept = [name for name in columns if self.is_used(name)]
            columns = [str(self.renamed(name)) for name in kept]
        return Table(columns, (FileRow(row.where, self.of_row(row.fields)) for row in rows))

    def of_row(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a row under the names of voirdire."""
        taken = {*self.paths.values()}
        kept = {k: v for k, v in fields.items() if k not in taken and self.is_used(k)}
        mapped = {name: _at(fields, path) for name, path in self.paths.items()}
        mapped["label"] = side_named(mapped.get("label"), self.paths)
        kept |= {name: value for name, value in mapped.items() if value is not None}
        return {
            k: str(v) if k in LABELS and type(v) in {int, float} else v for k, v in kept.items()
        }


def _at(fields: dict[str, Any], path: str) -> Any:
    """Return the field of this name, or the one at a dotted path in it; None without one."""
    found: Any = fields
    for part in [path] if path in fields else path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


class _Form(NamedTuple):
    """The columns of a file: with two answers to each question, or one."""

    required: list[str]
    optional: list[str]
    called: dict[str, str] = {}
    """Columns that the file calls by other names."""

    @property
    def alone(self) -> bool:
        return "anchor" not in self.required

    @property
    def allowed(self) -> list[str]:
        """Names of all columns, and what stands for columns with grades of people."""
        return [*self.required, *self.optional, *PERTURBATIONS]

    def has(self, field: str) -> bool:
        """Tell whether a column is one of the form."""
        return field in self.allowed or (is_of_people(field) and len(field) > len(HUMAN))


PAIRED = _Form(REQUIRED, OPTIONAL)
SINGLE = _Form(ALONE, [name for name in OPTIONAL if name not in OF_PAIRS])


def _form_of(table: Table, problems: Problems) -> tuple[_Form, Table]:
    """Return the form of a file, by its header or first row, and the file; report unnamed pairs."""
    first: list[FileRow] = []
    columns = table.columns
    if columns is None:
        first = list(islice(table.rows, 1))
        columns = [*first[0].fields] if first else []
        table = Table(None, chain(first, table.rows))
    if two := two_answers(columns):
        allowed = ", ".join([*PAIRED.allowed, *PEOPLE])
        problems.refuse(
            first[0].where if first else "header", f"{two[0]}; allowed: {allowed}", two[1]
        )
    strange = [name for name in columns if not PAIRED.has(name) and name not in ALIASES]
    answered = {ANSWER, "target"} & {*columns} or nearest(ANSWER, strange)
    if "anchor" in columns or nearest("anchor", strange) or not answered:
        return PAIRED, table
    if ANSWER not in columns:
        return SINGLE, table
    renamed = (
        row
        if "target" in row.fields
        else FileRow(row.where, {ALIASES.get(name, name): v for name, v in row.fields.items()})
        for row in table.rows
    )
    named = [ALIASES.get(name, name) for name in columns]
    form = SINGLE._replace(called={"target": ANSWER})
    return form, Table(None if table.columns is None else named, renamed)


def _with_group(row: FileRow, column: str | None) -> FileRow:
    fields = dict(row.fields)
    if "turn" in fields:
        fields["turn"] = number_as_text(fields["turn"])
    if column is not None and column in fields:
        fields[GROUP] = number_as_text(fields[column] if _is_known(column) else fields.pop(column))
    return FileRow(row.where, fields)


def _is_known(column: str) -> bool:
    return column == ANSWER or PAIRED.has(column)


def _check_columns(columns: list[str], problems: Problems, form: _Form) -> None:
    repeated_columns(columns, problems)
    meant = _check_unknown(FileRow("header", dict.fromkeys(columns)), problems, set(), form)
    missing = [name for name in form.required if name not in columns and name not in meant]
    if missing:
        required = ", ".join(form.required)
        what = f"missing column {', '.join(map(repr, missing))}; required: {required}"
        if {"anchor", "target"} <= {*missing}:
            what += f" (of single answers: question, {ANSWER})"
        problems.add("header", what, f"Add it, or {MAP_IT}. {SEPARATED}")


def _check_unknown(row: FileRow, problems: Problems, reported: set[str], form: _Form) -> set[str]:
    """Report unknown fields, and return the missing fields that they probably mean."""
    of_one = form.alone or not {"anchor", "target"} & {*row.fields}
    allowed = [*form.allowed, *([ANSWER] if of_one else []), *PEOPLE]
    free = [field for field in allowed if field not in row.fields]
    new = [field for field in row.fields if not form.has(field) and field not in {GROUP, *reported}]
    meant = {field: nearest(field[:MAX_LABEL], free) for field in new}
    reported.update(new)
    split = form.called[GROUP] != GROUP
    for fault in unknown_columns(meant, allowed, alone=form.alone, split=split):
        problems.add(row.where, *fault)
    named = {near for near in meant.values() if near}
    return named | ({"target"} if ANSWER in named else set())


def _samples(table: Table, problems: Problems, form: _Form, same: SameAnswers) -> Iterator[Sample]:
    seen: dict[str, str] = {}
    rows: dict[str, str] = {}
    reported: set[str] = set()
    meant: set[str] = set()
    for row in table.rows:
        if table.columns is None:
            meant |= _check_unknown(row, problems, reported, form)
        texts = ALONE if form.alone else [*ALONE, "anchor"]
        if made := row.fields.get("question_id") is None:
            row.fields["question_id"] = content_key(*map(row.fields.get, texts))[:ID_DIGITS]
        faults = _faults(row.fields, seen, form)
        for field, fault in faults:
            # A misspelt column is reported once, not again as a missing one.
            if made and field == "question_id":
                names = ", ".join(form.called.get(text, text) for text in texts)
                what = f"is the same ({names}) as that of {seen[row.fields[field]]}"
                problems.add(row.where, f"the row {what}", "Delete one of the two.")
            elif field not in meant or field in row.fields:
                name = form.called.get(field, field)
                problems.add(row.where, f"field {name!r} {fault.what}", fault.todo)
        if problems.full:
            return
        if faults:
            continue
        seen[row.fields["question_id"]] = row.where
        if not form.alone and same.add(row, named=not made):
            continue
        # Votes on a copy would count as those on another, independent question.
        rest = {**row.fields, "question_id": None}
        if (first := rows.setdefault(content_key(rest), row.where)) != row.where:
            what = f"the row is a copy of {first} with another question_id"
            problems.add(row.where, what, "Delete one of the two.")
        yield _sample(row.fields)


def _faults(fields: dict[str, Any], seen: dict[str, str], form: _Form) -> list[tuple[str, Fault]]:
    faults = [
        (field, fault)
        for field in (*form.allowed, *filter(is_of_people, fields), GROUP)
        if (fault := _fault(field, fields.get(field), required=field in form.required))
    ]
    if faults:
        return faults
    key = fields["question_id"]
    if key in seen:
        what = f"is {clip(key)}, which {seen[key]} already has; it must be unique"
        todo = "Give one of the two another id, or delete it."
        faults.append(("question_id", Fault(what, todo)))
    return [*faults, *_turn_faults(fields, form)]


def _turn_faults(fields: dict[str, Any], form: _Form) -> Iterator[tuple[str, Fault]]:
    """Yield what is wrong with the turn before the judged one."""
    given = [name for name in BEFORE if fields.get(name) is not None]
    context = fields.get("context")
    if context is not None and (given or context.startswith(TURN)):
        todo = f"Leave it out, or the columns of the turn before: {', '.join(BEFORE)}."
        yield "context", Fault("cannot be there together with an earlier turn", todo)
    for name in EARLIER if given else ():
        if name not in given and name in form.allowed:
            todo = f"Add it, or leave out {', '.join(map(repr, given))}."
            yield name, Fault("is missing, but the row has an earlier turn", todo)


def _context_of(fields: dict[str, Any]) -> str | None:
    """Return the context of a question: what its row says, or the turn before."""
    if fields.get("question_1") is None:
        return fields.get("context")
    answers = fields.get("anchor_1"), fields["target_1"]
    return as_context(fields["question_1"], answers, fields.get("reference_1"))


def _fault(field: str, value: object, *, required: bool) -> Fault | None:
    if value is None:
        return Fault("is missing, but required", "Add it.") if required else None
    if field == "label" and value not in VERDICTS:
        what = f"is {clip(value)}; it must be one of {', '.join(VERDICTS)}"
        return Fault(what, "Write the right answer, or leave it out; --map takes A for answer_a.")
    if field in SHARES:
        return fault_of_share(field, value)
    if field.startswith(HUMAN):
        return fault_of_label(value)
    if field not in LABELS:
        return text_fault(value)
    return text_fault(value, MAX_LABEL) or line_fault(str(value))


def _sample(fields: dict[str, Any]) -> Sample:
    turn = f"turn {fields['turn']}" if fields.get("turn") else None
    return Sample(
        id=fields["question_id"],
        question=fields["question"],
        answers=(fields.get("anchor"), fields["target"]),
        versions=tuple(Version(2, n, fields[n]) for n in PERTURBATIONS if fields.get(n)),
        category=fields.get("category"),
        group=fields.get(GROUP) or (None if fields.get("category") else turn),
        reference=fields.get("reference"),
        authors=(
            fields.get("anchor_author") or fields.get("author"),
            fields.get("target_author") or fields.get("author"),
        ),
        label=fields.get("label"),
        human_score=number_of(fields.get("human_score")),
        label_chance=number_of(fields.get("label_chance")),
        context=_context_of(fields),
        human_values=human_values(fields),
        turn=fields.get("turn"),
    )
