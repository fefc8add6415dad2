"""Rows of the report's tables: contrasts, adjustments, position bias, categories, criteria, all."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import CategoryShifts
from schemas.frame import Row
from schemas.keys import CONDITIONS, unit_name
from schemas.results import Contrasts, Estimates, Findings
from tasks.inference.quantiles import normal_quantile
from tasks.kit.defaults import ALPHA
from tasks.pointwise.endpoints import criterion_shifts, labelled
from tasks.reporting.rows import CellText, Group, Judged, Lookup, finding_text, said
from tasks.reporting.summary import NO_NAMES, SOME, is_person, marks_of, names, with_mark
from tasks.reporting.wording import (
    MARK,
    clean,
    count,
    formulas,
    in_report_order,
    interval,
    marked,
    number,
    p_value,
    rated_unit,
    thousands,
    who_of,
    with_who,
)

RATED = {"rating_sham_contrast": "sd", "rating_contrast": "sd"}
RATED |= {"pass_rate_sham_contrast": "share", "pass_rate_contrast": "share"}
"""Contrasts of ratings -> the unit of their difference."""
PRIMARY = ("mps_sham_contrast", "mps_contrast", *RATED)
PAIR = (*CONDITIONS, "perturbation", "judge", "other", "other_prompt")
"""Columns that identify two judges, or two prompts, under a perturbation."""
BESIDE = ("los_contrast", "asr_contrast", "mcnemar")
WORDS = ("biased", "no relevant bias", "inconclusive")
FEWEST_PAIRS = 10
"""Pairs of judges that are listed of each perturbation at least."""
UNITS = {"score": "MPS", "points": "points", "share": "pass rate", "labels": "share of labels"}


def _unit(unit: str | None, prompt: str, labels: Collection[str]) -> str:
    """Write a unit; ``labels`` are the prompts whose shares are of labels."""
    key = rated_unit(unit, labels=prompt in labels)
    return UNITS.get(key, key)


def primary_contrasts(found: pl.DataFrame) -> pl.DataFrame:
    """Return the contrast of each pair that its finding rests on.

    That is the one over the sham where both are there, and of grades rather than passes.
    """
    order = pl.col("statistic").cast(pl.Enum(PRIMARY))
    primary = found.filter(pl.col("statistic").is_in(PRIMARY)).sort(order, maintain_order=True)
    return primary.unique(PAIR, keep="first", maintain_order=True)


def contrast_groups(
    found: DataFrame[Contrasts], estimates: DataFrame[Estimates], most: int
) -> list[Group]:
    """Return the pairs of judges, or of prompts, by perturbation; pairs that differ come first.

    Differences of LOS and ASR, and the McNemar test, exist for judges of pairs only. About ``most``
    pairs are listed, as many of each perturbation.
    """
    simulated, labels = formulas(estimates), labelled(estimates)
    beside = {
        (row["statistic"], *(row[c] for c in PAIR)): row
        for row in found.filter(pl.col("statistic").is_in(BESIDE)).to_dicts()
    }
    place = pl.col("finding").cast(pl.String).cast(pl.Enum(WORDS))
    ordered = primary_contrasts(found.with_columns(who_of(found))).sort(
        pl.col("kind") != "promote",
        "perturbation",
        place,
        -pl.col("contrast").abs(),
        "judge",
        "prompt",
        "other",
        "other_prompt",
        nulls_last=True,
    )
    shown = () if ordered["statistic"].is_in([*RATED]).all() else BESIDE
    parts = ordered.partition_by("perturbation", maintain_order=True)
    of_each = max(FEWEST_PAIRS, most // max(len(parts), 1))
    groups = []
    for part in parts:
        rows = [
            _row(row, [beside.get((s, *(row[c] for c in PAIR))) for s in shown], simulated, labels)
            for row in part.head(of_each).to_dicts()
        ]
        summary = _count_findings(part["finding"].to_list())
        groups.append(Group(part["perturbation"][0], rows, summary=summary, pairs=part.height))
    return groups


def _count_findings(findings: Sequence[str | None]) -> str:
    apart = sum(finding == "biased" for finding in findings)
    alike = sum(finding == "no relevant bias" for finding in findings)
    return (
        f"a difference in {thousands(apart)} of {count(len(findings), 'comparison')}, no relevant "
        f"difference in {thousands(alike)}"
    )


def _row(
    row: Row, beside: Sequence[Row | None], simulated: Collection[str], labels: Collection[str]
) -> Judged:
    # With its prompt if that is another one.
    name = unit_name(row["other"], row["other_prompt"], [row["prompt"], row["other_prompt"]])
    other = Judged(name, row["other"] in simulated, [])
    texts = [
        difference(row, labels),
        CellText(p_value(row["p_holm"]), _raw(row)),
        *map(_beside, beside),
        _sizes(row),
    ]
    finding = _finding(row, simulated)
    return Judged(row["who"], row["judge"] in simulated, texts, finding, other=other)


def _beside(row: Row | None) -> CellText:
    """Write a further comparison of two judges: a difference, or the p-value of a test."""
    if row is None:
        return CellText("not measured")
    if row["statistic"] == "mcnemar":
        return CellText(p_value(row["p_holm"]), _raw(row))
    return difference(row, with_words=True)


def _finding(row: Row, simulated: Collection[str]) -> CellText:
    if row["finding"] is None:
        return CellText("no finding", row["reason"] or "no reason was recorded")
    if row["finding"] != "biased":
        return CellText(row["finding"])
    higher, prompt = (
        (row["judge"], row["prompt"])
        if row["contrast"] > 0
        else (row["other"], row["other_prompt"])
    )
    named = unit_name(higher, prompt, [row["prompt"], row["other_prompt"]])
    named = marked(named, simulated=higher in simulated)
    rated = row["statistic"] in RATED
    return CellText(
        "biased",
        f"the shift of {named} is higher"
        if rated
        else f"{named} is moved further toward the target",
    )


def difference(row: Row, labels: Collection[str] = (), *, with_words: bool = False) -> CellText:
    """Write a contrast with its unit and interval; ``labels`` are the prompts that ask for labels.

    ``with_words`` adds the finding and its p-value.
    """
    text = said({**row, "estimate": row["contrast"]})
    if unit := RATED.get(row["statistic"]):
        text = text._replace(text=f"{text.text} {_unit(unit, row['prompt'], labels)}")
    if not with_words or row["finding"] is None:
        return text
    return CellText(text.text, f"{text.note}; {row['finding']}, p {p_value(row['p_holm'])}")


def _raw(row: Row) -> str:
    return "" if row["p_value"] is None else f"raw {p_value(row['p_value'])}"


def _sizes(row: Row) -> CellText:
    values = (row["judge_value"], row["other_value"])
    known = " and ".join(number(value) for value in values if value is not None)
    samples = count(row["n"], "sample") if row["n"] != row["clusters"] else ""
    measure = "shift" if row["statistic"] in RATED else "MPS"
    return CellText(
        thousands(row["clusters"]), ", ".join(filter(None, [samples, f"{measure} {known}"]))
    )


PS = ("p_value", "p_adjusted", "p_holm", "p_by")
HALF = float(normal_quantile(0.975))


def adjustment_rows(findings: DataFrame[Findings]) -> list[Judged]:
    """Return per cell each p-value, evidence, the shrunk estimate and the spread of shifts."""
    rows = []
    for row in in_report_order(findings).to_dicts():
        e = row["e_value"]
        texts = (
            row["perturbation"],
            said(row),
            *(p_value(row[name]) for name in PS),
            "none" if e is None else number(e) if e < 1000 else f"{e:.0e}",
            {None: "none", True: "yes", False: "no"}[row["e_rejected"]],
            _shrunk(row),
            _spread(row),
        )
        rows.append(Judged.of(row, *texts))
    return rows


def _spread(row: Row) -> CellText:
    value, low, high = (row[f"shift_spread{end}"] for end in ("", "_low", "_high"))
    if value is None:
        return CellText("none", "no votes in both orders")
    return CellText(number(value), interval(low, high) if low is not None else "")


def _shrunk(row: Row) -> CellText:
    value, error = row["shrunk"], row["shrunk_error"]
    if value is None or error is None:
        return CellText("none", "fewer than three judges, or no error")
    return CellText(number(value), interval(value - HALF * error, value + HALF * error))


class NumbersTable(NamedTuple):
    """Estimates, or rows of ``mart.numbers``, with their provenance."""

    rows: list[Judged]
    shared: str
    """The provenance that all rows share."""


def all_rows(estimates: pl.DataFrame, persons: Collection[str] = NO_NAMES) -> NumbersTable:
    """Return every estimate, or row of ``mart.numbers``, with its provenance."""
    if estimates.is_empty():
        return NumbersTable([], "")
    marks = marks_of(estimates, persons)
    ordered = with_who(estimates.with_columns(either="simulated")).sort(
        "statistic", "perturbation", "who", nulls_last=True, maintain_order=True
    )
    rows = ordered.to_dicts()
    notes = [_rests_on(row) for row in rows]
    shared = {*notes[0]}.intersection(*notes) if len(notes) > 1 else set()
    return NumbersTable(
        [
            _whole(row, marks, [note for note in own if note not in shared])
            for row, own in zip(rows, notes, strict=True)
        ],
        "; ".join(note for note in notes[0] if note in shared),
    )


def _whole(row: Row, marks: Mapping[str, str], notes: Sequence[str]) -> Judged:
    value = said(row)
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
    mark = marks.get(row["judge"])
    name = f"{row['who']} {SOME}" if mark == SOME else row["who"]
    cells = [CellText(text) for text in texts]
    return Judged(name, mark == MARK, cells, CellText("; ".join(notes)))


def _rests_on(row: Row) -> list[str]:
    """Describe the parts of a row of ``mart.numbers`` that have no column of their own."""
    votes, invalid = row.get("votes"), row.get("invalid_rate")
    adjusted, found = row.get("adjustment"), row.get("finding")
    notes = [
        f"adjusted by {adjusted}" if adjusted else "",
        f"finding: {found}" if found else "",
        f"{row['design']} orders" if row.get("design") else "",
        f"floor: {row['floor']}" if row.get("floor") else "",
        f"{thousands(votes)} valid votes" if votes is not None else "",
        f"{number(invalid)} invalid" if invalid is not None else "",
        f"epoch {row['epoch']}" if row.get("epoch") is not None else "",
        f"seed {row['seed']}" if row.get("seed") is not None else "",
        f"study seed {row['study_seed']}" if row.get("study_seed") is not None else "",
        f"prompt {row['prompt']} {row['prompt_digest']}" if row.get("prompt_digest") else "",
        f"code {row['code_version']}" if row.get("code_version") else "",
    ]
    return [note for note in notes if note]


COLUMNS = {
    "Position gap": "position_gap",
    "Effect in logits": "position_kappa",
    "Position consistency": "position_consistency",
    "Excess conflict": "excess_conflict",
    "Accuracy": "accuracy",
}
"""Name in the table -> statistic of the control arm."""


def position_table(
    findings: DataFrame[Findings],
    estimates: DataFrame[Estimates],
    persons: Collection[str] = NO_NAMES,
) -> dict[str, Any]:
    """Return the known columns, a row per judge, and the people without a result, as a sentence."""
    whole = estimates.filter(pl.col("perturbation").is_null(), pl.col("subgroup") == "")
    known = {*whole.filter(pl.col("estimate").is_not_null())["statistic"]}
    shown = {name: statistic for name, statistic in COLUMNS.items() if statistic in known}
    lookup = Lookup(whole)
    every = with_who(findings).sort(-pl.col("estimate").abs(), "who", nulls_last=True).to_dicts()
    rows = [row for row in every if row["finding"] or not is_person(row["judge"], persons)]
    listed = names(rows)
    others = [row for row in every if row["judge"] not in listed]
    measured = [lookup.find(row["statistic"], row, None) for row in rows]
    return {
        "columns": list(shown),
        "rows": [
            Judged.of(
                row,
                *(said(lookup.find(statistic, row, None)) for statistic in shown.values()),
                p_value(row["p_adjusted"]),
                thousands(own["clusters"]) if own else "",
                finding=finding_text(row),
            )
            for row, own in zip(rows, measured, strict=True)
        ],
        "without_result": _without_result(others),
    }


def _without_result(rows: Sequence[Row]) -> str:
    """Count the people without a result, by reason; empty if there are none."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        by_reason.setdefault(clean(row["reason"] or ""), []).append(row)
    sentences = [
        f"No result about position for {count(len(names(some)), 'person', 'people')}"
        f"{f': {reason}' if reason else ''}."
        for reason, some in sorted(by_reason.items())
    ]
    return " ".join(sentences)


