"""Questions one after another, in an order that is fixed before anything is looked at."""

import math

import duckdb
import polars as pl

from schemas.arrow import fetch, lend
from tasks.statistics._cells import CELL

SEED = 0
LARGEST = 300 * math.log(10)
"""Larger e-values are cut to this, lest they overflow."""


def in_turn(shifts: pl.DataFrame, seed: int = SEED) -> pl.DataFrame:
    """Return one row per cell and cluster, sorted by cell and ``turn``, its place, from 1.

    ``counted`` of its samples have a shift, ``dropped`` have none; ``up`` and ``down`` are the sums
    of the positive shifts and of the size of the negative ones. The shift is that over the sham if
    the cell has any sham, else that over the control. Clusters come in the order of a digest of
    ``seed`` and their name, those without any shift last: the order depends on no vote, and all
    samples of a question come together.
    """
    shams = shifts.group_by(CELL, maintain_order=True).agg(shammed=pl.col("has_sham").any())
    base = pl.when(pl.col("has_sham")).then(pl.col("sham_score"))
    kept = shifts.select(
        *CELL, "cluster", "kind", "simulated", "votes", "has_sham",
        over_sham=pl.col("experimental_score") - base,
        over_control=pl.col("experimental_score") - pl.col("control_score"),
    )  # fmt: skip
    sums = {
        base: (
            pl.col(base).count().alias(f"{base}_counted"),
            pl.col(base).clip(lower_bound=0.0).sum().alias(f"{base}_up"),
            -pl.col(base).clip(upper_bound=0.0).sum().alias(f"{base}_down"),
        )
        for base in ("over_sham", "over_control")
    }
    clusters = kept.group_by(*CELL, "cluster", maintain_order=True).agg(
        *(expression for base in sums.values() for expression in base),
        pl.col("kind", "simulated", "votes").first(),
        over_sham_number=pl.col("has_sham").sum(),
        over_control_number=pl.len(),
    )
    clusters = clusters.join(shams, on=CELL, how="left", nulls_equal=True)
    chosen = {
        name: pl.when("shammed").then(f"over_sham_{name}").otherwise(f"over_control_{name}")
        for name in ("counted", "up", "down", "number")
    }
    return (
        clusters.with_columns(**chosen)
        .filter(pl.col("number") > 0)
        .with_columns(
            pl.col("cluster").cast(pl.String),
            pl.col("counted").cast(pl.Int64),
            dropped=pl.col("number").cast(pl.Int64) - pl.col("counted").cast(pl.Int64),
            over=pl.when("shammed").then(pl.lit("over the sham")).otherwise(pl.lit("over control")),
        )
        .join(places(shifts["cluster"], seed), on="cluster", how="left")
        .sort(*CELL, pl.col("counted") == 0, "place")
        .with_columns(turn=pl.int_range(1, pl.len() + 1).over(CELL))
    )


def places(clusters: pl.Series, seed: int = SEED) -> pl.DataFrame:
    """Place every name by its MD5 digest: Polars' own hash may change with its version."""
    names = clusters.unique().cast(pl.String).to_frame("cluster")
    with duckdb.connect() as connection:
        lend(connection, "names", names)
        query = "select cluster, row_number() over (order by md5(? || cluster)) as place from names"
        return fetch(connection, query, [f"{seed}/"])


def evidence(clusters: pl.DataFrame) -> pl.DataFrame:
    """Return the clusters, in their turn, with samples ``seen`` so far and ``log_e``, the log of E.

    ``E = 1/2 prod_t (1 + a_t x_t) + 1/2 prod_t (1 - b_t x_t)``, x the mean of ``up - down``, in
    [-1, 1], of the ``counted`` samples, the bets a and b from the clusters before.
    """
    turns = clusters.with_columns(
        x=(pl.col("up") - pl.col("down")) / pl.col("counted")
    ).with_columns(
        past=pl.col("x").cum_sum().shift(1, fill_value=0.0).over(CELL),
        squares=(pl.col("x") ** 2).cum_sum().shift(1, fill_value=0.0).over(CELL),
        seen=pl.col("counted").cum_sum().over(CELL),
    )
    tilt = pl.when(pl.col("squares") > 0).then(pl.col("past") / pl.col("squares")).otherwise(0.0)
    stake = {1: tilt.clip(0.0, 0.5), -1: (-tilt).clip(0.0, 0.5)}
    won, lost = (
        (1 + sign * bet * pl.col("x")).log().cum_sum().over(CELL) for sign, bet in stake.items()
    )
    most = pl.max_horizontal("won", "lost")
    total = (pl.col("won") - most).exp() + (pl.col("lost") - most).exp()
    return turns.with_columns(won=won, lost=lost).with_columns(
        log_e=most + total.log() - math.log(2)
    )
