"""Cells that borrow strength from each other (methods, section 3)."""

from collections.abc import Sequence

import polars as pl

FEWEST = 3
"""Cells of a group below which their spread cannot be told from noise."""


def shrunk(cells: pl.DataFrame, group: Sequence[str]) -> pl.DataFrame:
    """Add ``shrunk`` and ``shrunk_error``: each estimate drawn toward the mean of its group.

    ``w = 1 / se^2``, ``Q = sum w (theta - sum w theta / sum w)^2``, ``tau^2 = max(0, (Q - (k - 1))
    / (sum w - sum w^2 / sum w))``, ``theta_bar`` the mean with weights ``1 / (tau^2 + se^2)``,
    ``B = tau^2 / (tau^2 + se^2)``, ``shrunk = theta_bar + B (theta - theta_bar)``, and
    ``shrunk_error^2 = B se^2 + (1 - B)^2 / sum 1 / (tau^2 + se^2)``.

    Parameters
    ----------
    cells
        With ``estimate`` and ``standard_error``.
    group
        Columns of what the cells have in common.

    Returns
    -------
    DataFrame
        The cells with two more columns; null where the error is null or 0, or where fewer than
        three cells of the group have one, or one is surer than the others beyond all measure.

    References
    ----------
    DerSimonian & Laird (1986), Control. Clin. Trials 7, 177-188; Morris (1983), JASA 78, 47-55.

    Examples
    --------
    0, .2 and .4 with error .1 each: w = 100, Q = 8, tau^2 = (8 - 2) / (300 - 100) = .03, B = .75,
    so .05, .2 and .35, with error^2 = .0075 + .0625 * .04 / 3 = .00833.
    """
    usable = pl.col("estimate").is_not_null() & (pl.col("standard_error") > 0)
    variance = pl.when(usable).then(pl.col("standard_error") ** 2)
    theta = pl.when(usable).then(pl.col("estimate"))
    within, total = pl.col("_within"), pl.col("_within") + pl.col("_tau2")
    keep = pl.col("_tau2") / total
    return (
        cells.with_columns(_within=variance, _theta=theta, _weight=1 / variance)
        .with_columns(_tau2=_between().over(group))
        .with_columns(_mean=_weighted_mean(pl.col("_theta"), 1 / total).over(group))
        .with_columns(
            shrunk=pl.col("_mean") + keep * (pl.col("_theta") - pl.col("_mean")),
            shrunk_error=(keep * within + (1 - keep) ** 2 / (1 / total).sum().over(group)).sqrt(),
        )
        .drop("_within", "_theta", "_weight", "_tau2", "_mean")
    )


def _between() -> pl.Expr:
    """Return the variance between cells by DerSimonian and Laird; null if there are too few."""
    weight, theta = pl.col("_weight"), pl.col("_theta")
    q = (weight * (theta - _weighted_mean(theta, weight)) ** 2).sum()
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    tau2 = ((q - (weight.count() - 1)) / scale).clip(0.0)
    # Beside one weight that swamps all others, only rounding errors are left of the scale.
    told = (weight.count() >= FEWEST) & (scale > 1e-9 * weight.sum())
    return pl.when(told).then(tau2)


def _weighted_mean(values: pl.Expr, weights: pl.Expr) -> pl.Expr:
    return (values * weights).sum() / weights.sum()
