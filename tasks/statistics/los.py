"""Log-odds shift."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.counting.arms import beside_control, beside_sham
from tasks.counting.positions import ORDERS, VERDICTS
from tasks.inference.bootstrap import BOOT
from tasks.inference.cluster_sums import Sums, grouped
from tasks.inference.delta_method import Linear, linearised, summed
from tasks.inference.intervals import EMPTY, LEVEL, t_interval
from tasks.inference.linearised_errors import over
from tasks.inference.quantiles import t_quantile
from tasks.kit.defaults import limits
from tasks.statistics import Rows, statistic

NEVER = "no sample has votes for different answers in the two arms"
HALF = 0.5
SUMS = ("a", "b")
FLAG = "; .5 added because one side has no votes"
FLIPS = "; p at least that of sign flips of the few questions that differ"
ONE = "a single question has votes for different answers: no interval"


@statistic(
    source="methods.md, section 2 (Mantel-Haenszel over sample and order)",
    gives=("los", "los_sham"),
    family="effect",
    unit="logit",
    null=0.0,
    rows={"los_sham": {"floor": "sham"}},
    missing="no sample has valid votes in one order in both arms",
)
def los(tallies: DataFrame[Tallies]) -> Rows:
    """Measure how far a perturbation moves the log-odds of a vote for the target.

    With c1, c2 the control votes for anchor and target of a sample in one order, and e1, e2 the
    experimental ones: ``LOS = ln(A / B)``, ``A = sum c1 e2``, ``B = sum c2 e1``, ties ignored.
    With a_g, b_g the sums of a cluster: ``SE^2 = sum_g c_g^2 (a_g / A - b_g / B)^2``,
    c_g^2 the CR2 weights of the clusters (``linearised_errors.py``).

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        One row per cell, in logits, with interval and p-value by t with Satterthwaite degrees of
        freedom, and a cluster bootstrap interval. n counts the samples with a valid vote in both
        arms in the same order. ``los_sham``: the same over the sham, where there is one.

    Notes
    -----
    For a logit judge this is the planted effect, whatever the quality gaps, ties and position
    effect; prompt noise shrinks it toward 0, but leaves 0 at 0. If A or B is 0, .5 is added to
    both, and ``method`` says so; the half counts as one more cluster, as an interval would
    otherwise ignore that the rarer event was never seen. If both are 0: null. As each stratum is
    one order, sequential stopping does not bias it: the expected counts of both answers are their
    probabilities times the expected number of votes (Wald). Where the arms differ in fewer than
    ten questions, the interval has at least the p-value of a sign-flip test. The quantile is t's:
    with 20 questions the normal one covered in .925 (docs/reference/operating-characteristics.md).

    References
    ----------
    Mantel and Haenszel (1959), JNCI 22, 719-748. methods.md, section 2.

    Examples
    --------
    Control 2 anchor, 1 target and experimental 1 anchor, 2 target in one order of one sample:
    A = 2 * 2 = 4, B = 1 * 1 = 1, LOS = ln 4 = 1.386.
    """
    sides = {"los": products(tallies), "los_sham": _products(beside_sham(tallies), "sham_")}
    return [
        _measured(name, items)
        for name, items in sides.items()
        if name == "los" or not items.is_empty()
    ]


def _measured(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    groups = grouped(items)
    rows = linearised(name, summed(items, SUMS, log_odds, groups), linear_log_odds)
    counted = items.select(pl.when("counted").then(pl.col("a") - pl.col("b")).otherwise(0.0))
    moved = groups.of_cells((groups.by_cluster(counted.to_series()) != 0).astype(np.float64))
    return Estimates.draft(_with_sign_flips(rows, pl.Series(moved)))


def _with_sign_flips(rows: pl.DataFrame, moved: pl.Series) -> pl.DataFrame:
    """Widen intervals that rest on ``moved`` clusters, fewer than a finding needs.

    If a perturbation did nothing, each cluster in which the two arms differ could as well differ
    the other way, so no two-sided test can have a p-value below ``2^(1 - moved)``. The linearised
    one has: its error counts the clusters that do not differ, and more repeats of one vote move the
    estimate away from 0. The interval becomes that with this p-value. With fewer than ten clusters
    in all, nothing is concluded, and the numbers stay.
    """
    p_value, df, estimate = (
        rows[name].fill_null(float("nan")).to_numpy() for name in ("p_value", "df", "estimate")
    )
    few = moved.to_numpy()
    least = 2.0 ** (1 - np.clip(few, 1, limits().fewest_questions))
    enough = rows["clusters"].to_numpy() >= limits().fewest_questions
    sparse = enough & (few < limits().fewest_questions) & (p_value < least)
    one = sparse & (few < 2)
    t = t_quantile(np.where(sparse, df, 1.0), np.where(sparse & ~one, 1 - least / 2, 0.75))
    error = np.where(one, np.nan, np.abs(estimate) / t)
    low, high, _ = t_interval(estimate, np.nan_to_num(error), df)
    new = {
        "low": low,
        "high": high,
        "standard_error": error,
        "p_value": least,
        "level": np.where(one, np.nan, LEVEL),
    }
    changed = pl.Series(sparse)
    return rows.with_columns(
        *(
            pl.when(changed)
            .then(pl.Series(values).fill_nan(None))
            .otherwise(pl.col(name))
            .alias(name)
            for name, values in new.items()
        ),
        pl.when(~pl.Series(one)).then(pl.col(BOOT)),
        method=pl.when(changed).then(pl.col("method") + FLIPS).otherwise("method"),
        reason=pl.when(pl.Series(one)).then(pl.lit(ONE)).otherwise("reason"),
    )


def products(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the samples with their terms of A and B, ``a`` and ``b``, and whether they count."""
    return _products(beside_control(tallies), "control_")


def _products(sides: pl.DataFrame, base: str) -> pl.DataFrame:
    in_both = [pl.all_horizontal(_valid(arm, order) > 0 for arm in (base, "")) for order in ORDERS]
    a, b = (
        pl.sum_horizontal(
            pl.col(f"{base}{one}_{order}").cast(pl.Float64)
            * pl.col(f"{other}_{order}").cast(pl.Float64)
            for order in ORDERS
        )
        for one, other in (("anchor", "target"), ("target", "anchor"))
    )
    counted = pl.any_horizontal(in_both).fill_null(value=False)
    return sides.with_columns(counted=counted, dropped=~counted, a=a, b=b)


def _valid(arm: str, order: str) -> pl.Expr:
    return pl.sum_horizontal(f"{arm}{side}_{order}" for side in VERDICTS)


def log_odds(sums: dict[str, Sums]) -> Sums:
    """Return ``ln(A / B)`` of the sums ``a`` and ``b``; NaN where both are 0."""
    a, b = sums["a"], sums["b"]
    more = np.where((a == 0) != (b == 0), HALF, 0.0)
    odds = over(a + more, b + more)
    found: Sums = np.log(odds, out=np.full(odds.shape, np.nan), where=odds > 0)
    return found


def linear_log_odds(sums: dict[str, Sums]) -> Linear:
    """Return :func:`log_odds` linearised, and the variance that an added half brings."""
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
