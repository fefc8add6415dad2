"""Named queries: one file for each question that users ask of their results."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tasks.kit.catalogue import unknown

PARAMETER = re.compile(r"-- (\w+): (.+) \[(.*)\]")
"""``-- name: meaning [default]``, after the first line of a question."""


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


def _read(file: Path) -> Question:
    text = file.read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("--")]
    found = [PARAMETER.fullmatch(line) for line in head[1:]]
    parameters = {each[1]: (each[2], each[3]) for each in found if each}
    return Question(file.stem, head[0].removeprefix("-- "), parameters, text)
