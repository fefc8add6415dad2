"""The bootstrap of means that few human labels rectify: lambda is fitted anew in each draw."""

import numpy as np
import polars as pl

from tasks.statistics._bootstrap import boot_ends, bounds_of
from tasks.statistics._delta import Sums, over
from tasks.statistics._groups import PART, grouped


def redrawn(rows: pl.DataFrame, *, use_judge: bool) -> pl.DataFrame:
    """Return the percentile interval of each cell's theta, beside its keys.

    Parameters
    ----------
    rows
        Pairs with ``score`` and, where labelled, ``human`` and the weight ``w``; ``alike`` where
        weights are all the same; and the cell's columns, ``cluster, kind, votes, simulated``.
    use_judge
        Whether the judge counts; else lambda is 0.
    """
    y, f, w = pl.col("human"), pl.col("score"), pl.col("w")
    columns = rows.select(
        weight=w, wy=w * y, wf=w * f, wyf=w * y * f, n=y.is_not_null(), every=pl.lit(1.0), f=f,
        ff=f**2, labelled=pl.when(y.is_not_null()).then(f), chosen=~pl.col("alike"),
    )  # fmt: skip
    groups = grouped(rows)
    sums = {column.name: groups.by_cluster(column) for column in columns}

    def value(drawn: dict[str, Sums]) -> Sums:
        lam = _lambda(drawn) if use_judge else np.zeros_like(drawn["n"])
        others = drawn["every"] - drawn["n"]
        chosen = drawn["chosen"] > 0
        judged = np.where(
            chosen, over(drawn["f"], drawn["every"]), over(drawn["f"] - drawn["labelled"], others)
        )
        rest = over(drawn["wy"] - lam * drawn["wf"], drawn["weight"])
        theta: Sums = rest + np.where(lam > 0, lam * judged, 0.0)
        return theta

    ends = bounds_of(groups, sums, sums["n"], value)
    texts = groups.cells.select(pl.col(PART).cast(pl.String))
    return texts.with_columns(boot_ends(ends))


def _lambda(sums: dict[str, Sums]) -> Sums:
    """Return the clipped slope of the labels on the verdicts, 0 where none can be told."""
    weight, n, every = sums["weight"], sums["n"], sums["every"]
    others = every - n
    cov = over(sums["wyf"] - sums["wy"] * over(sums["wf"], weight), weight)
    variance = over(sums["ff"] - sums["f"] * over(sums["f"], every), every - 1)
    unbiased = over(n, n - 1) / (1 + over(n, others))
    slope = over(cov * np.where(sums["chosen"] > 0, 1.0, unbiased), variance)
    usable = (others > 0) & (n > 1) & (variance > 1e-12)
    return np.clip(np.where(usable, np.nan_to_num(slope), 0.0), 0.0, 1.0)
