"""The rows of the report's table of every number, as texts."""

from collections.abc import Collection, Mapping

import polars as pl

from tasks._heads import MARK, NO_NAMES, SOME, marks_of, with_mark
from tasks._report_rows import Judged, Row, Text, said
from tasks._words import number, p_value, thousands, with_who


def all_rows(estimates: pl.DataFrame, persons: Collection[str] = NO_NAMES) -> list[Judged]:
    """Return every estimate, or row of ``mart.numbers``, with what it rests on."""
    if estimates.is_empty():
        return []
    marks = marks_of(estimates, persons)
    ordered = with_who(estimates.with_columns(either="simulated")).sort(
        "statistic", "perturbation", "who", nulls_last=True, maintain_order=True
    )
    return [_whole(row, marks) for row in ordered.to_dicts()]


def _whole(row: Row, marks: Mapping[str, str]) -> Judged:
    value = said(row, 3)
    part = with_mark(row["subgroup"], marks) if row["either"] else row["subgroup"]
    sizes = [thousands(row[c]) for c in ("n", "clusters", "dropped", "votes_per_pair")]
    texts = [
        row["statistic"],
        ", ".join(filter(None, [row["perturbation"] or "all", part])),
        value.text,
        value.note,
        "" if row["level"] is None else number(row["level"]),
        *sizes,
        "" if row["p_value"] is None else p_value(row["p_value"]),
        "" if row.get("p_adjusted") is None else p_value(row["p_adjusted"]),
        row["method"] or "",
    ]
    rests_on = Text(_rests_on(row))
    mark = marks.get(row["judge"])
    name = f"{row['who']} {SOME}" if mark == SOME else row["who"]
    return Judged(name, mark == MARK, [Text(text) for text in texts], rests_on)


def _rests_on(row: Row) -> str:
    """Say what of a row of ``mart.numbers`` has no column of its own."""
    votes, invalid = row.get("votes"), row.get("invalid_rate")
    adjusted, found = row.get("adjustment"), row.get("finding")
    told = [
        f"adjusted by {adjusted}" if adjusted else "",
        f"finding: {found}" if found else "",
        f"{row['design']} orders" if row.get("design") else "",
        f"floor: {row['floor']}" if row.get("floor") else "",
        f"{thousands(votes)} valid votes" if votes is not None else "",
        f"{number(invalid, 3)} invalid" if invalid is not None else "",
        f"epoch {row['epoch']}" if row.get("epoch") is not None else "",
        f"seed {row['seed']}" if row.get("seed") is not None else "",
        f"study seed {row['study_seed']}" if row.get("study_seed") is not None else "",
        f"prompt {row['prompt']} {row['prompt_digest']}" if row.get("prompt_digest") else "",
        f"code {row['code_version']}" if row.get("code_version") else "",
    ]
    return "; ".join(filter(None, told))
