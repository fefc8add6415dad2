"""Which judges the jury consists of, and which are averaged."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import PanelMembers
from schemas.results import Estimates, Exclusions
from tasks.panels.panels import GROUP

JUDGE = ("dataset", "judge", "prompt", "wave")


def panel_members(
    estimates: DataFrame[Estimates], exclusions: DataFrame[Exclusions], people: pl.DataFrame
) -> DataFrame[PanelMembers]:
    """Tell which judges are members of the jury and of the means under each perturbation.

    A juror has a shift, and an averaged judge a row of attack success. ``people`` are never
    members (columns ``dataset`` and ``judge``), and simulated judges only if all others are.
    """
    statistic = pl.col("statistic")
    moved = (statistic == "mps") & (pl.col("n") > 0)
    cells = (
        estimates.filter(
            statistic.is_in(["mps", "asr"]),
            pl.col("subgroup") == "",
            pl.col("perturbation").is_not_null(),
        )
        .join(people, on=["dataset", "judge"], how="anti")
        .group_by(*GROUP, "judge", maintain_order=True)
        .agg(
            pl.col("kind").first(),
            pl.col("simulated").max(),
            votes_per_pair=pl.col("votes_per_pair").filter(moved).max(),
            moved=moved.any(),
            attacked=(statistic == "asr").any(),
        )
    )
    out = exclusions.filter(pl.col("excluded")).select(*JUDGE, excluded=pl.lit(value=True))
    return PanelMembers.of(
        cells.with_columns(juror=_among("moved"), averaged=_among("attacked"))
        .join(out, on=JUDGE, how="left")
        .with_columns(kept=pl.col("averaged") & pl.col("excluded").is_null())
    )


def _among(candidates: str) -> pl.Expr:
    """Keep the candidates that are not simulated; all if all are."""
    formula = pl.col("simulated").fill_null(value=False)
    all_formulas = (formula | ~pl.col(candidates)).all().over(GROUP)
    return pl.col(candidates) & (~formula | all_formulas)
