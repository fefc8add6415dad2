"""The rows of the report's table of judges on unperturbed pairs, as texts."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates, Findings
from tasks._heads import NO_NAMES, is_person, names
from tasks._report_rows import Judged, Lookup, Text, said
from tasks._summary import finding_words
from tasks._words import clean, count, listing, p_value, thousands, with_who

COLUMNS = {
    "Position gap": "position_gap",
    "Effect in logits": "position_kappa",
    "Position consistency": "position_consistency",
    "Excess conflict": "excess_conflict",
    "Accuracy": "accuracy",
}
"""Name in the table -> statistic of the control arm."""



class PositionTable(NamedTuple):
    """What the report shows of the place of an answer."""

    columns: list[str]
    """The names of the columns that are known."""
    rows: list[Judged]
    not_told: str
    """The people who have no row."""


def position_table(
    findings: DataFrame[Findings],
    estimates: DataFrame[Estimates],
    persons: Collection[str] = NO_NAMES,
) -> PositionTable:
    """Return a row per judge; people of whom nothing can be told are counted, not listed."""
    whole = estimates.filter(pl.col("perturbation").is_null(), pl.col("subgroup") == "")
    known = {*whole.filter(pl.col("estimate").is_not_null())["statistic"]}
    shown = {name: statistic for name, statistic in COLUMNS.items() if statistic in known}
    lookup = Lookup(whole)
    every = with_who(findings).sort(-pl.col("estimate").abs(), "who", nulls_last=True).to_dicts()
    rows = [row for row in every if row["finding"] or not is_person(row["judge"], persons)]
    told_of = names(rows)
    others = [row for row in every if row["judge"] not in told_of]
    return PositionTable(
        list(shown),
        [
            Judged(
                row["who"],
                bool(row["simulated"]),
                [
                    *(said(lookup.find(statistic, row, None)) for statistic in shown.values()),
                    Text(p_value(row["p_adjusted"])),
                    Text(_questions(lookup.find(row["statistic"], row, None))),
                ],
                _words(row),
            )
            for row in rows
        ],
        _not_told(others),
    )


def _not_told(rows: Sequence[Row]) -> str:
    """Count the people of whom nothing can be told, with the reasons; empty if there are none."""
    if not rows:
        return ""
    reasons = listing(sorted({clean(row["reason"] or "") for row in rows} - {""}))
    whom = count(len(names(rows)), "person", "people")
    return f"Of {whom} nothing can be told about position{f': {reasons}' if reasons else ''}."


def _words(row: Row) -> Text:
    finding, note = finding_words(row)
    more = row["reason"] if row["finding"] is not None else ""
    return Text(finding, "; ".join(filter(None, [note, more])))


def _questions(row: Row | None) -> str:
    return thousands(row["clusters"]) if row else ""
