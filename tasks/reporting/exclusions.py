"""Excluded judges, as the report lists them."""

from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates, Exclusions, Findings
from tasks.conclude import conclude, endpoints
from tasks.conclusions.exclusions import kept
from tasks.conclusions.rules import detects_at_of
from tasks.kit.defaults import DEFAULTS, Thresholds
from tasks.reporting.rows import Without, judge_of
from tasks.reporting.wording import interval, listing, number, tagged, with_who

RULES = {"position gap": "position_gap", "tie rate": "tie_rate", "invalid rate": "invalid_rate"}
SIGNED = "position gap"
"""Its limit holds on either side."""

Row = dict[str, Any]


class Rule(NamedTuple):
    """The rule and whom it leaves out, in words; all empty if it was not applied."""

    limits: str = ""
    left_out: str = ""
    undecided: str = ""


def without(
    estimates: DataFrame[Estimates],
    exclusions: DataFrame[Exclusions],
    findings: DataFrame[Findings],
    thresholds: Thresholds = DEFAULTS,
) -> Without:
    """Conclude again without the judges that are left out, by what ``findings`` went by."""
    out = exclusions.filter(pl.col("excluded")).to_dicts()
    if not out:
        return Without({}, {})
    rest = endpoints(Estimates.of(kept(estimates, exclusions)))
    found = conclude(rest, detects_at_of(findings), thresholds)
    return Without(
        {judge_of(row): _why(row) for row in out},
        {(*judge_of(row), row["perturbation"]): row for row in found.to_dicts()},
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
    told = []
    for name in row["reasons"].split(", "):
        column = RULES[name]
        value, limit = number(row[column]), number(row[f"{column}_limit"])
        ends = interval(row[f"{column}_low"], row[f"{column}_high"])
        beyond = f"beyond \N{PLUS-MINUS SIGN}{limit}" if name == SIGNED else f"above {limit}"
        told.append(f"{name} {value} {ends}, {beyond}")
    return listing(told)
