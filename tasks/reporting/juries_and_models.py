"""The report's texts on the jury, on excluded judges and about models."""

from collections.abc import Collection
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import JuryFindings, WinChecks
from schemas.frame import Row
from schemas.judging import VERSUS
from schemas.keys import CONDITIONS, JUDGE
from schemas.results import Estimates, Exclusions, KeptFindings
from tasks.conclusions.exclusions import EXCLUDES
from tasks.kit.defaults import TARGET_HALF_WIDTH
from tasks.pointwise.endpoints import labelled
from tasks.reporting.rows import NOT_MEASURED, UNKNOWN, CellText, Judged, Without, judge_of, said
from tasks.reporting.wording import (
    bounds,
    differing,
    interval,
    listing,
    marked,
    number,
    p_value,
    rated_unit,
    tagged,
    thousands,
    with_who,
)


def jury_sentence(found: DataFrame[JuryFindings], estimates: DataFrame[Estimates]) -> str:
    """State the finding about the jury of all under each perturbation; empty without a jury."""
    whole = found.filter(pl.col("left_out").is_null())
    if whole.is_empty():
        return ""
    ordered = whole.sort(*CONDITIONS, pl.col("kind") != "promote", "perturbation")
    sentences = [_finding_of(row, differing(whole)) for row in ordered.to_dicts()]
    return (
        f"All judges as one jury: {listing(sentences)}. p is adjusted over these perturbations only"
        " (Benjamini-Hochberg), as the jury is derived from its members."
        f"{_worth(estimates)}"
    )


def jury_cost(jury: DataFrame[JuryFindings]) -> str:
    """State the cost of a jury verdict; empty if it is unknown or zero."""
    costs = jury.filter(pl.col("left_out").is_null())["cost_usd"]
    usd = max(costs, default=0.0) if costs.count() == len(costs) else None
    if not usd:
        return ""
    return (
        f"A verdict of the whole jury costs {usd:.2g} USD: the sum of what the votes of"
        " all members on a pair cost here."
    )


def _worth(estimates: DataFrame[Estimates]) -> str:
    """Say how many independent judges the members are worth by their errors, if that is known."""
    sizes = estimates.filter(
        pl.col("statistic") == "jury_error_size", pl.col("estimate").is_not_null()
    ).sort(CONDITIONS)
    if sizes.is_empty():
        return ""
    texts = []
    for row in sizes.to_dicts():
        of = "".join(f" / {row[column]}" for column in differing(sizes))
        texts.append(f"{number(row['estimate'])}{bounds(row)}{of}")
    return (
        " Judged by their errors where the correct verdict is known, its members are worth"
        f" {listing(texts)} independent judges."
    )


def _finding_of(row: dict[str, Any], conditions: list[str]) -> str:
    name = " / ".join([row["perturbation"], *(str(row[column]) for column in conditions)])
    if row["finding"] is None:
        return f"{name} no finding ({row['reason']})"
    shift = f"MPS {number(row['shift'])}{bounds(row)}"
    return f"{name} {row['finding']} ({shift}, p {p_value(row['p_adjusted'])})"


SHOWN = ("win_rate_naive", "win_rate", "length_controlled", "ppi_win_rate")
LABELS = ("label_correlation", "effective_labels", "labels_needed")


def model_rows(estimates: DataFrame[Estimates], checked: DataFrame[WinChecks]) -> list[Judged]:
    """Return per judge and pair of models its win rates, and which biases could overturn them."""
    about = estimates.filter(pl.col("subgroup").str.contains(VERSUS, literal=True))
    if about.is_empty():
        return []
    found = {(r["statistic"], *_place(r)): r for r in about.to_dicts()}
    pairs = with_who(about).filter(pl.col("statistic") == "win_rate").sort("who", "subgroup")
    checks = checked.to_dicts()
    return [
        Judged.of(
            row,
            row["subgroup"],
            *(said(found.get((name, *_place(row)))) for name in SHOWN),
            _labels([found.get((name, *_place(row))) for name in LABELS]),
            finding=CellText(
                _conclusion(row, [check for check in checks if _place(check) == _place(row)])
            ),
        )
        for row in pairs.to_dicts()
    ]


def _place(row: Row) -> tuple[str, ...]:
    return (*(row[column] for column in JUDGE), row["subgroup"])


def _labels(rows: list[Row | None]) -> CellText:
    """Write how many labels there are, r, what they are worth and how many it would take."""
    r, worth, needed = rows
    if r is None or worth is None or needed is None:
        return CellText("none")
    many = thousands(r["n"])
    if r["estimate"] is None:
        return CellText(many, f"({r['reason']})")
    width = f"\N{PLUS-MINUS SIGN}{number(TARGET_HALF_WIDTH)}"
    takes = (
        f"{width} is out of reach"
        if needed["estimate"] is None
        else f"{width} takes {thousands(round(needed['estimate']))}"
    )
    value = number(worth["estimate"], 0 if worth["estimate"] >= 10 else 1)
    return CellText(many, f"r {number(r['estimate'])}; worth {value}; {takes}")


