"""Mean preference shift in units of how much true shifts differ between samples."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._arms import beside_control
from tasks.statistics._delta import Linear, Sums, linearised, over, ratio_limits, summed
from tasks.statistics._groups import PART
from tasks.statistics._intervals import LEVEL

ORDERS = ("12", "21")
SIGNS = {"": 1, "control_": -1}
SIDES = ("anchor", "tie", "target")
SUMS = ("number", "total", "squares")
TOO_FEW = "no two samples have two valid votes in each order of both arms"
STOPPED = "votes were stopped early, so repeats are no random sample of the judge's votes"
ROUNDING = 1e-12
UNBOUNDED = "shifts may differ no more than noise explains: no interval"
ALL_NOISE = "shifts differ no more between samples than the noise of votes explains"


@statistic(source="methods.md, section 2", gives=("standardised_effect",))
def standardised_effect(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Divide the mean preference shift by the standard deviation of true shifts.

    ``MPS / sd_true``, where sd_true^2 is the covariance over samples of two half-scores of the
    shift, the repeats of each arm and order split at random. No split is drawn, as the mean over
    all of them is known: ``sd_true^2 = var_i(d_i) - mean_i(v_i)``, with d_i the shift of a sample,
    ``v_i = sum s_ao^2 / (16 n_ao)`` over its two arms and orders, s_ao^2 the variance (divisor
    n - 1) of the n_ao values -1, 0, 1 there.

    Why: a half-score is ``sum w_ao h_ao``, with h_ao the mean of a half and w = 1/4 or -1/4. Two
    halves share no vote, so within an arm and order the mean of their product over all splits is
    ``sum_{r != r'} x_r x_r' / (n (n - 1)) = m_ao^2 - s_ao^2 / n_ao``; arms and orders are split
    apart, so across them it is the product of the means. Hence ``d_i^2 - v_i`` for a sample, and
    ``d_i d_j`` for two. Their covariance, divisor N - 1, is
    ``sum_i (d_i^2 - v_i) / N - sum_{i != j} d_i d_j / (N (N - 1)) = var_i(d_i) - mean_i(v_i)``.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        One row per cell, in standard deviations. The interval joins those of the mean and of
        sd_true^2, each by cluster linearisation (Donner and Zou); the p-value is that of the mean,
        which is 0 where this is.

    Notes
    -----
    A sample needs two valid votes in each order of both arms, else it is dropped. Null where none
    has (as with two votes per pair), where votes were stopped early, and where shifts differ no
    more than noise explains: then nothing is known to divide by. Where they do, but perhaps by
    chance (the interval of sd_true^2 reaches 0), the effect may be as large as you like, and there
    is an estimate but no interval: none of finite length would hold it with a given chance. The
    score is that of balanced orders, whatever the mode. Prompt noise counts as truth: repeats share
    it.

    References
    ----------
    methods.md, section 2. Donner and Zou (2012), Stat. Methods Med. Res. 21, 347-359. Gleser and
    Hwang (1987), Ann. Stat. 15, 1351-1362 (no finite interval where the divisor may be 0).

    Examples
    --------
    Four votes an arm that always agree with themselves: v = 0. Shifts 0 and 1: mean 1/2, variance
    1/2, so .5 / .7071 = .7071.
    """
    cells = summed(_moments(tallies), ("d", "dd", "v", "early"))
    return _divided(linearised("mean", cells, _mean_shift), linearised("var", cells, _variance))


def _moments(tallies: pl.DataFrame) -> pl.DataFrame:
    arms = {(arm, order): sign for arm, sign in SIGNS.items() for order in ORDERS}
    items = beside_control(tallies).with_columns(
        value.alias(f"{name}_{arm}{order}")
        for arm, order in arms
        for name, value in zip(SUMS, _sums(arm, order), strict=True)
    )
    enough = pl.all_horizontal(_votes(*where)[0] >= 2 for where in arms)
    shift = pl.sum_horizontal(sign / 4 * _mean(*where) for where, sign in arms.items())
    return items.with_columns(
        counted=enough,
        dropped=~enough,
        d=shift,
        dd=shift**2,
        v=pl.sum_horizontal(_noise(*where) for where in arms) / 16,
    )


