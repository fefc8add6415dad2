"""Findings about the jury of all judges, by the rules for a single judge."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates, JuryFindings
from tasks.conclude import cells_with_findings
from tasks.kit.defaults import DETECTS_AT

FAMILY = ("dataset", "judge", "prompt", "wave", "mode")
PREFIX = "jury_"
NUMBERS = r": (MPS|sham_shift|it has no) [^;]*"
"""Numbers in a note of a finding, which stand in ``mart.jury`` for a jury."""


def jury_findings(
    estimates: DataFrame[Estimates], detects_at: float = DETECTS_AT
) -> DataFrame[JuryFindings]:
    """Conclude on the jury as on a judge (:func:`tasks.conclude.conclude`).

    A jury has no log-odds, and is not asked whether its shifts are mixed. It follows from its
    members, so Benjamini-Hochberg is over the jury's own perturbations.
    """
    members = pl.col("statistic").str.starts_with(PREFIX) & (pl.col("subgroup") == "")
    whole = estimates.filter(members & pl.col("perturbation").is_not_null())
    renamed = whole.with_columns(pl.col("statistic").str.strip_prefix(PREFIX))
    families = [
        cells_with_findings(rows, detects_at)
        for rows in renamed.partition_by(FAMILY)
        if rows["statistic"].is_in(["mps", "mps_sham"]).any()
    ]
    if not families:
        return JuryFindings.empty()
    cells = pl.concat(families, how="diagonal_relaxed")
    note = pl.col("note").str.replace_all(NUMBERS, "")
    return JuryFindings.of(
        cells.with_columns(
            statistic=pl.lit(PREFIX) + pl.col("statistic"),
            shift="estimate",
            finding=pl.when(pl.col("refused").is_null()).then("word"),
            reason=pl.coalesce("refused", note),
        )
    )
