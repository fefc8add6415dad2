"""Named queries: one file for each question that users ask of their results."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tasks.kit.catalogue import unknown
from warehouse.store import Warehouse

PARAMETER = re.compile(r"-- (\w+): (.+) \[(.*)\]")
"""``-- name: meaning [default]``, after the first line of a question."""

NEWEST = re.compile(r"the newest in ([a-z_.]+)")
"""Default of a study: of the studies in this mart, the one that ran last."""
ALL = "all studies"
"""Default of a study where the rows of every study are shown; no study can have this name."""


class Question(NamedTuple):
    """A query, with what it answers and its parameters: name -> (meaning, default)."""

    name: str
    about: str
    parameters: dict[str, tuple[str, str]]
    sql: str


@cache
def questions() -> tuple[Question, ...]:
    """Return all questions, by name."""
    return tuple(_read(file) for file in sorted(Path(__file__).parent.glob("*.sql")))


def question_names() -> list[str]:
    """Return the names of all questions."""
    return [each.name for each in questions()]


def about(name: str) -> str:
    """Return what a question answers, and when it has no rows."""
    return next(each.about for each in questions() if each.name == name)


def asked(name: str, values: Sequence[str] = ()) -> tuple[str, dict[str, str]]:
    """Return the query of a question and its parameters, from texts such as ``study=nightly``.

    Raises
    ------
    ValueError
        Naming the question, or the parameter, that does not exist.
    """
    known = {each.name: each for each in questions()}
    if name not in known:
        raise unknown("question of --ask", name, [*known], "`voirdire sql` lists all")
    question = known[name]
    given = dict(each.partition("=")[::2] for each in values)
    for parameter in given:
        if parameter not in question.parameters:
            raise unknown(f"parameter of --ask {name} to --set:", parameter, [*question.parameters])
    defaults = {key: default for key, (_, default) in question.parameters.items()}
    return question.sql, defaults | given


def with_study(warehouse: Warehouse, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a question with the name of a study that is in the warehouse.

    Raises
    ------
    ValueError
        If there is no study of the name that was given.
    """
    study = parameters.get("study")
    if study in (None, ALL):
        return {**parameters}
    if newest := NEWEST.fullmatch(study):
        ran = f"select study from runs where study in (select study from {newest[1]})"
        found = warehouse.query(f"{ran} order by started_at desc limit 1")["study"].to_list()
        return {**parameters, "study": found[0] if found else ""}
    known = warehouse.query("select distinct study from runs order by study")["study"].to_list()
    if study not in known:
        raise unknown("study", study, known, '`voirdire sql "from runs"` lists all')
    return {**parameters}


def _read(file: Path) -> Question:
    text = file.read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("--")]
    found = [PARAMETER.fullmatch(line) for line in head[1:]]
    parameters = {each[1]: (each[2], each[3]) for each in found if each}
    return Question(file.stem, head[0].removeprefix("-- "), parameters, text)
