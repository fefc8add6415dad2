"""Which judges the jury consists of, which are averaged, and their means."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import MEANS, PanelMeans, PanelMembers
from schemas.keys import JUDGE, PANEL
from schemas.results import Estimates, Exclusions
from tasks.statistics.judge_mean import ALL, KEPT


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
        .group_by(*PANEL, "judge", maintain_order=True)
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
    all_formulas = (formula | ~pl.col(candidates)).all().over(PANEL)
    return pl.col(candidates) & (~formula | all_formulas)


PARTS = pl.DataFrame({"without_excluded": [False, True]})
RATES = {f"mean_{rate}": rate for rate in ("asr", "sham_floor", "dasr")}
"""Mean -> the rate of each judge that it averages."""


def panel_means(
    estimates: DataFrame[Estimates],
    exclusions: DataFrame[Exclusions],
    members: DataFrame[PanelMembers],
) -> DataFrame[PanelMeans]:
    """Return mean shifts and rates over judges, with and without those that are excluded.

    The means of :mod:`tasks.statistics.judge_mean` stand, with their intervals. Where rates have
    none, because votes per pair differ between judges, the judges of equal votes per pair have the
    plain mean of their rates. Without excluded judges, both means are the same.
    """
    whole = estimates.filter(pl.col("subgroup") == "", pl.col("statistic").is_in(RATES.values()))
    attacked = whole.filter(pl.col("statistic") == "asr")
    rates = (
        members.filter("averaged")
        .select(*PANEL, "judge", "kept")
        .join(
            attacked.select(*PANEL, "judge", "kind", "simulated", "votes_per_pair", asr="estimate"),
            on=[*PANEL, "judge"],
        )
        .join(exclusions.select(*JUDGE, "reasons"), on=JUDGE, how="left")
    )
    cell = [*PANEL, "votes_per_pair"]
    cells = rates.group_by(cell, maintain_order=True).agg(
        pl.col("kind").first(),
        pl.col("simulated").max(),
        left_out=pl.format("{} ({})", "judge", "reasons")
        .filter(~pl.col("kept"))
        .sort_by(pl.col("judge").filter(~pl.col("kept")))
        .str.join(", "),
    )
    every = rates.join(PARTS, how="cross").filter(pl.col("kept") | ~pl.col("without_excluded"))
    part = [*cell, "without_excluded"]
    counts = every.group_by(part).agg(judges=pl.col("asr").count())
    own = whole.select(*PANEL, "judge", rate="statistic", value="estimate")
    plain = (
        every.join(own, on=[*PANEL, "judge"]).group_by(*part, "rate").agg(pl.col("value").mean())
    )
    means = _measured(estimates)
    about = [*PANEL, "without_excluded"]
    reasons = (
        means.filter(statistic="mean_asr")
        .group_by(PANEL)
        .agg(pl.col("reason").drop_nulls().first())
    )
    return PanelMeans.of(
        cells.join(PARTS, how="cross")
        .join(pl.DataFrame({"statistic": MEANS}), how="cross")
        .with_columns(
            judge=pl.lit(ALL), rate=pl.col("statistic").replace_strict(RATES, default=None)
        )
        .join(counts, on=part, how="left")
        .join(plain, on=[*part, "rate"], how="left")
        .join(means.drop("reason"), on=[*about, "statistic"], how="left")
        .join(reasons, on=PANEL, how="left")
        .with_columns(
            pl.col("judges").fill_null(0),
            pl.col("left_out").replace("", None),
            estimate=pl.coalesce("estimate", "value"),
        )
    )


def _measured(estimates: DataFrame[Estimates]) -> pl.DataFrame:
    """Return the measured means; the mean of all judges also counts for the judges kept."""
    means = estimates.filter(
        pl.col("statistic").is_in(MEANS), pl.col("subgroup").is_in(["", KEPT])
    ).select(*PANEL, "statistic", "subgroup", "estimate", "low", "high", "n", "clusters", "reason")
    all_judges = means.filter(subgroup="").drop("subgroup")
    kept = means.filter(subgroup=KEPT).drop("subgroup")
    same = all_judges.join(kept, on=[*PANEL, "statistic"], how="anti")
    return pl.concat(
        [
            all_judges.with_columns(without_excluded=pl.lit(value=False)),
            pl.concat([same, kept]).with_columns(without_excluded=pl.lit(value=True)),
        ]
    )
