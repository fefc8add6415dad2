"""Single numbers for a judge, on request: its smallest margin, and the chance of being best."""

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.keys import CONDITIONS, JUDGES
from tasks.inference.bootstrap import weights
from tasks.inference.cluster_sums import Floats, combined, first_of, numbered
from tasks.inference.linearised_errors import too_few
from tasks.panels.panels import (
    ALONE,
    enough,
    few_shared,
    primary_shift,
    seen,
    sharing,
    with_primary,
)

UNBOUNDED = "no interval"
DRAWS, SEED = 10_000, 20240613


def least_margins(gates: pl.DataFrame) -> pl.DataFrame:
    """Return each judge's smallest margin over its gates, for users who want one number.

    A gate without a margin, or with too few questions, could be the worst; the judge then has no
    margin, and ``gate`` names that gate.

    Returns
    -------
    DataFrame
        ``dataset, prompt, wave, judge, margin, simulated, gate, gates, reason``: the margin, the
        gate that it belongs to, the number of gates, and why the margin is missing.
    """
    known = ~pl.col("too_few").fill_null(value=False)
    # Discernment summarises flaws that have gates of their own.
    named = (
        gates.filter(pl.col("gate") != "discernment")
        .with_columns(
            named=pl.coalesce("perturbation", "gate"), margin=pl.when(known).then("margin")
        )
        .with_columns(
            reason=pl.when(pl.col("margin").is_null()).then(pl.col("reason").fill_null(UNBOUNDED))
        )
    )
    ordered = named.sort("margin", "named", nulls_last=False)
    cell = (*CONDITIONS, "judge")
    return (
        ordered.group_by(cell, maintain_order=True)
        .agg(
            pl.col("margin").first(),
            pl.col("simulated").any(),
            gate=pl.col("named").first(),
            gates=pl.len(),
            reason=pl.col("reason").first(),
        )
        .sort(cell)
    )


def acceptability(shifts: DataFrame[Shifts]) -> pl.DataFrame:
    """Return each judge's probability of being best under random criterion weights (SMAA).

    Weights of the perturbations are drawn from Dirichlet(1, ..., 1), 10 000 times and jointly with
    a cluster bootstrap. A judge's loss is the weighted sum of |MPS| (promote) and MPS (detract,
    where a negative shift is right), over the sham where there are shams. All judges are compared
    on their common samples, which need enough questions of every perturbation; otherwise judges are
    dropped as in :func:`tasks.panels.panels.sharing`. A draw that lacks a perturbation is dropped.

    Returns
    -------
    DataFrame
        ``dataset, prompt, wave, mode, judge, first, criteria, reason``: ``first`` is the share of
        draws that a judge wins, ties split equally, and ``criteria`` the number of perturbations;
        null, with the reason, for a judge that lacks one, or has or shares too few questions.

    References
    ----------
    Lahdelma & Salminen (2001), SMAA-2, Oper. Res. 49, 444-454. methods.md, section 11.
    """
    found = with_primary(shifts).with_columns(shift=primary_shift()).drop_nulls("shift")
    groups = found.partition_by(JUDGES, as_dict=True)
    rows = [
        group.with_columns(
            pl.lit(value).cast(pl.String).alias(name)
            for name, value in zip(JUDGES, key, strict=True)
        )
        for key in sorted(groups, key=str)
        for group in [_first(groups[key])]
    ]
    schema = dict.fromkeys((*JUDGES, "judge"), pl.String) | {
        "first": pl.Float64,
        "criteria": pl.Int64,
        "reason": pl.String,
    }
    return pl.concat(row.select(*schema) for row in rows) if rows else pl.DataFrame(schema=schema)


def _first(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the judges of one group, each with its share of wins or the reason for none."""
    keys = ("perturbation", "cluster", "sample", "judge")
    number = {name: numbered(rows[name]) for name in keys}
    perturbation, cluster, _, judge = (np.unique(number[k][0], return_inverse=True) for k in keys)
    items, row = np.unique(combined([number[k] for k in keys[:3]])[0], return_inverse=True)
    first = first_of(row)
    part, unit = perturbation[1][first], cluster[1][first]
    shift = np.full((len(items), len(judge[0])), np.nan)
    shift[row, judge[1]] = rows["shift"].to_numpy()
    measured = ~np.isnan(shift)
    changed = np.diff(part, prepend=-1) != 0
    starts = np.flatnonzero(changed | (np.diff(unit, prepend=-1) != 0))
    parts = np.flatnonzero(changed[starts])
    counts, shared = seen(measured, starts, parts), sharing(measured, starts, parts)
    able = enough(measured, starts, parts)
    at = measured[:, shared].all(axis=1)
    kinds = rows["kind"].gather(first[starts[parts]]).cast(pl.String) == "promote"
    names = rows["perturbation"].gather(first[starts[parts]]).cast(pl.String).to_list()
    won = np.full(len(shared), np.nan)
    if shared.any():
        sums = _sums(shift[at][:, shared], unit[at], part[at])
        won[shared] = _shares(*sums, kinds.to_numpy())
    why = [
        None if shared[j] else _why(names, counts[:, j], able[:, j], able.all(axis=0).sum() > 1)
        for j in range(len(shared))
    ]
    judges = rows["judge"].gather(first_of(judge[1])).cast(pl.String)
    return pl.DataFrame(
        {"judge": judges, "first": won, "reason": pl.Series(why, dtype=pl.String)}
    ).with_columns(pl.col("first").fill_nan(None), criteria=pl.lit(len(names), pl.Int64))


def _why(
    names: list[str], clusters: NDArray[np.int64], able: NDArray[np.bool_], several: np.bool_
) -> str:
    """Give the reason why a judge is not compared.

    ``able``: which parts have enough questions; ``several``: two or more judges have enough in all.
    """
    fewest = int(np.argmin(clusters))
    if clusters[fewest] == 0:
        return f"no shift under {names[fewest]}"
    if not able.all():
        lacking = fewest if not able[fewest] else int(np.argmin(able))
        return f"{too_few(int(clusters[lacking]), 0.0)} under {names[lacking]}"
    return few_shared() if several else ALONE


def _sums(shift: Floats, unit: NDArray[np.int64], part: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return sums, shape (clusters, judges, perturbations), and the numbers of samples."""
    cluster = np.unique(unit, return_inverse=True)[1]
    size = int(cluster.max()) + 1, int(part.max()) + 1
    num, den = np.zeros((*size, shift.shape[1])), np.zeros((*size, 1))
    np.add.at(num, (cluster, part), shift)
    np.add.at(den, (cluster, part), 1.0)
    return num.transpose(0, 2, 1), den.transpose(0, 2, 1)


def _shares(num: Floats, den: Floats, promote: NDArray[np.bool_]) -> Floats:
    clusters, judges, criteria = num.shape
    importance = np.random.default_rng(SEED).dirichlet(np.ones(criteria), DRAWS)
    num, den = (sums.reshape(clusters, -1) for sums in (num, den))
    won, start, draws = np.zeros(judges), 0, 0
    for drawn in weights(clusters, DRAWS, SEED):
        bottom = (drawn @ den).reshape(-1, 1, criteria)
        some = (bottom > 0).all(axis=(1, 2))
        shift = (drawn[some] @ num).reshape(-1, judges, criteria) / bottom[some]
        loss = np.where(promote, np.abs(shift), shift)
        weight = importance[start : start + len(drawn)][some]
        total = np.round(np.einsum("djc,dc->dj", loss, weight), 12)
        best = total == total.min(axis=1, keepdims=True)
        won += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
        start, draws = start + len(drawn), draws + int(some.sum())
    return won / draws
