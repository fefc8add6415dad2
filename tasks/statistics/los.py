"""Log-odds shift."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._arms import beside_control
from tasks.statistics._delta import Linear, Sums, linearised, over, summed
from tasks.statistics._intervals import EMPTY
from tasks.statistics._once import once

NEVER = "no sample has votes for different answers in the two arms"
HALF = 0.5
FLAG = "; .5 added, as one side has no votes"


@statistic(source="methods.md, section 2 (Mantel-Haenszel over sample and order)")
def los(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure how far a perturbation moves the log odds of a vote for the target.

    With c1, c2 the control votes for anchor and target of a sample in one order, and e1, e2 the
    experimental ones: ``LOS = ln(A / B)``, ``A = sum c1 e2``, ``B = sum c2 e1``, ties ignored.
    With a_g, b_g the sums of a cluster: ``SE^2 = G / (G - 1) sum_g (a_g / A - b_g / B)^2``.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        One row per cell, in logits, with the interval and p-value of t with G - 1 degrees of
        freedom, and beside it that of the cluster bootstrap. n counts the samples with a valid
        vote in both arms in the same order.

    Notes
    -----
    The planted effect of a logit judge whatever the gaps of quality, ties and position effect;
    prompt noise draws it to 0, but leaves 0 at 0. If A or B is 0, .5 is added to both, and
    ``method`` says so; the half counts as one more cluster, else an interval would overlook that
    the rarer event was never seen. If both are 0: null. As each stratum is one order, votes that
    were stopped early do not bend it: the expected counts of both answers are their chances times
    the expected number of votes (Wald). Not the normal quantile of methods.md: of 20 questions it
    found an effect that is not there in up to 7 % of studies, and covered in 92 %.

    References
    ----------
    Mantel and Haenszel (1959), JNCI 22, 719-748. methods.md, section 2.

    Examples
    --------
    Control 2 anchor, 1 target and experimental 1 anchor, 2 target in one order of one sample:
    A = 2 * 2 = 4, B = 1 * 1 = 1, LOS = ln 4 = 1.386.
    """
    cells = summed(products(tallies), ("a", "b"), log_odds)
    return linearised("los", cells, _linear)


@once
def products(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the samples with their part in A and B, ``a`` and ``b``, and whether they count."""
    in_both = [
        pl.all_horizontal(_valid(arm, order) > 0 for arm in ("control_", ""))
        for order in ("12", "21")
    ]
    return (
        beside_control(tallies)
        .with_columns(
            counted=pl.any_horizontal(in_both).fill_null(value=False),
            a=_product("anchor", "target", "12") + _product("anchor", "target", "21"),
            b=_product("target", "anchor", "12") + _product("target", "anchor", "21"),
        )
        .with_columns(dropped=~pl.col("counted"))
    )


def _valid(arm: str, order: str) -> pl.Expr:
    return pl.sum_horizontal(f"{arm}{side}_{order}" for side in ("anchor", "tie", "target"))


def _product(control: str, experimental: str, order: str) -> pl.Expr:
    before, after = pl.col(f"control_{control}_{order}"), pl.col(f"{experimental}_{order}")
    return before.cast(pl.Float64) * after.cast(pl.Float64)


def log_odds(sums: dict[str, Sums]) -> Sums:
    """Return ``ln(A / B)`` of the sums ``a`` and ``b``; not a number where both are 0."""
    a, b = sums["a"], sums["b"]
    more = np.where((a == 0) != (b == 0), HALF, 0.0)
    odds = over(a + more, b + more)
    found: Sums = np.log(odds, out=np.full(odds.shape, np.nan), where=odds > 0)
    return found


def _linear(sums: dict[str, Sums]) -> Linear:
    a, b = sums["a"], sums["b"]
    one_sided = (a == 0) != (b == 0)
    more = np.where(one_sided, HALF, 0.0)
    slope_a, slope_b = over(1.0, a + more), over(-1.0, b + more)
    return Linear(
        log_odds(sums),
        {"a": slope_a, "b": slope_b},
        reason=np.where(sums["n"] > 0, NEVER, EMPTY),
        added=np.where(one_sided, np.nan_to_num(more * (slope_a + slope_b)) ** 2, 0.0),
        flag=np.where(one_sided, FLAG, ""),
    )
