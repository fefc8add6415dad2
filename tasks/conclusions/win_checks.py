"""Whether a measured bias can explain the win of a model over another."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import WinChecks
from schemas.judging import VERSUS
from schemas.results import Estimates

WIN = ("dataset", "judge", "prompt", "wave", "subgroup")


def win_checks(estimates: DataFrame[Estimates]) -> DataFrame[WinChecks]:
    """Conclude on each win of a model over another, by itself and for each perturbation.

    A win needs an interval that excludes 1/2, and enough questions. It is robust to a bias if
    ``bias_bound`` (:mod:`tasks.statistics.decision_check`) is at most the distance of the win rate
    from 1/2 (methods, section 12).
    """
    statistic, value = pl.col("statistic"), pl.col("estimate")
    pairs = estimates.filter(pl.col("subgroup").str.contains(VERSUS, literal=True))
    wins = pairs.filter(statistic == "win_rate").select(
        *WIN,
        "simulated",
        "clusters",
        "too_few",
        mode=pl.lit("any"),
        perturbation=pl.lit(None, pl.String),
        win_rate="estimate",
        win_rate_low="low",
        win_rate_high="high",
        margin=(value - 0.5).abs(),
        won=(pl.col("low") > 0.5) | (pl.col("high") < 0.5),
    )
    checks = (
        pairs.filter(statistic.is_in(["bias_bound", "tipping_shift"]))
        .group_by(*WIN, "mode", "perturbation", maintain_order=True)
        .agg(
            pl.col("simulated", "too_few").max(),
            pl.col("clusters").min(),
            bias_bound=value.filter(statistic == "bias_bound").max(),
            tipping_shift=value.filter(statistic == "tipping_shift").max(),
            rests_on=pl.col("method").first(),
        )
        .join(wins.select(*WIN, "^win_rate.*$", "margin", "won", few="too_few"), on=WIN)
        .with_columns(too_few=pl.coalesce("too_few", "few"))
    )
    known = pl.col("won").is_not_null() & (
        pl.col("bias_bound").is_not_null() | pl.col("perturbation").is_null()
    )
    rows = pl.concat([wins, checks], how="diagonal").with_columns(
        robust=pl.when("won", pl.col("too_few").is_null()).then(
            pl.col("bias_bound") <= pl.col("margin")
        )
    )
    return WinChecks.of(
        rows.with_columns(
            conclusion=pl.when(~known)
            .then(pl.lit("unknown"))
            .when(pl.col("too_few").is_not_null())
            .then(pl.format("no conclusion: {}", "too_few"))
            .when(~pl.col("won"))
            .then(pl.lit("no conclusion: the interval holds .5"))
            .when(pl.col("perturbation").is_null())
            .then(pl.lit("won"))
            .when("robust")
            .then(pl.lit("robust"))
            .otherwise(pl.format("conclusion not robust to {}", "perturbation"))
        )
    )
