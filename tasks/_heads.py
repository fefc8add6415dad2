"""Judges and people, told apart where they are counted."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from schemas.keys import PEOPLE
from tasks._words import count, listing, thousands

NO_NAMES: frozenset[str] = frozenset()


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


def _split(judges: Collection[str], persons: Collection[str]) -> tuple[int, int]:
    distinct = set(judges)
    people = sum(is_person(judge, persons) for judge in distinct)
    return len(distinct) - people, people
