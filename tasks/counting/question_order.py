"""Question order fixed independently of the votes, for sequential tests."""

import math
from hashlib import md5
from typing import NamedTuple

import numpy as np
import polars as pl

from schemas.keys import CELL
from tasks.counting.primary_endpoint import over_shams
from tasks.inference.cluster_sums import combined, first_of, grouped, numbered

SEED = 0
LARGEST = 300 * math.log(10)
"""Largest log e-value; larger ones are cut off to prevent overflow."""

PLACES = {"cluster": pl.String, "place": pl.Int64}


class Turns(NamedTuple):
    """The clusters of each cell in sequence."""

    cells: pl.DataFrame
    """One row per cell: keys, ``kind, simulated, votes_per_pair, dropped``, and ``over`` (base)."""
    clusters: pl.DataFrame
    """One row per cell and cluster: ``cell`` (its row), ``cluster, turn``, and its sums."""


def in_turn(shifts: pl.DataFrame) -> Turns:
    """Put the clusters of each cell in sequence; ``turn`` counts from 1.

    ``counted`` samples of a cluster have a shift, ``dropped`` have none; ``up`` is the sum of the
    positive shifts and ``down`` of the absolute negative ones. The shift is the primary endpoint
    (:func:`tasks.counting.primary_endpoint.over_sham`). Clusters are ordered by a digest of
    ``SEED`` and their name, those without any shift last: the order depends on no vote, and the
    samples of a question stay together.
    """
    groups = grouped(shifts, CELL)
    shammed = over_shams(shifts, groups)
    samples = shifts.with_columns(shammed=pl.Series(shammed[groups.cell])).select(
        shift=pl.when(~pl.col("shammed"))
        .then(pl.col("experimental_score") - pl.col("control_score"))
        .when("has_sham")
        .then(pl.col("experimental_score") - pl.col("sham_score")),
        number=~pl.col("shammed") | pl.col("has_sham"),
    )
    shift = pl.col("shift")
    values = samples.select(
        "number", counted=shift.is_not_null(), up=shift.clip(0.0), down=(-shift).clip(0.0)
    )
    sums = {column.name: groups.by_cluster(column) for column in values}
    some = np.flatnonzero(sums["number"] > 0)
    item = np.empty(int(groups.starts[-1]), np.int64)
    item[groups.place] = np.arange(len(groups.place))
    cell = np.repeat(np.arange(len(shammed)), np.diff(groups.starts))[some]
    code, _ = combined([numbered(shifts["cluster"])])
    first = first_of(code) if code.size else code
    names = shifts["cluster"].gather(first).cast(pl.String).to_frame()
    placed = names.join(places(names["cluster"]), on="cluster", maintain_order="left")
    place = placed["place"].to_numpy()[code[item[some]]]
    order = np.lexsort((place, sums["counted"][some] == 0, cell))
    at, cell = some[order], cell[order]
    lost = groups.of_cells(sums["number"] - sums["counted"]).astype(np.int64)
    over = np.where(shammed, "over the sham", "over control").tolist()
    cells = groups.cells.with_columns(
        dropped=pl.Series(lost), over=pl.Series(over, dtype=pl.String)
    )
    clusters = pl.DataFrame(
        {
            "cell": cell,
            "cluster": shifts["cluster"].gather(item[at]),
            "counted": sums["counted"][at].astype(np.int64),
            "dropped": (sums["number"] - sums["counted"])[at].astype(np.int64),
            "up": sums["up"][at],
            "down": sums["down"][at],
            "turn": np.arange(len(at)) - np.searchsorted(cell, cell) + 1,
        }
    )
    return Turns(cells, clusters)


def own_columns() -> dict[str, pl.Expr]:
    """Return the seed of the order, and the floor: the sham where shifts are over it."""
    over_sham = pl.col("over") == "over the sham"
    return {"seed": pl.lit(SEED, pl.Int64), "floor": pl.when(over_sham).then(pl.lit("sham"))}


def places(clusters: pl.Series, seed: int = SEED) -> pl.DataFrame:
    """Rank names by their MD5 digest, as Polars' own hash may change between versions."""
    names = clusters.unique().cast(pl.String).to_list()
    names.sort(key=lambda name: md5(f"{seed}/{name}".encode(), usedforsecurity=False).hexdigest())
    return pl.DataFrame({"cluster": names, "place": range(1, len(names) + 1)}, PLACES)


def evidence(clusters: pl.DataFrame) -> pl.DataFrame:
    """Add to the sequence of clusters the samples ``seen`` so far and ``log_e``, the log of E.

    ``E = 1/2 prod_t (1 + a_t x_t) + 1/2 prod_t (1 - b_t x_t)``: x is the mean of ``up - down``, in
    [-1, 1], over the ``counted`` samples; the bets a and b depend on earlier clusters only.
    ``cell`` is the index of the cell.
    """
    turns = clusters.with_columns(
        x=(pl.col("up") - pl.col("down")) / pl.col("counted")
    ).with_columns(
        past=pl.col("x").cum_sum().shift(1, fill_value=0.0).over("cell"),
        squares=(pl.col("x") ** 2).cum_sum().shift(1, fill_value=0.0).over("cell"),
        seen=pl.col("counted").cum_sum().over("cell"),
    )
    tilt = pl.when(pl.col("squares") > 0).then(pl.col("past") / pl.col("squares")).otherwise(0.0)
    stake = {1: tilt.clip(0.0, 0.5), -1: (-tilt).clip(0.0, 0.5)}
    won, lost = (
        (1 + sign * bet * pl.col("x")).log().cum_sum().over("cell") for sign, bet in stake.items()
    )
    most = pl.max_horizontal("won", "lost")
    total = (pl.col("won") - most).exp() + (pl.col("lost") - most).exp()
    return turns.with_columns(won=won, lost=lost).with_columns(
        log_e=most + total.log() - math.log(2)
    )
