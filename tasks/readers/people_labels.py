"""What people say of answers in the user's own questions: grades, passes and fails."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tasks.agreement.pass_words import grade_of, number_of
from tasks.readers.bounded import Fault, Problems, Row, clip

HUMAN = "human_"
"""Begins columns with people's grades: those of ``PEOPLE``, or ``human_CRITERION``."""
LABEL = "human_label"
PEOPLE = [LABEL, "human_grade"]
SHARES = ["human_score", "label_chance"]
MOST_SHOWN = 10
"""Most labels that an error lists."""


class PassLabel:
    """Reads a label of the user's own as a pass, and the other labels of people as fails."""

    def __init__(self, label: str) -> None:
        self.label = label.strip()
        self.seen: dict[str, None] = {}
        """The different labels of people, in order."""

    def read(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows with pass or fail for each label; numbers in other columns are grades."""
        for row in rows:
            said = {name: self._verdict(name, value) for name, value in row.fields.items()}
            yield Row(row.where, said)

    def check(self, problems: Problems) -> None:
        """Report a label that nobody gave: everything would be a fail."""
        if not self.seen or any(map(self._passes, self.seen)):
            return
        more = f" and {len(self.seen) - MOST_SHOWN} more" if len(self.seen) > MOST_SHOWN else ""
        labels = ", ".join(clip(label)[1:-1] for label in [*self.seen][:MOST_SHOWN])
        what = f"no label of people is {clip(self.label)}; the labels are: {labels}{more}"
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


def is_of_people(name: str) -> bool:
    """Tell whether a column holds what people say of an answer."""
    return name.startswith(HUMAN) and name not in SHARES


def fault_of_label(value: object) -> Fault | None:
    """Return what is wrong with a label of people that is neither a grade nor pass or fail."""
    if grade_of(value) is not None:
        return None
    what = f"is {clip(value)}; it must be a grade, or a word such as pass or fail"
    todo = (
        "Write a number, pass or fail, or leave it out; --pass LABEL (`pass_label` of the study) "
        "names a word of your own that passes, and the others fail."
    )
    return Fault(what, todo)


def human_values(fields: Mapping[str, Any]) -> str | None:
    """Return what people say of an answer, as JSON: criterion -> grade."""
    grades = {
        name.removeprefix(HUMAN): grade_of(value)
        for name, value in fields.items()
        if is_of_people(name) and value is not None
    }
    return json.dumps(grades) if grades else None
