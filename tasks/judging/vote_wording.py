"""A vote in words: the order of the answers that the judge saw, and its choice."""

from tasks.judging.rated_votes import rating_text

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
    """
    if choice == "rated":
        return rating_text(rating)
    places = {"first": shown_first, "second": OTHER.get(shown_first, shown_first)}
    return places.get(choice, choice)
