"""Contrasts: findings about pairs of judges, which of the two is biased more."""

from pathlib import Path

import duckdb
import polars as pl
from pandera.typing.polars import DataFrame

import schemas
from schemas.arrow import fetch, lend
from schemas.results import Estimates
from tasks.inference.linearised_errors import why_not_enough

CONTRASTS = Path(schemas.__file__).with_name("contrasts.sql")


def contrasts(estimates: DataFrame[Estimates]) -> pl.DataFrame:
    """Return one row per statistic, perturbation and pair of judges (``contrasts.sql``).

    Holm adjusts the p-values over all pairs under one perturbation (family F2). ``finding`` is
    ``biased`` where one judge shifts more than the other, by at least .05 in MPS or .10 in ASR.
    """
    judged = estimates.with_columns(study=pl.lit(""), too_few=why_not_enough())
    with duckdb.connect() as connection:
        lend(connection, "estimates", judged)
        found = fetch(connection, CONTRASTS.read_text(encoding="utf-8"))
    order = ("dataset", "prompt", "wave", "mode", "perturbation", "statistic", "judge", "other")
    return found.drop("study").sort(order)
