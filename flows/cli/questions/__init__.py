"""Named queries: one file for each question that users ask of their results."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from flows.running.run_row import ENDED, is_calibration, why_without_results
from tasks.kit.printable import printable
from tasks.validation.unknown_names import ALL_STUDIES, unknown
from warehouse.store import Warehouse

PARAMETER = re.compile(r"-- (\w+): (.+) \[(.*)\]")
"""``-- name: meaning [default]``, after the first line of a question."""

WHOLE = re.compile(r"[0-9]{1,6}")

ALL = "all studies"
"""Default of each question's parameter ``study``; no study can have this name."""

OF_PEOPLE = "who_disagrees_with_people"
WITHOUT_ROWS = {
    OF_PEOPLE: (
        """
        select study from vote_log where human or label is not null
        union select study from ratings where human or human_value is not null
        """,
        "Study {0} has labels of people that are not compared yet: `voirdire calibrate {0}`.",
    ),
    "what_flipped": (
        "select study from ratings where kind = 'number' and arm = 'experimental'",
        "Grades of study {0} have shifts instead of flips: `voirdire show {0}`.",
    ),
}
"""Question -> the studies about which it may have no rows, and the next step for one of them."""


UNFINISHED = """
    from (select state from runs where study = $study order by started_at desc limit 1)
    where state in $states and not exists (from estimates where study = $study)
"""
"""One row if a study has no results and its last run was not completed."""


OF_CALIBRATION = (
    "{!r} is a calibration, which compares labels of judges with people's: `voirdire sql "
    "--ask {} --set study={}`."
)


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

    A ValueError names the question, or the parameter, that does not exist; without a name, it lists
    the questions.
    """
    if not name:
        raise ValueError(
            f"--ask names no question. There are: {', '.join(questions())}. `voirdire sql` says "
            "what each answers."
        )
    if name not in questions():
        raise unknown("question of --ask", name, [*questions()], "`voirdire sql` lists all")
    question = questions()[name]
    given = dict(each.partition("=")[::2] for each in values)
    for parameter in given:
        if parameter not in question.parameters:
            raise unknown(f"parameter of --ask {name} to --set:", parameter, [*question.parameters])
    defaults = {key: default for key, (_, default) in question.parameters.items()}
    for key, value in given.items():
        if defaults[key].isdecimal() and not WHOLE.fullmatch(value):
            raise ValueError(
                f"--set {f'{key}={value}'!r:.200}: {key} must be a whole number of up to 6 digits, "
                f"such as {key}={defaults[key]}."
            )
    return question.sql, defaults | given


def require_study(warehouse: Warehouse, study: str | None) -> None:
    """Refuse a study that is not in the warehouse; null and ``ALL`` are about every study."""
    if study in (None, ALL):
        return
    known = warehouse.query("select distinct study from runs order by study")["study"].to_list()
    if study not in known:
        raise unknown("study", study, known, ALL_STUDIES)


def next_steps(warehouse: Warehouse, name: str, study: str | None) -> list[str]:
    """Return the next step for each study that cannot have rows for a question yet."""
    last = {"study": study, "states": [*ENDED]}
    if study not in (None, ALL) and warehouse.query(UNFINISHED, last).height:
        why = why_without_results(str(study), warehouse)
        return [f"{why[:1].upper()}{why[1:]}"]
    if name != OF_PEOPLE and study not in (None, ALL) and is_calibration(str(study), warehouse):
        return [OF_CALIBRATION.format(study, OF_PEOPLE, printable(quote(str(study))))]
    if name not in WITHOUT_ROWS:
        return []
    studies, step = WITHOUT_ROWS[name]
    query = f"select distinct study from ({studies}) where $study in (study, $all) order by study"
    found = warehouse.query(query, {"study": study or ALL, "all": ALL})["study"]
    return [step.format(printable(quote(each))) for each in found]


def _read(file: Path) -> Question:
    text = file.read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("--")]
    found = [PARAMETER.fullmatch(line) for line in head[1:]]
    parameters = {each[1]: (each[2], each[3]) for each in found if each}
    return Question(head[0].removeprefix("-- "), parameters, text)