def _votes(arm: str, order: str) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    n, total, squares = (pl.col(f"{name}_{arm}{order}") for name in SUMS)
    return n, total, squares


def _sums(arm: str, order: str) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Return the number of valid votes, the sum of their values -1, 0, 1, and that of squares."""
    anchor, tie, target = (
        pl.col(f"{arm}{side}_{order}").cast(pl.Float64).fill_null(0.0) for side in SIDES
    )
    return anchor + tie + target, target - anchor, target + anchor


def _mean(arm: str, order: str) -> pl.Expr:
    n, total, _ = _votes(arm, order)
    return total / n


def _noise(arm: str, order: str) -> pl.Expr:
    """Return the variance of a mean of votes."""
    n, total, squares = _votes(arm, order)
    return (squares - total**2 / n) / (n - 1) / n


def _mean_shift(sums: dict[str, Sums]) -> Linear:
    n = sums["n"]
    fit = (n > 1) & (sums["early"] == 0)
    mean = np.where(fit, over(sums["d"], n), np.nan)
    return Linear(mean, {"d": over(1.0, n)}, np.where(n > 1, STOPPED, TOO_FEW))


def _variance(sums: dict[str, Sums]) -> Linear:
    n = sums["n"]
    mean, squares, noise = (over(sums[name], n) for name in ("d", "dd", "v"))
    # Not one of the sums but a constant: it only makes the variance unbiased.
    more = over(n, n - 1)
    slopes = {"d": over(-2 * more * mean, n), "dd": over(more, n), "v": over(-1.0, n)}
    return Linear(more * (squares - mean**2) - noise, slopes, np.full(n.shape, TOO_FEW))


def _divided(mean: DataFrame[Estimates], variance: DataFrame[Estimates]) -> DataFrame[Estimates]:
    """Return mean over root of variance, null where that is not above 0."""
    ends = [pl.col(c).alias(f"var_{c}") for c in ("estimate", "low", "high", "reason")]
    rows = mean.join(variance.select(*PART, *ends), on=PART, how="left")
    differ = pl.col("var_estimate") > ROUNDING
    bounded = differ & pl.col("low").is_not_null() & (pl.col("var_low") > 0).fill_null(value=False)
    deviation = np.sqrt(np.fmax(_three(rows, "var_"), 0.0))
    shift = _three(rows, "")
    low, high = ratio_limits((shift[0], shift[1], shift[2]), tuple(deviation))
    one = pl.col("estimate").is_not_null() & differ
    found = {
        "estimate": pl.when(one).then(pl.Series(over(shift[0], deviation[0]))),
        "low": pl.when(bounded).then(pl.Series(low)),
        "high": pl.when(bounded).then(pl.Series(high)),
        "level": pl.when(bounded).then(pl.lit(LEVEL)),
        "p_value": pl.when(one).then(pl.col("p_value")),
        "standard_error": pl.lit(None, dtype=pl.Float64),
        "method": pl.when(bounded).then(pl.lit("Donner and Zou")).otherwise(pl.lit("none")),
        "reason": pl.when(pl.col("estimate").is_null() | bounded)
        .then(pl.col("reason"))
        .when(differ)
        .then(pl.coalesce("reason", "var_reason", pl.lit(UNBOUNDED)))
        .otherwise(pl.lit(ALL_NOISE)),
    }
    return Estimates.draft(rows.with_columns(**found, statistic=pl.lit("standardised_effect")))


def _three(rows: pl.DataFrame, prefix: str) -> Sums:
    names = [f"{prefix}{c}" for c in ("estimate", "low", "high")]
    return rows.select(pl.col(names).cast(pl.Float64)).to_numpy().T
