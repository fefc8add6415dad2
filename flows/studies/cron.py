"""What is wrong with a cron line, without Prefect, whose import takes a second."""

import re

FIELDS = (
    ("minute", 0, 59, ""),
    ("hour", 0, 23, ""),
    ("day of the month", 1, 31, "l"),
    ("month", 1, 12, "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"),
    ("day of the week", 0, 7, "sun|mon|tue|wed|thu|fri|sat"),
)
"""Name of each field, its least and largest number, and its words."""


def cron_problem(line: str) -> str:
    """Say what is wrong with a cron line; empty if nothing is."""
    fields = line.split()
    if len(fields) != len(FIELDS):
        return "not a cron line of five fields, such as 15 2 * * 1"
    for text, (name, low, high, words) in zip(fields, FIELDS, strict=True):
        if not all(_is_part(part, low, high, words) for part in text.lower().split(",")):
            also = ", or a name such as mon or jan" if "|" in words else ""
            return (
                f"the {name} {text!r:.60} must be *, a number from {low} to {high}{also}, or "
                "several with commas, a range (2-5) or a step (*/2)"
            )
    return ""


def _is_part(part: str, low: int, high: int, words: str) -> bool:
    """Tell whether a text is a value, a range of values or all, with or without a step."""
    value = rf"\d+|{words}" if words else r"\d+"
    ordinal = r"(?:#[1-5])?|l[0-7]" if high == 7 else ""
    found = re.fullmatch(rf"(?:[*?]|({value})(?:-({value}))?{ordinal})(?:/([1-9]\d*))?", part)
    if found is None:
        return False
    numbers = [int(each) for each in found.groups()[:2] if each and each.isdigit()]
    return all(low <= number <= high for number in numbers)
