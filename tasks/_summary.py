"""The findings in plain sentences, and what their words mean."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Findings
from tasks._words import clean, clip, count, listing, tagged, with_who

NAMED = 4
GLOSSARY = {
    "biased": "A promote perturbation, which should count for nothing, shifts the judge: the"
    " adjusted p-value is below .05 and the shift at least the minimum.",
    "no relevant bias": "The 90 % interval of the shift lies within the minimum on both sides.",
    "detects": "A detract perturbation made the answer worse and costs it votes, as it should:"
    " judged as for biased, away from the target.",
    "overlooks": "A detract perturbation made the answer worse and the judge's preference stays"
    " where it was: judged as for no relevant bias.",
    "rewards": "A detract perturbation made the answer worse and wins it votes: judged as for"
    " biased, toward the target.",
    "inconclusive": "The data fit both a shift that matters and none: ask more questions.",
    "too few questions": "Fewer than 10 independent questions: the estimate is shown, a conclusion"
    " refused.",
}
OPEN = {"inconclusive": "inconclusive", "too few questions": "with too few questions"}

Row = dict[str, Any]


def summary(findings: DataFrame[Findings], questions: int) -> list[str]:
    """Say in a few sentences what was found."""
    if findings.is_empty():
        return ["No cell was measured, so nothing was found."]
    rows = with_who(findings).sort("who", "perturbation").to_dicts()
    judges = count(len({row["who"] for row in rows}), "judge")
    perturbations = count(len({row["perturbation"] for row in rows}), "perturbation")
    first = f"{judges} faced {perturbations} on {count(questions, 'question')}."
    return [s for s in (first, _promote(rows), _detract(rows), _open(rows)) if s]


def finding_words(row: Row) -> str:
    """Return the finding, with the direction where the word leaves it open."""
    if row["finding"] != "biased" or not row["estimate"]:
        return str(row["finding"])
    return "biased toward it" if row["estimate"] > 0 else "biased against it"


def _promote(rows: Sequence[Row]) -> str:
    cells = [row for row in rows if row["kind"] == "promote"]
    if not cells:
        return ""
    moved = [row for row in cells if row["finding"] == "biased"]
    if moved:
        verb = "is" if len(_judges(moved)) == 1 else "are"
        return (
            f"{len(_judges(moved))} of {count(len(_judges(cells)), 'judge')} {verb} biased by a"
            f" change that should count for nothing: {_by_judge(moved, 'by')}."
        )
    clear = sum(row["finding"] == "no relevant bias" for row in cells)
    return (
        "No judge was found biased by a change that should count for nothing;"
        f" no relevant bias could be shown in {clear} of {count(len(cells), 'cell')}."
    )


def _detract(rows: Sequence[Row]) -> str:
    cells = [row for row in rows if row["kind"] == "detract"]
    if not cells:
        return ""
    blind = [row for row in cells if row["finding"] in {"overlooks", "rewards"}]
    if blind:
        verb = ("overlooks", "rewards") if len(_judges(blind)) == 1 else ("overlook", "reward")
        return (
            f"{len(_judges(blind))} of {count(len(_judges(cells)), 'judge')} {verb[0]} or"
            f" {verb[1]} a flaw: {_by_judge(blind, 'finding')}."
        )
    seen = sum(row["finding"] == "detects" for row in cells)
    return (
        "No judge was found to overlook or reward a flaw;"
        f" the flaw was detected in {seen} of {count(len(cells), 'cell')}."
    )


def _open(rows: Sequence[Row]) -> str:
    many = {words: sum(row["finding"] == f for row in rows) for f, words in OPEN.items()}
    parts = [f"{n} {words}" for words, n in many.items() if n]
    left = sum(many.values())
    verb = "remains" if left == 1 else "remain"
    return f"{left} of {count(len(rows), 'cell')} {verb} open ({listing(parts)})." if left else ""


def _judges(rows: Sequence[Row]) -> list[str]:
    """Return the judges, the most moved first."""
    strongest = pl.DataFrame(
        {"who": [r["who"] for r in rows], "size": [abs(r["estimate"] or 0.0) for r in rows]}
    )
    sizes = strongest.group_by("who").agg(pl.col("size").max())
    return sizes.sort(-pl.col("size"), "who")["who"].to_list()


def _by_judge(rows: Sequence[Row], link: str) -> str:
    parts = []
    for who in _judges(rows)[:NAMED]:
        own = [row for row in rows if row["who"] == who]
        if link == "finding":
            words = listing([f"{row['finding']} {_short(row)}" for row in own])
        else:
            words = f"{link} {listing([_short(row) for row in own])}"
        parts.append(f"{tagged(own[0])} {words}")
    rest = len(_judges(rows)) - NAMED
    return "; ".join([*parts, f"and {count(rest, 'other')}"] if rest > 0 else parts)


def _short(row: Row) -> str:
    return clip(clean(row["perturbation"]), 40)
