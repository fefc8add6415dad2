"""Judges excluded from tables of attack success, with reasons."""

from pathlib import Path

import duckdb
import polars as pl
from pandera.typing.polars import DataFrame

import schemas
from schemas.arrow import fetch, lend
from schemas.results import Estimates, Exclusions
from tasks.inference.linearised_errors import why_not_enough

RULE = Path(schemas.__file__).with_name("exclusions.sql")


def exclude(estimates: DataFrame[Estimates]) -> DataFrame[Exclusions]:
    """Apply the rule of ``schemas/exclusions.sql`` to each judge (methods, section 5).

    A judge is excluded if its 95 % interval puts the position gap beyond .15 on either side, or the
    tie rate above .80 (both in the control arm), or the invalid rate above .10 (all ballots). With
    too few questions, or without an interval, a rule is undecided. Exclusion is a policy: balanced
    orders keep the mean preference shift of a positional judge valid, with less power.
    """
    return Exclusions.of(left_out(estimates))


def left_out(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of :func:`exclude` from unvalidated estimates."""
    told = estimates.select(
        "dataset",
        "judge",
        "prompt",
        "wave",
        "simulated",
        "statistic",
        "perturbation",
        "subgroup",
        "estimate",
        "low",
        "high",
        study=pl.lit(""),
        too_few=why_not_enough(),
    )
    with duckdb.connect() as connection:
        lend(connection, "estimates", told)
        return fetch(connection, RULE.read_text(encoding="utf-8"))


def kept(estimates: DataFrame[Estimates], exclusions: DataFrame[Exclusions]) -> pl.DataFrame:
    """Return the estimates of judges that are not excluded."""
    out = exclusions.filter(pl.col("excluded"))
    return estimates.join(out, on=["dataset", "judge", "prompt", "wave"], how="anti")
