"""Named queries: one file for each question that users ask of their results."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tasks.kit.catalogue import unknown
from warehouse.store import Warehouse

PARAMETER = re.compile(r"-- (\w+): (.+) \[(.*)\]")
"""``-- name: meaning [default]``, after the first line of a question."""

ALL = "all studies"
"""Default of each question's parameter ``study``; no study can have this name."""


class Question(NamedTuple):
    """A query, with what it answers and its parameters: name -> (meaning, default)."""

    about: str
    parameters: dict[str, tuple[str, str]]
    sql: str


@cache
def questions() -> dict[str, Question]:
    """Return all questions, by name."""
    return {file.stem: _read(file) for file in sorted(Path(__file__).parent.glob("*.sql"))}


def asked(name: str, values: Sequence[str] = ()) -> tuple[str, dict[str, str]]:
    """Return the query of a question and its parameters, from texts such as ``study=nightly``.

    A ValueError names the question, or the parameter, that does not exist.
    """
    if name not in questions():
        raise unknown("question of --ask", name, [*questions()], "`voirdire sql` lists all")
    question = questions()[name]
    given = dict(each.partition("=")[::2] for each in values)
    for parameter in given:
        if parameter not in question.parameters:
            raise unknown(f"parameter of --ask {name} to --set:", parameter, [*question.parameters])
    defaults = {key: default for key, (_, default) in question.parameters.items()}
    return question.sql, defaults | given


def require_study(warehouse: Warehouse, study: str | None) -> None:
    """Refuse a study that is not in the warehouse; null and ``ALL`` are about every study."""
    if study in (None, ALL):
        return
    known = warehouse.query("select distinct study from runs order by study")["study"].to_list()
    if study not in known:
        raise unknown("study", study, known, '`voirdire sql "from runs"` lists all')


def _read(file: Path) -> Question:
    text = file.read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("--")]
    found = [PARAMETER.fullmatch(line) for line in head[1:]]
    parameters = {each[1]: (each[2], each[3]) for each in found if each}
    return Question(head[0].removeprefix("-- "), parameters, text)
