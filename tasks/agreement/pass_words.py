"""Words for pass and for fail, as people and tools write them, and grades."""

import json
import re

LARGEST_GRADE = 1e12
"""Largest number that is a grade; sums of squares of larger ones lose their digits or overflow."""
VERDICTS = (
    ("pass", "fail"),
    ("passed", "failed"),
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("1", "0"),
    ("correct", "incorrect"),
    ("good", "bad"),
    ("right", "wrong"),
    ("accept", "reject"),
    ("accepted", "rejected"),
    ("acceptable", "unacceptable"),
)
"""Words for pass and for fail, in lower case."""

PASS_WORDS = {word: word == good for good, bad in VERDICTS for word in (good, bad)}
"""Word -> whether it means a pass."""

FAILURE = re.compile(r"|n/a|nan|null|timeout|(error|exception)(\s*[:(].*)?", re.DOTALL)
"""Texts, in lower case, with which tools say that a grader gave no verdict."""


def is_failure(label: str) -> bool:
    """Tell whether a label says that a grader failed, such as ``ERROR: timeout``, or is blank."""
    return FAILURE.fullmatch(label.strip().lower()) is not None


def number_of(value: object) -> float | None:
    """Return a number, or a text that is one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def grade_of(value: object) -> float | None:
    """Return a grade of people as a number: 1 for pass, 0 for fail."""
    word = value.strip().lower() if isinstance(value, str) else json.dumps(value)
    if word in PASS_WORDS:
        return float(PASS_WORDS[word])
    number = number_of(value)
    return number if number is not None and abs(number) <= LARGEST_GRADE else None
