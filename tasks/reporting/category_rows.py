"""Rows of the report's tables of shifts by category."""

from typing import NamedTuple

from pandera.typing.polars import DataFrame

from schemas.conclusions import CategoryShifts
from tasks.reporting.rows import Judged, Text, said
from tasks.reporting.wording import count, p_value, thousands, with_who

UNITS = {"score": "MPS", "points": "points", "share": "pass rate"}


class Categories(NamedTuple):
    """The shifts by category under one perturbation."""

    perturbation: str
    summary: str
    rows: list[Judged]


def category_groups(found: DataFrame[CategoryShifts]) -> list[Categories]:
    """Return the shift of each judge in each category, by perturbation."""
    if found.is_empty() or found["category"].n_unique() < 2:
        return []
    ordered = with_who(found).sort("perturbation", "who", "category")
    groups = []
    for (perturbation,), part in ordered.group_by("perturbation", maintain_order=True):
        rows = [
            Judged(
                row["who"],
                bool(row["simulated"]),
                [
                    Text(row["category"]),
                    said(row),
                    Text(UNITS.get(row["unit"], row["unit"] or "")),
                    Text(p_value(row["p_value"])),
                    Text(p_value(row["p_adjusted"])),
                    Text(thousands(row["clusters"])),
                ],
            )
            for row in part.to_dicts()
        ]
        moved = int((part["p_adjusted"] < 0.05).sum())
        summary = f"{moved} of {count(len(rows), 'shift')} differ from 0 (adjusted p below .05)"
        groups.append(Categories(str(perturbation), summary, rows))
    return groups
