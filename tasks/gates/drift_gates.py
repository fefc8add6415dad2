"""The gate drift: whether a judge changed since its baseline."""

from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.keys import JUDGE, SERIES
from schemas.results import MEASURES, Drifts


def drift_gates(estimates: pl.DataFrame, drifts: DataFrame[Drifts]) -> pl.DataFrame:
    """Return the alert or, without one, the suspect; else the measure closest to its minimum.

    Among several, the interval that reaches farthest counts. Canaries have no minimum and no
    interval. An alert names the wave in which the change was suspect first, unless several waves of
    its epoch were: the names of waves do not show which of them it confirms. It starts a new
    baseline, and later waves name the change that it confirmed.
    """
    cell = [*SERIES, "mode", "perturbation", "measure", "epoch", "sign"]
    state, wave = pl.col("state"), pl.col("wave")
    suspect = wave.filter((state == "suspect") & (wave != ""))
    first_seen = pl.when(suspect.n_unique() == 1).then(pl.format(" since wave {}", suspect.first()))
    # Readers split reasons at semicolons.
    since = first_seen.str.replace_all(";", ",", literal=True).fill_null("")
    changes = drifts.with_columns(sign=pl.col("estimate").sign())
    changes = changes.with_columns(since=since.over(cell))
    named = wave.str.replace_all(";", ",", literal=True)
    confirmed = pl.format("a change{}, confirmed in wave {}", "since", named)
    alerts = changes.filter(state == "alert")
    rebased = alerts.group_by(*SERIES, base="wave").agg(earlier_change=confirmed.min())
    measured = changes.join(estimates, on=JUDGE, how="semi")
    measured = measured.join(rebased, on=[*SERIES, "base"], how="left")
    limited = pl.col("minimum") > 0
    # Too few questions leave a change that has a p-value without a state.
    few = (state == "not measured") & pl.col("p_value").is_not_null()
    reach = pl.max_horizontal("high", -pl.col("low")) / pl.col("minimum")
    changed = state.replace_strict({"alert": 2, "suspect": 1}, default=0, return_dtype=pl.Int64)
    said = pl.col("measure").replace_strict(MEASURES, return_dtype=pl.String)
    under = pl.col("perturbation").str.replace_all("_", " ", literal=True)
    of_alert = pl.when(state == "alert").then("since").otherwise(pl.lit(""))
    rows = measured.with_columns(
        few=few,
        reach=pl.when(pl.col("p_value").is_not_null() & limited).then(reach),
        changed=changed,
        what=pl.concat_str(said, under, separator=" under ", ignore_nulls=True) + of_alert,
    )
    # An alert without an interval ranks before what did not change.
    rank = pl.when(pl.col("changed") > 0).then(pl.col("reach").fill_null(0)).otherwise("reach")
    rows = rows.with_columns(rank=rank).sort("changed", "rank", descending=True, nulls_last=True)
    within = ~limited | ((pl.col("reach") <= 1).fill_null(value=False) & ~pl.col("few"))
    has_change = (pl.col("changed") > 0) | pl.col("reach").is_not_null()

    def first(name: str) -> Any:
        return pl.when(has_change.first()).then(pl.col(name).first())

    minimum = pl.when(limited).then("minimum")
    alike = (pl.col("changed") == pl.col("changed").first()).sum() - 1
    # A change that its own interval leaves open does not wait for the questions of another.
    wide = (pl.col("reach").first() > 1) & ~pl.col("few").first() & (pl.col("changed").first() == 0)
    few_why = pl.col("reason").filter(limited & pl.col("few")).min()
    other = pl.when(alike == 1).then(pl.lit("change")).otherwise(pl.lit("changes"))
    others = (
        pl.when(alike > 0).then(pl.format(", and {} other {}", alike, other)).otherwise(pl.lit(""))
    )
    found = rows.group_by(JUDGE, maintain_order=True).agg(
        pl.col("simulated").max(),
        value=first("estimate"),
        low=first("low"),
        high=first("high"),
        measure=first("measure"),
        drift_mode=first("mode"),
        drift_perturbation=first("perturbation"),
        clusters=first("clusters"),
        shared=pl.col("clusters").max(),
        base_questions=first("base_questions"),
        standard_error=first("standard_error"),
        tolerance=pl.when(has_change.first())
        .then(minimum.first())
        .otherwise(pl.col("minimum").max()),
        failed=(state == "alert").any(),
        passed=state.is_in(["quiet", "not measured"]).all() & within.all(),
        most=pl.col("reach").max(),
        changed=pl.when(pl.col("changed").first() > 0).then(pl.col("what").first() + others),
        earlier_change=pl.col("earlier_change").first(),
        few_why=pl.when(~wide.fill_null(value=False)).then(few_why),
        why=pl.col("reason").filter(limited).min(),
    )
    return found.with_columns(
        mode=pl.lit("any"),
        gate=pl.lit("drift"),
        perturbation=pl.lit(None, pl.String),
        margin=pl.min_horizontal(1 - pl.col("most"), pl.when("failed").then(0.0)),
        few=pl.when(~pl.col("failed")).then("few_why"),
        why=pl.coalesce(pl.when(pl.col("most").is_null()).then("why"), "few_why"),
    )
