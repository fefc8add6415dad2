"""Gates that a judge passes or not; no composite number unless one is asked for."""

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

import schemas
from schemas.arrow import fetch, lend
from schemas.judging import Shifts
from schemas.results import Drifts, Estimates, Findings
from tasks.statistics._bootstrap import weights
from tasks.statistics._panels import primary_shift

SCORECARD = Path(schemas.__file__).with_name("scorecard.sql")
JUDGES = ("dataset", "prompt", "wave", "mode")
Floats = NDArray[np.float64]
DRAWS, SEED = 10_000, 20240613


def scorecard(
    estimates: DataFrame[Estimates],
    findings: DataFrame[Findings],
    drifts: DataFrame[Drifts] | None = None,
) -> pl.DataFrame:
    """Return a row per judge and gate (``scorecard.sql``).

    Gates are position, validity, each bias, agreement (where people labelled the same items) and
    drift (where there are waves). A gate fails if the whole interval lies beyond the tolerance,
    passes if all of it lies within, and is else inconclusive; a bias by its finding, drift only if
    an alert is confirmed. Below ten clusters nothing passes or fails. ``margin`` is what is left of
    the tolerance at the worse end of the interval, as a share of it.
    """
    drifts = Drifts.empty() if drifts is None else drifts
    with duckdb.connect() as connection:
        lend(connection, "estimates", estimates.with_columns(study=pl.lit("")))
        lend(connection, "findings", findings.with_columns(study=pl.lit("")))
        lend(connection, "drifts", drifts.with_columns(study=pl.lit("")))
        found = fetch(connection, SCORECARD.read_text(encoding="utf-8"))
    order = ("dataset", "prompt", "wave", "judge", "mode", "gate", "perturbation")
    return found.drop("study").sort(order, nulls_last=False)


def least_margins(gates: pl.DataFrame) -> pl.DataFrame:
    """Return each judge's least margin over its gates, for who demands one number.

    A gate without a margin could be the worst, so the judge has none then, and ``gate`` names it.

    Returns
    -------
    DataFrame
        ``dataset, prompt, wave, judge, margin, simulated, gate, gates``: the margin, the gate that
        has it, and how many there are.
    """
    named = gates.with_columns(named=pl.coalesce("perturbation", "gate"))
    ordered = named.sort("margin", "named", nulls_last=False)
    cell = ("dataset", "prompt", "wave", "judge")
    return (
        ordered.group_by(cell, maintain_order=True)
        .agg(
            pl.col("margin").first(),
            pl.col("simulated").any(),
            gate=pl.col("named").first(),
            gates=pl.len(),
        )
        .sort(cell)
    )


def acceptability(shifts: DataFrame[Shifts], seed: int = SEED) -> pl.DataFrame:
    """Return each judge's chance of being best, whatever the perturbations weigh (SMAA).

    Weights of the perturbations are drawn from Dirichlet(1, ..., 1), 10 000 times and jointly with
    a cluster bootstrap; a judge's loss is the weighted sum of |MPS| (promote) and MPS (detract,
    where moving away is right), over the sham where there are shams.

    Returns
    -------
    DataFrame
        ``dataset, prompt, wave, mode, judge, first, criteria``: the share of draws that a judge
        wins, equals sharing it, and the number of perturbations; null for a judge that lacks one,
        so for all if none has faced every perturbation.

    References
    ----------
    Lahdelma & Salminen (2001), SMAA-2, Oper. Res. 49, 444-454. methods.md, section 11.
    """
    found = shifts.with_columns(shift=primary_shift()).drop_nulls("shift")
    groups = found.partition_by(JUDGES, as_dict=True)
    rows = [
        group.with_columns(pl.lit(value).cast(pl.String).alias(name)
                           for name, value in zip(JUDGES, key, strict=True))
        for key in sorted(groups, key=str)
        for group in [_first(groups[key], seed)]
    ]  # fmt: skip
    schema = dict.fromkeys((*JUDGES, "judge"), pl.String) | {
        "first": pl.Float64, "criteria": pl.Int64
    }  # fmt: skip
    return pl.concat(row.select(*schema) for row in rows) if rows else pl.DataFrame(schema=schema)


def _first(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    text = [pl.col(c).cast(pl.String) for c in ("cluster", "judge", "perturbation", "kind")]
    sums = rows.select(*text, "shift").group_by("cluster", "judge", "perturbation").agg(
        pl.col("shift").sum(), pl.col("kind").first(), n=pl.len()
    )  # fmt: skip
    names = {c: sums[c].unique().sort() for c in ("cluster", "judge", "perturbation")}
    place = [sums[c].cast(pl.Enum(names[c])).to_physical().to_numpy() for c in names]
    shape = tuple(len(found) for found in names.values())
    num, den = np.zeros(shape), np.zeros(shape)
    num[tuple(place)], den[tuple(place)] = sums["shift"].to_numpy(), sums["n"].to_numpy()
    complete = np.flatnonzero((den.sum(axis=0) > 0).all(axis=1))
    kinds = dict(sums.select("perturbation", "kind").iter_rows())
    promote = np.array([kinds[p] == "promote" for p in names["perturbation"]])
    first = np.full(shape[1], np.nan)
    if complete.size:
        first[complete] = _shares(num[:, complete], den[:, complete], promote, seed)
    return pl.DataFrame({"judge": names["judge"], "first": first}).with_columns(
        pl.col("first").fill_nan(None), criteria=pl.lit(shape[2], pl.Int64)
    )


def _shares(num: Floats, den: Floats, promote: NDArray[np.bool_], seed: int) -> Floats:
    clusters, judges, criteria = num.shape
    importance = np.random.default_rng(seed).dirichlet(np.ones(criteria), DRAWS)
    num, den = (sums.reshape(clusters, -1) for sums in (num, den))
    won, start = np.zeros(judges), 0
    for drawn in weights(clusters, DRAWS, seed):
        top = (drawn @ num).reshape(-1, judges, criteria)
        bottom = (drawn @ den).reshape(-1, judges, criteria)
        # A draw without any item of a judge tells nothing for or against it.
        shift = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
        loss = np.where(promote, np.abs(shift), shift)
        total = np.round(np.einsum("djc,dc->dj", loss, importance[start : start + len(drawn)]), 12)
        best = total == total.min(axis=1, keepdims=True)
        won += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
        start += len(drawn)
    return won / DRAWS
