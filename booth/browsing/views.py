"""What a page shows of a comparison: names, marked texts and votes, without control characters."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from schemas.judging import RATED, VALID
from tasks.judging.vote_wording import choice_text, grade_text, order_text
from tasks.kit.printable import laid_out
from tasks.reporting.wording import count
from tasks.rewriting.word_diff import Passage, WordDifference, difference

MOST_CHARACTERS = 100_000
"""A longer text is shortened in the middle."""

CHANGED = {"experimental": "perturbed"}


class Side(NamedTuple):
    """A text under its heading."""

    name: str
    note: str
    parts: list[Passage]
    is_aside: bool = False


def plain(text: str) -> str:
    """Return a text of bounded length, with a mark for each character that would be invisible."""
    lines = laid_out(text)
    cut = len(lines) - MOST_CHARACTERS
    if cut <= 0:
        return lines
    half = MOST_CHARACTERS // 2
    return f"{lines[:half]}\n[... {cut} characters are not shown ...]\n{lines[-half:]}"


def study_line(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a study in a line; ``sizes``: its judges and people, and their votes with results."""
    votes = count(row["votes"], "vote") if row["votes"] else ""
    waves = row["waves"] or ()
    if votes and waves:
        votes += f" of wave {plain(waves[0])}" if len(waves) == 1 else f" of {len(waves)} waves"
    theirs = count(row["votes_of_people"], "vote") if row["votes_of_people"] else ""
    people = count(row["people"], "person", "people") if row["people"] else ""
    sizes = [
        count(row["judges"], "judge"),
        votes,
        f"{people} with {theirs}" if theirs else people,
    ]
    at = row["last_run"]
    return {
        "name": plain(row["study"]),
        "kind": plain(row["kind"]),
        "datasets": plain(row["datasets"]),
        "sizes": ", ".join(filter(None, sizes)),
        "last_run": f"last run {at:%Y-%m-%d %H:%M} UTC" if at else "",
    }


OVER_BOTH = "judge over both orders"


def entry_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison in a line; ``detail``: criterion, repeat and wave, if there are any."""
    texts = json.loads(row.get("texts") or "{}")
    title = row.get("question") or next(iter(texts.values()), None) or row.get("sample") or ""
    details = [
        row.get("criterion"),
        f"repeat {row['repeat'] + 1}" if row.get("repeat") is not None else None,
        f"wave {row['wave']}" if row.get("wave") else None,
    ]
    marks = [
        "flipped" if row.get("flipped") else None,
        f"moved by {row['moved']:g}" if row.get("moved") else None,
        "invalid reply" if row.get("invalid") else None,
        _labels(row),
        "simulated" if row.get("simulated") else None,
    ]
    perturbed = row.get("perturbation")
    return {
        "title": plain(str(title)),
        "sample": plain(row.get("sample") or ""),
        "judge": plain(row["judge"]),
        "prompt": plain(row["prompt"]),
        "perturbation": plain(perturbed or ""),
        "detail": ", ".join(plain(str(each)) for each in details if each),
        "control": _verdict(row["control"]),
        "experimental": _verdict(row["experimental"]) if perturbed or row["experimental"] else "",
        "sham": plain(grade_text(row["sham"] or "")),
        "marks": [plain(mark) for mark in marks if mark],
    }


def _verdict(text: str | None) -> str:
    return plain(grade_text(text or "no verdict"))


def _labels(row: Mapping[str, Any]) -> str | None:
    """Return the labels of people and of the judge; null if people gave none."""
    if not row.get("people"):
        return None
    # Labels of pairs follow the swap protocol, verdicts the mean over both orders.
    judge = OVER_BOTH if row["rating_kind"] is None else "judge"
    people, labelled = (grade_text(row[name]) for name in ("people", "labelled"))
    return f"people: {people}, {judge}: {labelled}"


def sides_of(row: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> list[Side]:
    """Return the question and the answers, changed words marked; of one answer, before and after.

    Texts that a calibration kept replace the texts of pairs where these are unknown.
    """
    by_arm = {text["arm"]: text for text in texts}
    if "control" not in by_arm:
        kept = json.loads(row["texts"] or "{}")
        return [_side(plain(str(name)), "", str(text)) for name, text in kept.items()]
    control = by_arm["control"]
    sides = [_side("Question", "", control["question"])]
    changed = _difference(control, by_arm.get("experimental"))
    # A judge of single answers saw no anchor, though the dataset may have one.
    beside = bool(control["anchor"]) and row.get("rating_kind") is None
    if beside:
        sides.append(_side("Anchor", "never changed", control["anchor"]))
        note = f"with {plain(row['perturbation'])}" if "experimental" in by_arm else "control"
        sides.append(_changed_side("Target", note, changed))
    elif changed.note:
        sides.append(_side("Answer", "control", control["target"]))
    else:
        own = [part for part in changed.parts if part.change != "added"]
        sides.append(Side("Answer", "control", own))
    if not beside and "experimental" in by_arm:
        new = [part for part in changed.parts if part.change != "removed"]
        note = f"with {plain(row['perturbation'])}"
        sides.append(_changed_side("Answer", note, changed._replace(parts=new)))
    shams = [text for text in texts if text["arm"] == "sham"]
    name = "Target" if beside else "Answer"
    sides += [
        _changed_side(name, "sham: an edit without meaning", _difference(control, sham))._replace(
            is_aside=True
        )
        for sham in shams
    ]
    return sides


def _side(name: str, note: str, text: str) -> Side:
    return Side(name, note, [Passage("same", plain(text))])


def _changed_side(name: str, note: str, found: WordDifference) -> Side:
    return Side(name, "; ".join(filter(None, (note, found.note))), found.parts)


def _difference(control: Mapping[str, Any], changed: Mapping[str, Any] | None) -> WordDifference:
    before = plain(control["target"])
    return difference(before, plain(changed["target"]) if changed else before)


def vote_of(vote: Mapping[str, Any]) -> dict[str, Any]:
    """Return a vote as a page shows it: which answer it chose, not which place.

    ``reply`` is null if it is unknown; ``more`` has its tokens, model and time.
    """
    first = vote["shown_first"]
    choice = vote["choice"] or "not cast"
    arm = CHANGED.get(vote["arm"], vote["arm"])
    named = f": {vote['perturbation']}" if vote["arm"] == "reworded" else ""
    cost, seconds = vote.get("cost_usd"), vote.get("seconds")
    return {
        "arm": plain(f"{arm}{named}"),
        "order": order_text(first),
        "repeat": vote["repeat"] + 1,
        "choice": plain(choice_text(choice, first, vote["rating"])),
        "is_read": choice in {*VALID, RATED},
        "reply": None if vote.get("reply") is None else plain(vote["reply"]),
        "seconds": "" if seconds is None else f"{seconds:.1f}",
        "cost": "" if cost is None else f"{cost:.6f}".rstrip("0").rstrip("."),
        "more": ", ".join(_more(vote)),
    }


def _more(vote: Mapping[str, Any]) -> Iterator[str]:
    if vote.get("prompt_tokens") is not None:
        yield f"{vote['prompt_tokens']} + {vote['completion_tokens'] or 0} tokens"
    if vote.get("model"):
        yield plain(vote["model"])
    if isinstance(cast := vote.get("cast_at"), datetime):
        yield f"{cast:%Y-%m-%d %H:%M:%S} UTC"
