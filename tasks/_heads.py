"""Judges and people, told apart where they are counted."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from schemas.keys import PEOPLE
from tasks._words import GROUPS, clean, clip, count, formulas, listing, thousands

NO_NAMES: frozenset[str] = frozenset()
MARK, SOME = "(simulated)", "(some simulated)"
JUDGES_NAMED = 8


def is_person(judge: str, persons: Collection[str] = NO_NAMES) -> bool:
    """Tell whether a judge is a person: one from the booth, or one that a file calls human."""
    return judge.startswith(f"{PEOPLE}/") or judge in persons


def heads(judges: Collection[str], persons: Collection[str] = NO_NAMES) -> str:
    """Write how many there are: ``5 judges and 2 people``."""
    models, people = _split(judges, persons)
    told = [count(models, "judge")] if models or not people else []
    return listing([*told, *([count(people, "person", "people")] if people else [])])


def share_of(some: Collection[str], of: Collection[str], persons: Collection[str]) -> str:
    """Write how many of them: ``1 of 5 judges and 0 of 2 people``."""
    models, people = _split(of, persons)
    some_models, some_people = _split(some, persons)
    told = [f"{thousands(some_models)} of {count(models, 'judge')}"] if models else []
    if people:
        told.append(f"{thousands(some_people)} of {count(people, 'person', 'people')}")
    return listing(told)


def names(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the judges of rows, however often and under whatever prompt they judged."""
    return {row["judge"] for row in rows}


def marks_of(rows: pl.DataFrame, persons: Collection[str] = NO_NAMES) -> dict[str, str]:
    """Return what stands behind each judge that is a formula, and each group that holds one."""
    marked = formulas(rows)
    real = {*rows["judge"]} - marked - {*GROUPS}
    mixed = any(not is_person(judge, persons) for judge in real)
    return {name: SOME if name in GROUPS and mixed else MARK for name in sorted(marked)}


def with_mark(name: str, marks: Mapping[str, str], between: str = " ") -> str:
    """Return a name with its own mark, if it has one."""
    return f"{name}{between}{marks[name]}" if name in marks else name


def simulated_sentence(judges: Collection[str], simulated: Collection[str]) -> str:
    """Say whether all judges are formulas, or which; empty if none is."""
    own = sorted({*judges} & {*simulated})
    if not own:
        return ""
    if len(own) == len({*judges}):
        return "Simulated judges: formulas with planted biases, not language models"
    named = [clip(clean(name), 60) for name in own[:JUDGES_NAMED]]
    if len(own) > JUDGES_NAMED:
        named.append(f"{thousands(len(own) - JUDGES_NAMED)} more")
    verb = "is simulated, a formula" if len(own) == 1 else "are simulated, formulas"
    return (
        f"{thousands(len(own))} of {count(len({*judges}), 'judge')} {verb} with planted biases, not"
        f" {'a language model' if len(own) == 1 else 'language models'}: {listing(named)}"
    )


def _split(judges: Collection[str], persons: Collection[str]) -> tuple[int, int]:
    distinct = set(judges)
    people = sum(is_person(judge, persons) for judge in distinct)
    return len(distinct) - people, people
