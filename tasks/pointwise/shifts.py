"""Ratings of the arms of each sample side by side: the input of rating shifts."""

import numpy as np
import polars as pl

from schemas.keys import JUDGE
from tasks.inference.cluster_sums import PART, join_cells
from tasks.inference.intervals import LEVEL, tango
from tasks.inference.linearised_errors import over
from tasks.inference.quantiles import normal_quantile, t_quantile, t_tail
from tasks.pointwise.rated_items import TARGET, on_scale, quantities, rated, things

PLANTED = (*JUDGE, "subgroup", "sample", "perturbation")
NATURAL = (*JUDGE, "subgroup", "sample")
ARMS = ("experimental", "sham", "control")
MOST = 1 + 1e-9
"""Largest sum of the shares that rise and fall, allowing for rounding."""
NUMBERS = ("score", "passed", "square", "votes", "readable")


def rating_shifts(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return one row per sample, perturbation and criterion with the ratings of its target.

    Empty without perturbed answers.

    Returns
    -------
    DataFrame
        The cell's columns with ``kind, cluster, simulated, graded, lowest, highest, votes``, and of
        each arm ``ARM_score`` (mean of its valid ratings on a scale from 0 to 1), ``ARM_passed``
        (share of passes), ``ARM_square`` (mean square, in points), ``ARM_points`` (mean in points),
        ``ARM_votes`` and ``ARM_readable``; ``has_sham``; ``quantity``, equal for prompts whose
        ratings measure the same (:func:`tasks.pointwise.rated_items.quantities`).
    """
    if not (ratings["arm"] == "experimental").any():
        return ratings.clear()
    return arms_beside(things(rated(ratings.filter(TARGET)))).join(
        quantities(ratings), on=["dataset", "prompt"], how="left", maintain_order="left"
    )


def arms_beside(found: pl.DataFrame) -> pl.DataFrame:
    """Join the arms of rated answers (:func:`tasks.pointwise.rated_items.things`)."""
    arm = pl.col("arm").cast(pl.String)
    wide = found.with_columns(points="score", score=on_scale("score"))
    columns = (*NUMBERS, "points")
    sham, control = (
        wide.filter(arm == name).select(*key, pl.col(columns).name.prefix(f"{name}_"))
        for name, key in (("sham", PLANTED), ("control", NATURAL))
    )
    return (
        wide.filter(arm == "experimental")
        .with_columns(pl.col("votes").alias("asked"))
        .rename({name: f"experimental_{name}" for name in columns})
        .join(
            sham.with_columns(has_sham=pl.lit(value=True)),
            on=list(PLANTED),
            how="left",
            maintain_order="left",
        )
        .join(control, on=list(NATURAL), how="left", maintain_order="left")
        .with_columns(pl.col("has_sham").fill_null(value=False), votes="asked")
    )


def passes(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return the samples of judges that pass or fail, with shares of passes as their scores."""
    some = shifts.filter(pl.col("experimental_passed").is_not_null().any().over("judge", "prompt"))
    return some.with_columns(pl.col(f"{arm}_passed").alias(f"{arm}_score") for arm in ARMS)


def with_score_interval(
    rows: pl.DataFrame, items: pl.DataFrame, moved: pl.Expr, could: pl.Expr | None = None
) -> pl.DataFrame:
    """Replace t intervals of mean differences by Tango's at the effective sample size.

    The size is ``(up + down - R^2) / SE^2`` with the shares that rose and fell, their difference R
    and its cluster-linearised error, times ``(z / t)^2``, as for cluster-adjusted Wilson. The
    p-value is that of the same test, ``t = R / SE sqrt(1 - R^2 / (up + down))``, so it is below .05
    where the interval excludes 0. The standard error becomes the longer half of the interval
    divided by the t quantile, because equivalence tests and planning use it alone. Rows without a t
    interval, and rows with ``up + down > 1`` (more rise than could fall), stay as they are.

    ``rows`` are ratios ``sum moved / sum could`` of the ``items``, which have the cell's columns.
    ``moved`` is from ``-could`` to ``could``, how far an item could move (1 if not given); an item
    for which it is null is left out.
    """
    flips = (
        items.with_columns(num=moved, den=pl.lit(1.0) if could is None else could)
        .drop_nulls("num")
        .group_by(PART)
        .agg(
            up=pl.col("num").clip(lower_bound=0.0).sum() / pl.col("den").sum(),
            down=(-pl.col("num")).clip(lower_bound=0.0).sum() / pl.col("den").sum(),
        )
    )
    beside = join_cells(rows, flips)
    up, down, error = (beside[name].to_numpy() for name in ("up", "down", "standard_error"))
    df = rows["df"].fill_null(1.0).to_numpy()
    t, shift = t_quantile(df, (1 + LEVEL) / 2), up - down
    variance = np.maximum(up + down - shift**2, 0.0)
    adjusted = error * t / normal_quantile((1 + LEVEL) / 2)
    low, high = tango(up, down, variance / adjusted**2)
    changed = {
        "low": low,
        "high": high,
        "standard_error": np.maximum(shift - low, high - shift) / t,
        "p_value": t_tail(df, shift / error * np.sqrt(over(variance, up + down))),
    }
    known = pl.all_horizontal(
        pl.col("standard_error", "df").is_not_null(), pl.Series(up + down <= MOST)
    )
    return rows.with_columns(
        *(
            pl.when(known).then(pl.Series(values)).otherwise(name).alias(name)
            for name, values in changed.items()
        ),
        method=pl.when(known).then(pl.lit("cluster-adjusted Tango")).otherwise("method"),
    )
