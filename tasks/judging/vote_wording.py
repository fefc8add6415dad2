"""A vote in words: the order of the answers that the judge saw, and its choice."""

import json

OTHER = {"anchor": "target", "target": "anchor"}
ORDERS = {"target alone": "", "alone": "", "anchor alone": "the anchor"}
"""What a judge of single answers was shown -> what stands in place of the order."""


def order_text(shown_first: str) -> str:
    """Return which answer stood first, as `mart.transcript` has it, in words; empty for one alone.

    Examples
    --------
    >>> order_text("anchor"), order_text("target alone")
    ('anchor first', '')
    """
    return ORDERS.get(shown_first, f"{shown_first} first")


def choice_text(choice: str, shown_first: str, rating: str | None) -> str:
    """Return the answer that a vote chose, not its place; else its rating, or why it has none.

    Examples
    --------
    >>> choice_text("second", "target", None), choice_text("tie", "target", None)
    ('anchor', 'tie')
    >>> choice_text("rated", "target alone", "6.0")
    '6'
    """
    if choice == "rated":
        return _rating(rating)
    places = {"first": shown_first, "second": OTHER.get(shown_first, shown_first)}
    return places.get(choice, choice)


def _rating(rating: str | None) -> str:
    """Return a vote's rating in words: `7`, or `clarity: 4, tone: 5`."""
    if not rating or not rating.startswith("{"):
        return grade_text(rating or "none")
    read = json.loads(rating)
    return ", ".join(f"{name}: {_value(v)}" if name else _value(v) for name, v in read.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "pass" if value else "fail"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return grade_text(str(value))


def grade_text(text: str) -> str:
    """Return a whole grade without a decimal point, and any other text as it is.

    Examples
    --------
    >>> grade_text("6.0"), grade_text("6.5"), grade_text("pass")
    ('6', '6.5', 'pass')
    """
    whole = text.removesuffix(".0")
    return whole if whole.removeprefix("-").isdecimal() else text