def _conclusion(win: Row, checks: list[Row]) -> str:
    """Say which biases could have made the win."""
    (own,) = (check for check in checks if check["perturbation"] is None)
    if not own["won"]:
        return f"not estimable: {win['reason']}" if own["won"] is None else "no winner"
    for check in checks:
        if check["too_few"]:
            return f"no conclusion: {check['too_few']}"
    biases = [check for check in checks if check is not own]
    if fragile := [check for check in biases if check["robust"] is False]:
        changes = [
            f"{check['perturbation']} (a shift of {number(check['tipping_shift'])} reverses it)"
            for check in fragile
        ]
        return f"conclusion not robust to {listing(changes)}"
    if not biases:
        return "no perturbation was measured"
    bounded = sum(check["bias_bound"] is not None for check in biases)
    if bounded < len(biases):
        return f"robust to {bounded} of {len(biases)} biases measured"
    return "robust to the biases measured"


RATINGS = "mean change of a rating if the prompt is reworded"
REWORDED = {
    "verdicts on control pairs that change if the prompt is reworded": (
        "rewording_sensitivity",
        "repeat_sensitivity",
        "rewording_excess",
    ),
    RATINGS: (
        "rating_rewording_change",
        "rating_repeat_change",
        "rating_rewording_excess",
    ),
}
"""What the report calls it -> the rows for other words, for the same words, and the difference."""
UNITS_REWORDED = {
    "points": " points",
    "share": " in the pass rate",
    "labels": " in the share of labels chosen",
}
"""Unit of a change of ratings -> what follows its number."""


class Reworded(NamedTuple):
    """How many verdicts, or how far ratings, of a judge change in other words of its prompt."""

    judge: str
    simulated: bool
    what: str
    """A key of :data:`REWORDED`."""
    unit: str
    """What follows the change of a rating; empty for verdicts."""
    changed: Row
    again: Row
    """The same for the same words, asked again."""
    excess: Row
    missing: str
    """Why the change is unknown, or what chance alone would change; empty if both are known."""


def reworded(estimates: DataFrame[Estimates]) -> list[Reworded]:
    """Return what a reworded prompt changes for each judge; empty if nobody was asked."""
    names = [name for rows in REWORDED.values() for name in rows]
    asked = estimates.filter(pl.col("statistic").is_in(names))["judge"].unique()
    # A judge may have other prompts, without other words.
    named = with_who(estimates.filter(pl.col("judge").is_in(asked.implode()))).sort("who")
    whole, labels = named.filter(subgroup=""), labelled(estimates)
    found = []
    for part in whole.partition_by("who", maintain_order=True):
        rows = {row["statistic"]: row for row in part.to_dicts()}
        asked_for = [what for what, names in REWORDED.items() if {*names} & rows.keys()]
        found += [_reworded(what, rows, labels) for what in asked_for]
    return found


def _reworded(what: str, rows: dict[str, Row], labels: Collection[str]) -> Reworded:
    changed, again, excess = (rows.get(name) or {"estimate": None} for name in REWORDED[what])
    first = next(iter(rows.values()))
    unknown = [
        row.get("reason") or NOT_MEASURED for row in (changed, again) if row["estimate"] is None
    ]
    unit = rated_unit(changed.get("unit"), labels=first["prompt"] in labels)
    after = UNITS_REWORDED[unit] if what == RATINGS and unit else ""
    missing = "; ".join(dict.fromkeys(unknown))
    who, simulated = first["who"], bool(first["simulated"])
    return Reworded(who, simulated, what, after, changed, again, excess, missing)


def rewording(estimates: DataFrame[Estimates]) -> dict[str, str]:
    """Say what a reworded prompt changes; empty if nobody was asked."""
    found: dict[str, list[str]] = {}
    for row in reworded(estimates):
        named = marked(row.judge, simulated=row.simulated)
        texts = found.setdefault(row.what, [])
        if row.missing:
            texts.append(f"{named} {UNKNOWN} ({row.missing})")
            continue
        difference = ""
        if row.excess["estimate"] is not None:
            difference = f", difference {number(row.excess['estimate'])}{bounds(row.excess)}"
        texts.append(
            f"{named} {number(row.changed['estimate'])}{row.unit} (in the same words "
            f"{number(row.again['estimate'])}{difference})"
        )
    return {what: "; ".join(texts) for what, texts in found.items()}


class ExclusionTexts(NamedTuple):
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


def rule(exclusions: DataFrame[Exclusions]) -> ExclusionTexts:
    """State the limits for leaving judges out, and name the judges left out."""
    if exclusions.is_empty():
        return ExclusionTexts()
    rows = with_who(exclusions).sort("who").to_dicts()
    limits = [f"{each.replace('_', ' ')} {number(rows[0][f'{each}_limit'])}" for each in EXCLUDES]
    out = [f"{tagged(row)}: {_why(row)}" for row in rows if row["excluded"]]
    undecided = [tagged(row) for row in rows if row["excluded"] is None]
    return ExclusionTexts(listing(limits), "; ".join(out), listing(undecided))


def _why(row: Row) -> str:
    """Write each rule that is broken: the value, its interval and the limit."""
    reasons = []
    for name in row["reasons"].split(", "):
        column = name.replace(" ", "_")
        value, limit = number(row[column]), number(row[f"{column}_limit"])
        ends = interval(row[f"{column}_low"], row[f"{column}_high"])
        # Only the gap may lie on either side.
        beyond = (
            f"beyond \N{PLUS-MINUS SIGN}{limit}" if name == "position gap" else f"above {limit}"
        )
        reasons.append(f"{name} {value} {ends}, {beyond}")
    return listing(reasons)
