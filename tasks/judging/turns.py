"""The turn of a conversation before the one that is judged, kept as a question's context."""

import json
from collections.abc import Mapping
from typing import Any

TURN = '{"turn 1": '
"""Begins a context that is an earlier turn."""
PAIR_TURN_PLACES = (
    *("question_1", "answer_a_1", "answer_b_1", "reference_1"),
    *("turns_a", "turns_b"),
)
SINGLE_TURN_PLACES = ("question_1", "answer_1", "reference_1", "turns")
"""Placeholders of the earlier turn in a judge prompt; the judged turn's have no number."""
TURN_PLACES = {*PAIR_TURN_PLACES, *SINGLE_TURN_PLACES}


def as_context(question: str, answers: tuple[str | None, str | None], reference: str | None) -> str:
    """Return an earlier turn, with its first and its second answer, as a question's context."""
    return json.dumps({"turn 1": [question, *answers, reference]}, ensure_ascii=False)


def earlier_turn(pair: Mapping[str, Any], shown_first: str) -> dict[str, str]:
    """Return the text of each placeholder of the turn before a pair's; empty if there is none."""
    context = pair.get("context")
    if not context or not context.startswith(TURN):
        return {}
    question, *answers, reference = json.loads(context)["turn 1"]
    # The target is the second answer, unless the sample is named after the first one.
    swapped = pair["sample"].endswith("/a1") != (shown_first == "target")
    first, second = answers[::-1] if swapped else answers
    texts = {
        "question_1": question,
        "answer_1": first,
        "answer_a_1": first,
        "answer_b_1": second,
        "reference_1": reference,
        "turns": _as_text(question, first),
        "turns_a": _as_text(question, first),
        "turns_b": _as_text(question, second),
    }
    return {place: text or "" for place, text in texts.items()}


def _as_text(question: str, answer: str | None) -> str:
    return f"User: {question}\n\nAssistant: {answer or ''}"
