"""The rows of the report's table of judges held against each other, as texts."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks._heads import MARK
from tasks._report_rows import Judged, Text, said
from tasks._words import count, formulas, number, p_value, thousands
from tasks.contrasts import contrasts

PRIMARY = ("mps_sham_contrast", "mps_contrast")
BESIDE = ("los_contrast", "asr_contrast", "mcnemar")
WORDS = ("biased", "no relevant bias", "inconclusive")
CELL = ("dataset", "prompt", "wave")

Row = dict[str, Any]


class Pair(NamedTuple):
    """Two judges' row: each is marked if it is a formula, whatever the other is."""

    one: Judged
    other: Judged
    texts: list[Text]
    finding: Text


class Contrasted(NamedTuple):
    """All pairs of judges under one perturbation."""

    perturbation: str
    told: str
    """How many pairs got which finding."""
    rows: list[Pair]


def contrast_groups(estimates: DataFrame[Estimates]) -> list[Contrasted]:
    """Return the pairs of judges by perturbation, those told apart first."""
    found = contrasts(estimates)
    simulated = formulas(estimates)
    primary = found.filter(pl.col("statistic").is_in(PRIMARY)).with_columns(_names(found))
    cell = [*CELL, "perturbation", "judge", "other"]
    # Over the sham where both are there.
    primary = primary.sort(pl.col("statistic") != PRIMARY[0], maintain_order=True).unique(
        cell, keep="first", maintain_order=True
    )
    beside = {
        (row["statistic"], *(row[c] for c in cell)): row
        for row in found.filter(pl.col("statistic").is_in(BESIDE)).to_dicts()
    }
    place = pl.col("finding").replace_strict(
        {word: at for at, word in enumerate(WORDS)}, default=len(WORDS), return_dtype=pl.Int64
    )
    ordered = primary.sort(
        pl.col("kind") != "promote", "perturbation", place, -pl.col("contrast").abs(), "judge",
        "other", nulls_last=True,
    )  # fmt: skip
    groups = ordered.partition_by("perturbation", maintain_order=True, as_dict=True)
    return [
        Contrasted(
            str(name),
            _told(rows["finding"].to_list()),
            [
                _row(row, [beside.get((s, *(row[c] for c in cell))) for s in BESIDE], simulated)
                for row in rows.to_dicts()
            ],
        )
        for (name,), rows in groups.items()
    ]  # fmt: skip


def _names(found: pl.DataFrame) -> pl.Expr:
    """Name a judge with whatever else of the cell differs within the frame."""
    differing = [c for c in CELL if found[c].n_unique() > 1]
    return pl.concat_str("judge", *differing, separator=" / ").alias("who")


def _told(findings: Sequence[str | None]) -> str:
    apart = sum(finding == "biased" for finding in findings)
    alike = sum(finding == "no relevant bias" for finding in findings)
    return (
        f"{apart} of {count(len(findings), 'pair')} told apart, {thousands(alike)} without a "
        "relevant difference"
    )


def _row(row: Row, beside: Sequence[Row | None], simulated: Collection[str]) -> Pair:
    los, asr, test = beside
    one = Judged(row["who"], row["judge"] in simulated, [])
    other = Judged(row["other"], row["other"] in simulated, [])
    texts = [
        _difference(row, 3),
        Text(p_value(row["p_holm"]), _raw(row)),
        Text("not measured") if los is None else _difference(los, 2, with_words=True),
        Text("not measured") if asr is None else _difference(asr, 2, with_words=True),
        Text("none") if test is None else Text(p_value(test["p_holm"]), _raw(test)),
        _sizes(row),
    ]
    return Pair(one, other, texts, _finding(row, simulated))


def _finding(row: Row, simulated: Collection[str]) -> Text:
    if row["finding"] is None:
        return Text("no finding", row["reason"] or "no reason was recorded")
    if row["finding"] != "biased":
        return Text(row["finding"])
    higher = row["judge"] if row["contrast"] > 0 else row["other"]
    mark = f" {MARK}" if higher in simulated else ""
    return Text("biased", f"{higher}{mark} is moved further toward the target")


def _difference(row: Row, digits: int, *, with_words: bool = False) -> Text:
    text = said({**row, "estimate": row["contrast"]}, digits)
    if not with_words or row["finding"] is None:
        return text
    return Text(text.text, f"{text.note}; {row['finding']}, p {p_value(row['p_holm'])}")


def _raw(row: Row) -> str:
    return "" if row["p_value"] is None else f"raw {p_value(row['p_value'])}"


def _sizes(row: Row) -> Text:
    values = (row["judge_value"], row["other_value"])
    known = " and ".join(number(value, 3) for value in values if value is not None)
    samples = count(row["n"], "sample") if row["n"] != row["clusters"] else ""
    return Text(thousands(row["clusters"]), ", ".join(filter(None, [samples, f"MPS {known}"])))