def by_category(found: DataFrame[CategoryShifts]) -> pl.DataFrame:
    """Return the shifts with ``who``; none if all are of one category."""
    named = with_who(found)
    return named if found["category"].n_unique() > 1 else named.clear()


def category_groups(
    found: DataFrame[CategoryShifts], estimates: DataFrame[Estimates]
) -> list[Group]:
    """Return the shift of each judge in each category, by perturbation."""
    ordered = by_category(found).sort("perturbation", "who", "category")
    labels = labelled(estimates)
    groups = []
    for (perturbation,), part in ordered.group_by("perturbation", maintain_order=True):
        rows = [
            Judged.of(
                row,
                row["category"],
                said(row),
                _unit(row["unit"], row["prompt"], labels),
                p_value(row["p_value"]),
                p_value(row["p_adjusted"]),
                thousands(row["clusters"]),
            )
            for row in part.to_dicts()
        ]
        moved = int((part["p_adjusted"] < ALPHA).sum())
        summary = f"{moved} of {count(len(rows), 'shift')} differ from 0 (adjusted p below .05)"
        groups.append(Group(str(perturbation), rows, summary=summary))
    return groups


def by_criterion(estimates: pl.DataFrame, findings: pl.DataFrame) -> pl.DataFrame:
    """Return the shift of each criterion or label (``of`` says which), with ``who``."""
    of = pl.when(pl.col("prompt").is_in(labelled(estimates))).then(pl.lit("label"))
    rows = with_who(criterion_shifts(estimates, findings))
    return rows.with_columns(of=of.otherwise(pl.lit("criterion")))


def criterion_rows(estimates: pl.DataFrame, findings: pl.DataFrame) -> list[Judged]:
    """Return the shift of each judge in each criterion."""
    labels = labelled(estimates)
    rows = by_criterion(estimates, findings).sort("perturbation", "who", "subgroup").to_dicts()
    return [
        Judged.of(
            row,
            row["perturbation"],
            row["subgroup"],
            said(row),
            _unit(row["unit"], row["prompt"], labels),
            thousands(row["clusters"]),
        )
        for row in rows
    ]
