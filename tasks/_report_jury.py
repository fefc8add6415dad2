"""What is concluded of the jury, in one sentence of the report."""

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from pandera.typing.polars import DataFrame

import schemas
from schemas.arrow import fetch, lend
from schemas.results import Estimates, Findings
from tasks._words import interval, listing, number, p_value
from tasks.enough import why_not_enough

FINDINGS = Path(schemas.__file__).with_name("jury_findings.sql")
ASKED = ("dataset", "prompt", "wave")


def jury_findings(estimates: DataFrame[Estimates], findings: DataFrame[Findings]) -> pl.DataFrame:
    """Return a row per perturbation: the finding about the jury (``jury_findings.sql``).

    Of the judges' findings only what detecting a flaw takes is read.
    """
    with duckdb.connect() as connection:
        judged = estimates.with_columns(study=pl.lit(""), too_few=why_not_enough())
        lend(connection, "estimates", judged)
        lend(connection, "findings", findings.with_columns(study=pl.lit("")))
        found = fetch(connection, FINDINGS.read_text(encoding="utf-8"))
    return found.drop("study").sort(*ASKED, pl.col("kind") != "promote", "perturbation")


def jury_sentence(estimates: DataFrame[Estimates], findings: DataFrame[Findings]) -> str:
    """Say what the jury of all is found to be under each perturbation; empty without a jury."""
    found = jury_findings(estimates, findings)
    if found.is_empty():
        return ""
    differing = [column for column in ASKED if found[column].n_unique() > 1]
    told = [_told(row, differing) for row in found.to_dicts()]
    return (
        f"All as one jury: {listing(told)}. p is adjusted over these perturbations"
        " (Benjamini-Hochberg): a jury follows from its members, so it is no part of their family."
        f"{_worth(estimates)}"
    )


def _worth(estimates: DataFrame[Estimates]) -> str:
    """Say how many independent judges the members are worth by their errors, if that is known."""
    sizes = estimates.filter(
        pl.col("statistic") == "jury_error_size", pl.col("estimate").is_not_null()
    ).sort(ASKED)
    if sizes.is_empty():
        return ""
    differing = [column for column in ASKED if sizes[column].n_unique() > 1]
    told = []
    for row in sizes.to_dicts():
        bounds = f" {interval(row['low'], row['high'])}" if row["low"] is not None else ""
        of = "".join(f" / {row[column]}" for column in differing)
        told.append(f"{number(row['estimate'])}{bounds}{of}")
    return (
        " By their errors where the right verdict is known, its members are worth"
        f" {listing(told)} independent judges."
    )


def _told(row: dict[str, Any], differing: list[str]) -> str:
    name = " / ".join([row["perturbation"], *(str(row[column]) for column in differing)])
    if row["finding"] is None:
        return f"{name} no finding ({row['reason']})"
    known = row["low"] is not None and row["high"] is not None
    bounds = f" {interval(row['low'], row['high'])}" if known else ""
    return (
        f"{name} {row['finding']} (MPS {number(row['shift'])}{bounds}, p"
        f" {p_value(row['p_adjusted'])})"
    )
