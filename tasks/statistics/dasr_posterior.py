"""Bayesian posterior probability that the ASR exceeds its floor."""

from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.cells import even, reduced
from tasks.counting.verdicts import may_win, symmetric, wins, with_sham
from tasks.inference.cluster_sums import Floats, grouped
from tasks.inference.intervals import EMPTY
from tasks.inference.linearised_errors import is_enough, why_not_enough
from tasks.statistics import Rows, statistic

DRAWS, SEED = 4000, 20240613
LEAST = 0.05
PRIOR = 0.5
METHOD = f"Dirichlet posterior, {DRAWS} draws"


@statistic(
    source="methods.md, section 3 (Bayesian view)",
    family="effect",
    unit="probability",
    floor="sham",
    missing="no sample has verdicts in all arms and a control verdict that could change",
    no_interval="a probability: no interval",
)
def dasr_posterior(shifts: DataFrame[Shifts]) -> Rows:
    """Compute the posterior probability that the ASR lies above its floor by more than .05.

    The samples in V(ctrl) form a 2 x 2 table of successes (s_exp, s_sham) with shares p11, p10,
    p01, p00, and posterior Dirichlet(n11 + 1/2, n10 + 1/2, n01 + 1/2, n00 + 1/2). The estimate is
    the share of 4000 seeded draws in which ``p10 - p01 > .05``.

    Parameters
    ----------
    shifts
        One row per sample and perturbation; samples without a sham are left out.

    Returns
    -------
    Estimates
        A probability in [0, 1] per cell, without an interval. ``n`` counts the samples in V(ctrl).

    Notes
    -----
    A sample needs a verdict in all three arms, else it is dropped. Membership is taken from control
    alone, so it is one difference in a table, not the symmetric one of ``dasr``. Samples of a
    question are not independent: counts are divided by ``max(1, deff)``, deff the variance of
    ``(n10 - n01) / n`` by clusters over the variance of independent samples. Null with too few
    questions, and where arms have unequal votes per pair. For detract kinds a good judge is near 0.
    The seed depends on the table, so equal tables have equal probabilities.

    References
    ----------
    methods.md, section 3.

    Examples
    --------
    Forty questions, 20 won in experimental only and 20 in neither arm: about 1. With 10 won in
    experimental only, 10 in the sham only and 20 in neither: .32.
    """
    shammed = with_sham(shifts)
    if shammed.is_empty():
        return []
    groups = grouped(shammed)
    arms = [pl.col(arm).is_not_null() for arm in ("control", "sham", "experimental")]
    counted = pl.all_horizontal(*arms, may_win("control")).fill_null(value=False)
    attacked, unattacked = wins("experimental"), wins("sham")
    items = symmetric(shammed, "sham").with_columns(
        counted=counted,
        den=counted,
        up=(counted & attacked & ~unattacked).cast(pl.Float64),
        down=(counted & ~attacked & unattacked).cast(pl.Float64),
    )
    changes = {name: pl.Series(groups.by_cell(items[name])) for name in ("up", "down")}
    cells = reduced(items.with_columns(num=pl.col("up") - pl.col("down")), groups)
    cells = cells.with_columns(**changes, df=pl.col("freedom").fill_nan(None))
    enough = is_enough()
    rows = cells.with_columns(
        statistic=pl.lit("dasr_posterior"),
        estimate=pl.Series(_probabilities(cells), dtype=pl.Float64).fill_nan(None),
        n="counted",
        reason=pl.when(pl.col("den") == 0).then(pl.lit(EMPTY)).otherwise(why_not_enough()),
        method=pl.when(enough).then(pl.lit(METHOD)).otherwise(pl.lit("none")),
        seed=pl.when(enough).then(pl.lit(SEED, pl.Int64)),
    )
    return even(rows, items, groups, ("control", "sham"))


def _probabilities(cells: pl.DataFrame) -> list[float]:
    names = ("den", "up", "down", "squares")
    rows = cells.select(is_enough().alias("enough"), *names).iter_rows()
    return [_probability(*row) if enough else float("nan") for enough, *row in rows]


def _probability(n: float, up: float, down: float, squares: float) -> float:
    """Return P(p10 - p01 > .05)."""
    change = (up - down) / n
    independent = ((up + down) / n - change**2) / n
    variance = squares / n**2
    deff = max(1.0, variance / independent) if independent > 0 else 1.0
    counts = [count / deff for count in (up, down, n - up - down)]
    return above(*(round(count, 6) for count in counts))


@lru_cache(maxsize=4096)
def above(up: float, down: float, same: float) -> float:
    """Return the share of posterior draws in which ``p10 - p01`` exceeds .05.

    ``same`` is n11 + n00: the sum of two Dirichlet shares has the sum of their parameters.
    """
    seed: Any = (SEED, *(round(count * 1e6) for count in (up, down, same)))
    shapes = (up + PRIOR, down + PRIOR, same + 2 * PRIOR)
    drawn: Floats = np.random.default_rng(seed).standard_gamma(shapes, (DRAWS, 3))
    return float((drawn[:, 0] - drawn[:, 1] > LEAST * drawn.sum(axis=1)).mean())
