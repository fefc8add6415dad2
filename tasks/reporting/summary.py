"""The findings in sentences, and counts of judges and people."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.keys import PEOPLE
from schemas.results import BEST_DETECTED, DETECTED, IN_MEAN_SCORES, MEAN_DETECTED, Findings
from tasks.conclusions.position_bias import GAP, POSITION
from tasks.gates.scorecard import FAILS, PASSES
from tasks.kit.printable import first_few
from tasks.perturbations import PERTURBATIONS, SECOND
from tasks.reporting.wording import (
    GROUPS,
    MARK,
    bounds,
    clean,
    clip,
    count,
    formulas,
    interval,
    listing,
    marked,
    number,
    shorten,
    tagged,
    thousands,
    with_who,
)

NAMED = 4
NO_NAMES: frozenset[str] = frozenset()
BLIND = ("overlooks", "rewards")
PARTLY = {
    "mixed": "Shifts that differ between questions or categories (mixed)",
    "detects some": "Flaws detected in part, perhaps too few",
}
"""Finding that neither passes nor fails -> how its sentence begins."""
REFUSED = "no finding"
UNSEEN = "without enough votes to measure a shift"
VOTING = "people whose votes do not suffice"
LONGEST_REASON = 160


def summary(
    findings: DataFrame[Findings],
    questions: int,
    persons: Collection[str] = NO_NAMES,
    theirs: int = 0,
    gates: pl.DataFrame | None = None,
) -> list[str]:
    """Summarise the findings, one per judge and perturbation, in a few sentences.

    ``questions`` is the maximum number of questions behind a judge's shift, ``theirs`` behind a
    person's; ``persons`` are judges who are people, besides people in the booth. ``gates`` is
    the scorecard, for judges that have changed or fail to detect flaws.
    """
    if findings.is_empty():
        return ["No cell was measured, so there are no findings."]
    rows = with_who(findings).sort("who", "perturbation").to_dicts()
    slots = [row for row in rows if row["kind"] == POSITION]
    rows = [row for row in rows if row["kind"] != POSITION]
    if not rows:
        judges = count_of_judges(names(slots), persons)
        return [f"{judges} compared answers; nothing was perturbed.", _position(slots, persons)]
    people = [row for row in rows if is_person(row["judge"], persons)]
    models = [row for row in rows if not is_person(row["judge"], persons)]
    first = [_faced(models, persons, f"on {count(questions, 'question')}")] if models else []
    if people:
        reached = f"on {count(theirs, 'question')} at most" if theirs else UNSEEN
        first.append(_faced(people, persons, reached))
    faced = f"{'; '.join(first)}."
    if all(row["finding"] is None for row in [*rows, *slots]):
        return ["No conclusion is possible: no cell has enough data.", faced, _open(rows, persons)]
    # For people without any finding, "no bias was found" would be misleading.
    decided = {row["judge"] for row in people if row["finding"] is not None}
    shown = [*models, *(row for row in people if row["judge"] in decided)]
    sentences = (
        _sound([*models, *(row for row in slots if not is_person(row["judge"], persons))], persons),
        _promote(shown, persons),
        _partly("mixed", shown),
        _detract(shown, persons),
        *([] if gates is None else _undiscerning(gates)),
        _partly("detects some", shown),
        _position(slots, persons),
        _lost(shown),
        _open(rows, persons),
    )
    return [s for s in (faced, *([] if gates is None else _changed(gates)), *sentences) if s]


def _changed(gates: pl.DataFrame) -> list[str]:
    alerts = with_who(gates.filter(gate="drift")).filter(verdict="fail").sort("who")
    return [
        f"{marked(row['who'], simulated=row['simulated'])} has changed ({row['reason']})."
        for row in alerts.to_dicts()
    ]


MEANS = {
    DETECTED: f": the {DETECTED}",
    BEST_DETECTED: f": the {BEST_DETECTED}",
    MEAN_DETECTED: f" on average: the {MEAN_DETECTED}",
    IN_MEAN_SCORES[DETECTED]: f": the {IN_MEAN_SCORES[DETECTED]}",
    IN_MEAN_SCORES[BEST_DETECTED]: f": the {IN_MEAN_SCORES[BEST_DETECTED]}",
    IN_MEAN_SCORES[MEAN_DETECTED]: f" on average: the {IN_MEAN_SCORES[MEAN_DETECTED]}",
}
"""What the gate discernment tests -> how a sentence names it."""


def _undiscerning(gates: pl.DataFrame) -> list[str]:
    """Name the judges that fail to detect flaws of all kinds, with the share that says so."""
    failed = with_who(gates.filter(gate="discernment")).filter(verdict="fail").sort("who")
    return [
        f"{marked(row['who'], simulated=row['simulated'])} does not detect flaws"
        f"{MEANS[row['measure']]} is "
        f"{number(row['value'])}{bounds(row)}, limit {number(row['tolerance'])}."
        for row in failed.to_dicts()
    ]


def _sound(rows: Sequence[Row], persons: Collection[str]) -> str:
    """Name the judges that pass with every finding: without a relevant bias, no flaw missed."""
    of_whom: dict[str, list[Row]] = {}
    for row in rows:
        of_whom.setdefault(row["who"], []).append(row)
    kinds = {row["kind"] for row in rows}
    passing = [
        own[0]
        for own in of_whom.values()
        if {row["kind"] for row in own} == kinds and all(row["finding"] in PASSES for row in own)
    ]
    if not passing:
        return ""
    verbs = ("has", "detects") if len(passing) == 1 else ("have", "detect")
    # Where nothing could promote an answer, position alone was tested for bias.
    bias = "bias" if kinds - {"detract", POSITION} else "position bias"
    bias += " (position included)" if kinds >= {"promote", POSITION} else ""
    words = [f"{verbs[0]} no relevant {bias}"] if kinds != {"detract"} else []
    words += [f"{verbs[1]} each flaw"] if "detract" in kinds else []
    units = share_of(names(passing), names(rows), persons)
    if len(of_whom) > len(names(rows)):
        units = f"{len(passing)} of {len(of_whom)} combinations of judge and prompt"
    return f"{units} {listing(words)}: {_named(passing)}."


def _named(rows: Sequence[Row]) -> str:
    """List the judges of rows, or the first few of many."""
    rest = len(rows) - NAMED
    each = [tagged(row) for row in rows[:NAMED]]
    return listing([*each, count(rest, "other")] if rest > 0 else each)


def _faced(rows: Sequence[Row], persons: Collection[str], reached: str) -> str:
    perturbations = count(len({row["perturbation"] for row in rows}), "perturbation")
    prompts = len({row["prompt"] for row in rows})
    asked = f" with {prompts} prompts" if prompts > 1 else ""
    return f"{count_of_judges(names(rows), persons)}{asked} faced {perturbations} {reached}"


def finding_words(row: Row) -> tuple[str, str]:
    """Return the finding and its note: direction, share of flaws detected, or reason."""
    if row["finding"] is None:
        return REFUSED, str(row["reason"] or "no reason was recorded")
    if row["finding"] == "biased" and row["estimate"]:
        way = "toward" if row["estimate"] > 0 else "away from"
        return "biased", favoured(row) or f"{way} the changed answer"
    return str(row["finding"]), detected(row)


def favoured(row: Row) -> str:
    """Name the slot that a judge with a position bias favours; empty for other rows."""
    if row["kind"] != POSITION or row["finding"] != "biased":
        return ""
    towards = row["shift"] if "shift" in row else row["estimate"]
    return "toward the first slot" if towards > 0 else "toward the second slot"


def detected(row: Row) -> str:
    """Write the share of flaws that a detract finding rests on: ``DP .64 [.52, .76]``.

    That a judge rewards a flaw rests on its shift.
    """
    if row.get("detected") is None or row["finding"] == "rewards":
        return ""
    name = "DP" if row["detected_by"] == "detection_power" else "D"
    return f"{name} {number(row['detected'])}{bounds(row, 'detected_')}"


def _promote(rows: Sequence[Row], persons: Collection[str]) -> str:
    cells = [row for row in rows if row["kind"] == "promote"]
    if not cells:
        return ""
    moved = [row for row in cells if row["finding"] == "biased"]
    if moved:
        verb = "is" if _alone(moved, cells, persons) else "are"
        return (
            f"{share_of(names(moved), names(cells), persons)} {verb} biased by a"
            f" change that should not matter: {_by_judge(moved)}."
        )
    clear = sum(row["finding"] == "no relevant bias" for row in cells)
    shown = f"{clear} of {count(len(cells), 'cell')}" if clear else "no cell"
    return (
        f"{_nobody(cells, persons)} was found biased by a change that should not matter;"
        f" {shown} demonstrated the absence of relevant bias."
    )


def _partly(finding: str, rows: Sequence[Row]) -> str:
    found = [row for row in rows if row["finding"] == finding]
    return f"{PARTLY[finding]}: {_by_judge(found)}." if found else ""


def _lost(rows: Sequence[Row]) -> str:
    lost = [row for row in rows if row.get("lost_finding")]
    if not lost:
        return ""
    return f"The share of invalid votes on the perturbed answer differs: {_by_judge(lost)}."


def _detract(rows: Sequence[Row], persons: Collection[str]) -> str:
    cells = [row for row in rows if row["kind"] == "detract"]
    if not cells:
        return ""
    blind = [row for row in cells if row["finding"] in BLIND]
    if blind:
        one = _alone(blind, cells, persons)
        verb = BLIND if one else ("overlook", "reward")
        return (
            f"{share_of(names(blind), names(cells), persons)} {verb[0]} or"
            f" {verb[1]} a flaw: {_by_judge(blind)}."
        )
    seen = sum(row["finding"] == "detects" for row in cells)
    shown = f"{seen} of {count(len(cells), 'cell')}" if seen else "no cell"
    return (
        f"{_nobody(cells, persons)} was found to overlook or reward any single kind of flaw;"
        f" the flaw was detected in {shown}."
    )


def _position(rows: Sequence[Row], persons: Collection[str]) -> str:
    """Say which judges favour a slot, leaving out people without a finding."""
    cells = [row for row in rows if row["finding"] or not is_person(row["judge"], persons)]
    if not cells:
        return ""
    moved = sorted(
        (row for row in cells if row["finding"] == "biased"), key=lambda row: -abs(row["estimate"])
    )
    clear = sum(row["finding"] == "no relevant bias" for row in cells)
    rest = len(cells) - len(moved) - clear
    others = [f"{thousands(clear)} without relevant position bias"] if clear else []
    others += [f"{thousands(rest)} inconclusive"] if rest else []
    more = f" ({listing(others)})" if others else ""
    if not moved:
        return f"{_nobody(cells, persons)} was found to favour a slot{more}."
    verb = "favours" if _alone(moved, cells, persons) else "favour"
    each = [
        f"{tagged(row)} the {'first' if row['estimate'] > 0 else 'second'} ({_effect(row)})"
        for row in moved[:NAMED]
    ]
    unnamed = [f"and {count(len(moved) - NAMED, 'other')}"] if len(moved) > NAMED else []
    return (
        f"{share_of(names(moved), names(cells), persons)} {verb} one slot:"
        f" {'; '.join([*each, *unnamed])}{more}."
    )


def _effect(row: Row) -> str:
    """Write an effect with its interval; below 0 it favours the second slot, as in tables."""
    low, high = row["low"], row["high"]
    size = number(row["estimate"]) + (f" {interval(low, high)}" if low is not None else "")
    return f"position gap {size}" if row["statistic"] == GAP else f"{size} logits"


OPEN = {"detects some": "with some flaws detected"}
"""Finding that is neither good nor bad -> how a count names it."""


def _open(rows: Sequence[Row], persons: Collection[str]) -> str:
    """Count the cells whose gate is inconclusive, by finding or by the reason for none."""
    reasons = Counter(
        VOTING if is_person(row["judge"], persons) else row["reason"] or "no reason was recorded"
        for row in rows
        if row["finding"] is None
    )
    decided = {None, *FAILS, *PASSES}
    found = Counter(row["finding"] for row in rows if row["finding"] not in decided)
    parts = [f"{n} {OPEN.get(finding, finding)}" for finding, n in sorted(found.items())]
    parts += [
        f"{n} without a finding: {shorten(clean(why), LONGEST_REASON)}"
        for why, n in sorted(reasons.items())
    ]
    left = found.total() + reasons.total()
    verb = "neither passes nor fails" if left == 1 else "neither pass nor fail"
    cells = count(len(rows), "combination")
    said = f"{left} of {cells} of judge and perturbation {verb} ({listing(parts)})."
    return said if left else ""


def _alone(some: Sequence[Row], cells: Sequence[Row], persons: Collection[str]) -> bool:
    """Tell whether the verb is singular: the sentence is about one judge, or one person."""
    kinds = {is_person(judge, persons) for judge in names(cells)}
    return len(names(some)) == 1 and len(kinds) == 1


def _nobody(cells: Sequence[Row], persons: Collection[str]) -> str:
    kinds = {is_person(judge, persons) for judge in names(cells)}
    return "No " + " and no ".join("person" if kind else "judge" for kind in sorted(kinds))


def _judges(rows: Sequence[Row]) -> list[str]:
    """Return the judges, the most moved first."""
    sizes: dict[str, float] = {}
    for row in rows:
        sizes[row["who"]] = max(sizes.get(row["who"], 0.0), abs(row["estimate"] or 0.0))
    return sorted(sizes, key=lambda who: (-sizes[who], who))


def _by_judge(rows: Sequence[Row]) -> str:
    parts = []
    for who in _judges(rows)[:NAMED]:
        own = [row for row in rows if row["who"] == who]
        if own[0]["kind"] == "detract":
            found: dict[str, list[str]] = {}
            for row in own:
                found.setdefault(row["finding"], []).append(_short(row))
            words = listing([f"{word} {listing(flaws)}" for word, flaws in found.items()])
        else:
            words = f"by {listing([_short(row) for row in own])}"
        parts.append(f"{tagged(own[0])} {words}")
    rest = len(_judges(rows)) - NAMED
    return "; ".join([*parts, f"and {count(rest, 'other')}"] if rest > 0 else parts)


def _short(row: Row) -> str:
    return clip(clean(row["perturbation"]), 40)


SOME = "(some simulated)"
MOST_NAMED = 8


def is_person(judge: str, persons: Collection[str] = NO_NAMES) -> bool:
    """Tell whether a judge is a person: one from the booth, or one that a file calls human."""
    return judge.startswith(f"{PEOPLE}/") or judge in persons


def count_of_judges(judges: Collection[str], persons: Collection[str] = NO_NAMES) -> str:
    """Count judges and people: ``5 judges and 2 people``."""
    models, people = _split(judges, persons)
    counts = [count(models, "judge")] if models or not people else []
    return listing([*counts, *([count(people, "person", "people")] if people else [])])


def share_of(some: Collection[str], of: Collection[str], persons: Collection[str]) -> str:
    """Count some of the judges and people: ``1 of 5 judges and 0 of 2 people``."""
    models, people = _split(of, persons)
    some_models, some_people = _split(some, persons)
    counts = [f"{thousands(some_models)} of {count(models, 'judge')}"] if models else []
    if people:
        counts.append(f"{thousands(some_people)} of {count(people, 'person', 'people')}")
    return listing(counts)


def names(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the distinct judges of rows."""
    return {row["judge"] for row in rows}


