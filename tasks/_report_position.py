"""The rows of the report's table of judges on unperturbed pairs, as texts."""

from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates, Findings
from tasks._report_rows import Judged, Lookup, Text, said
from tasks._summary import finding_words
from tasks._words import p_value, thousands, with_who

COLUMNS = {
    "Position gap": "position_gap",
    "Effect in logits": "position_kappa",
    "Position consistency": "position_consistency",
    "Excess conflict": "excess_conflict",
    "Accuracy": "accuracy",
}
"""Name in the table -> statistic of the control arm."""

Row = dict[str, Any]


def position_table(
    findings: DataFrame[Findings], estimates: DataFrame[Estimates]
) -> tuple[list[str], list[Judged]]:
    """Return the names of the columns that are known, and a row per judge."""
    whole = estimates.filter(pl.col("perturbation").is_null(), pl.col("subgroup") == "")
    known = {*whole.filter(pl.col("estimate").is_not_null())["statistic"]}
    shown = {name: statistic for name, statistic in COLUMNS.items() if statistic in known}
    lookup = Lookup(whole)
    rows = with_who(findings).sort(-pl.col("estimate").abs(), "who", nulls_last=True).to_dicts()
    return list(shown), [
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
    ]


def _words(row: Row) -> Text:
    finding, note = finding_words(row)
    more = row["reason"] if row["finding"] is not None else ""
    return Text(finding, "; ".join(filter(None, [note, more])))


def _questions(row: Row | None) -> str:
    return thousands(row["clusters"]) if row else ""
