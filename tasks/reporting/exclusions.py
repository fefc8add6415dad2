"""Excluded judges, as the report lists them."""

from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Exclusions, KeptFindings
from tasks.reporting.rows import Row, Without, judge_of
from tasks.reporting.wording import interval, listing, number, tagged, with_who

RULES = {"position gap": "position_gap", "tie rate": "tie_rate", "invalid rate": "invalid_rate"}
SIGNED = "position gap"
"""Its limit holds on either side."""


class Rule(NamedTuple):
    """The exclusion rule and the excluded judges, as texts; all empty if it was not applied."""

    limits: str = ""
    left_out: str = ""
    undecided: str = ""


def without(exclusions: DataFrame[Exclusions], kept_findings: DataFrame[KeptFindings]) -> Without:
    """Return why judges are excluded, and the findings without them."""
    out = exclusions.filter(pl.col("excluded")).to_dicts()
    return Without(
        {judge_of(row): _why(row) for row in out},
        {(*judge_of(row), row["perturbation"]): row for row in kept_findings.to_dicts()},
    )


def rule(exclusions: DataFrame[Exclusions]) -> Rule:
    """Say at which limits judges are left out, and who is."""
    if exclusions.is_empty():
        return Rule()
    rows = with_who(exclusions).sort("who").to_dicts()
    limits = [f"{name} {number(rows[0][f'{column}_limit'])}" for name, column in RULES.items()]
    out = [f"{tagged(row)}: {_why(row)}" for row in rows if row["excluded"]]
    undecided = [tagged(row) for row in rows if row["excluded"] is None]
    return Rule(listing(limits), "; ".join(out), listing(undecided))


def _why(row: Row) -> str:
    """Write each rule that is broken: the value, its interval and the limit."""
    reasons = []
    for name in row["reasons"].split(", "):
        column = RULES[name]
        value, limit = number(row[column]), number(row[f"{column}_limit"])
        ends = interval(row[f"{column}_low"], row[f"{column}_high"])
        beyond = f"beyond \N{PLUS-MINUS SIGN}{limit}" if name == SIGNED else f"above {limit}"
        reasons.append(f"{name} {value} {ends}, {beyond}")
    return listing(reasons)