def marks_of(rows: pl.DataFrame, persons: Collection[str] = NO_NAMES) -> dict[str, str]:
    """Return the mark of each simulated judge, and of each group with one."""
    marked = formulas(rows)
    real = {*rows["judge"]} - marked - {*GROUPS}
    mixed = any(not is_person(judge, persons) for judge in real)
    return {name: SOME if name in GROUPS and mixed else MARK for name in sorted(marked)}


def with_mark(name: str, marks: Mapping[str, str], between: str = " ") -> str:
    """Return a name with its own mark, if it has one."""
    return f"{name}{between}{marks[name]}" if name in marks else name


def simulated_sentence(judges: Collection[str], simulated: Collection[str]) -> str:
    """State whether all judges are simulated, or which; empty if none is."""
    own = sorted({*judges} & {*simulated})
    if not own:
        return ""
    if len(own) == len({*judges}):
        return "All judges are simulated, with planted biases; they are not language models"
    named = first_few([clip(clean(name), 60) for name in own], MOST_NAMED)
    verb = "is simulated" if len(own) == 1 else "are simulated"
    return (
        f"{thousands(len(own))} of {count(len({*judges}), 'judge')} {verb} with planted biases, not"
        f" {'a language model' if len(own) == 1 else 'language models'}: {listing(named)}"
    )


def not_recognised(perturbations: Iterable[str | None]) -> str:
    """State which perturbations simulated judges may not recognise; empty if none.

    They read texts, not names: a change that looks like a bundled one has its effect.
    """
    bundled = PERTURBATIONS.keys() - PERTURBATIONS.own
    own = sorted({name for name in perturbations if name and name.split(SECOND)[0] not in bundled})
    if not own:
        return ""
    named = first_few([clip(clean(name), 60) for name in own], MOST_NAMED)
    return (
        "Simulated judges recognise only changes of the kinds that the bundled perturbations make. "
        f"To them any other, as {listing(named)} may be, makes a different answer, better or worse "
        "at random"
    )


def _split(judges: Collection[str], persons: Collection[str]) -> tuple[int, int]:
    distinct = set(judges)
    people = sum(is_person(judge, persons) for judge in distinct)
    return len(distinct) - people, people
