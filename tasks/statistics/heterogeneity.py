"""Heterogeneity: how much true shifts differ between samples, and whether any is not 0."""

from functools import partial

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.keys import SAMPLE
from schemas.results import Estimates
from tasks.counting.arms import arms_beside
from tasks.counting.positions import ORDERS
from tasks.counting.primary_endpoint import over_shams
from tasks.inference.bootstrap import BOOT, by_chance
from tasks.inference.cluster_sums import PART, Groups, Sums, grouped, join_cells
from tasks.inference.delta_method import Linear, linearised, mean_of, ratio_limits, summed
from tasks.inference.intervals import LEVEL, arrays
from tasks.inference.linearised_errors import ROUNDING, over
from tasks.inference.permutation import FLIP_SEED, sign_flip_test
from tasks.statistics import Rows, statistic

TOO_FEW = "no sample has a valid vote in each order of both arms"
UNBOUNDED = "shifts may differ no more than noise explains: no interval"
ALL_NOISE = "shifts differ no more between samples than the noise of votes explains"
SUMS = ("d", "dd")
NOTHING = pl.lit(None, pl.Float64)


@statistic(
    source="methods.md, section 16 (heterogeneity); section 2 (standardised effect)",
    gives=("shift_spread", "mean_square_shift", "standardised_effect"),
    family="effect",
    unit="score",
    null=0.0,
    rows={"standardised_effect": {"unit": "ratio"}},
)
def heterogeneity(tallies: DataFrame[Tallies], shifts: DataFrame[Shifts]) -> Rows:
    """Measure the standard deviation of true shifts, from the two orders of each sample.

    With d_i1 and d_i2 the shift of a sample in each order, over the primary endpoint's base (sham
    or control), and d_i their mean: ``shift_spread = sqrt(mean(d_i1 d_i2) - mean(d_i)^2)``. The
    orders share no vote, so voting noise cancels in the product.
    ``mean_square_shift = mean(d_i1 d_i2)`` estimates the mean of the squared true shifts.
    ``standardised_effect = mean(d_i) / shift_spread``.

    Parameters
    ----------
    tallies
        One row per pair and judge.
    shifts
        One row per sample and perturbation; their mode is irrelevant, as the scores are by balanced
        orders.

    Returns
    -------
    Estimates
        Three rows per cell. ``shift_spread`` is in score units, 0 if the orders agree no more than
        by chance, with a cluster bootstrap interval (above 20 000 clusters by linearisation). The
        p-value of ``mean_square_shift`` is one-sided and tests that no sample shifts at all: then
        experimental and base are exchangeable in each order, so the signs of one order's shifts can
        be flipped. The p-value of ``standardised_effect`` tests the mean; its interval combines the
        intervals of mean and spread (Donner and Zou).

    Notes
    -----
    A sample needs a valid vote in each order of both arms, else it is dropped; two votes per arm
    suffice. Signs are flipped by cluster: flipping by sample is exact only if samples of a question
    share no noise, and gains little power (simulated, operating-characteristics.md). A uniform
    effect in logits shifts easy pairs less than hard ones, so a spread above 0 does not prove
    opposite effects. ``standardised_effect`` is null if shifts differ no more than noise explains.
    If they do, but not significantly, it has no interval, as it can be arbitrarily large.

    References
    ----------
    methods.md, sections 2 and 16. Donner and Zou (2012), Stat. Methods Med. Res. 21, 347-359.
    Gleser and Hwang (1987), Ann. Stat. 15, 1351-1362 (no finite interval where the divisor may be
    0).

    Examples
    --------
    Shifts of 1, 1 in the orders of one sample and 0, 0 of another: mean square 1/2, mean 1/2, so
    the spread is sqrt(1/2 - 1/4) = 1/2 and the standardised effect 1. Two of the four sign patterns
    reach the sum of 1: p = 1/2.
    """
    if shifts.is_empty():
        return []
    groups = grouped(shifts)
    items, over_base = _items(tallies, shifts, groups)
    return _over_which(spread_rows(items, groups), groups, over_base)


def spread_rows(items: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Return the three rows of each cell from two independent shifts of its samples.

    ``items`` has the mean ``d`` and the product ``dd`` of the two, ``counted`` and ``dropped``.
    """
    cells = summed(items, SUMS, _spread, groups)
    mean = linearised("mean", cells, partial(mean_of, "d", TOO_FEW))
    square = linearised("mean_square_shift", cells, partial(mean_of, "dd", TOO_FEW))
    variance = linearised("variance", cells, _variance)
    return pl.concat(
        [_spreads(variance), _tested(square, items, groups), _standardised(mean, variance)]
    )


def _items(
    tallies: pl.DataFrame, shifts: pl.DataFrame, groups: Groups
) -> tuple[pl.DataFrame, pl.Series]:
    """Return the shifts of samples in each order, and which cells use the sham as base."""
    shammed = over_shams(shifts, groups)
    scores = arms_beside(tallies)
    # A left join keeps the order of samples, which the groups' indices refer to.
    found = shifts.select(*SAMPLE, "perturbation", over=pl.Series(shammed[groups.cell])).join(
        scores, on=[*SAMPLE, "perturbation"], how="left", maintain_order="left"
    )
    one, two = (
        pl.col(f"experimental_{order}")
        - pl.when("over").then(f"sham_{order}").otherwise(f"control_{order}")
        for order in ORDERS
    )
    scored = (one + two).is_not_null()
    moved = found.select(counted=scored, dropped=~scored, d=(one + two) / 2, dd=one * two)
    return moved, pl.Series("over", shammed)


def _spread(sums: dict[str, Sums]) -> Sums:
    mean, square = over(sums["d"], sums["n"]), over(sums["dd"], sums["n"])
    found: Sums = np.sqrt(np.maximum(square - mean**2, 0.0))
    return found


def _variance(sums: dict[str, Sums]) -> Linear:
    n = sums["n"]
    mean, square = over(sums["d"], n), over(sums["dd"], n)
    slopes = {"d": over(-2 * mean, n), "dd": over(1.0, n)}
    return Linear(square - mean**2, slopes, np.full(n.shape, TOO_FEW))


def _spreads(variance: DataFrame[Estimates]) -> pl.DataFrame:
    """Return the spread with a bootstrap interval or, without one, the root of the variance's."""
    drawn = pl.col("boot_low").is_not_null()
    known = pl.col("low").is_not_null()
    ends = {
        end: pl.when(drawn).then(f"boot_{end}").when(known).then(_root(end))
        for end in ("low", "high")
    }
    return variance.with_columns(
        statistic=pl.lit("shift_spread"),
        estimate=_root("estimate"),
        **ends,
        standard_error=NOTHING,
        p_value=NOTHING,
        method=pl.when(drawn).then(pl.lit("cluster bootstrap")).otherwise("method"),
    ).select(variance.columns)


def _root(column: str) -> pl.Expr:
    return pl.col(column).clip(lower_bound=0.0).sqrt()


def _tested(square: DataFrame[Estimates], items: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Set the p-value of the mean square from a sign-flip test."""
    blank = square.with_columns(NOTHING.alias(name) for name in ("p_value", *BOOT))
    if not by_chance():
        return blank
    products = groups.by_cluster(
        items.select(pl.when("counted").then("dd").otherwise(0.0)).to_series()
    )
    p_values = np.empty(groups.cells.height)
    for cells in groups.blocks():
        sums = groups.table(products, cells)[:, None, :]
        p_values[cells] = sign_flip_test(sums, lambda totals: totals[:, 0])
    testable = pl.col("estimate").is_not_null() & (pl.col("clusters") > 1)
    return blank.with_columns(
        p_value=pl.when(testable).then(pl.Series(p_values)),
        method=pl.when(testable)
        .then(pl.format("{}; sign flips by cluster", "method"))
        .otherwise("method"),
        seed=pl.when(testable).then(pl.lit(FLIP_SEED, pl.Int64)),
    )


def _standardised(mean: DataFrame[Estimates], variance: DataFrame[Estimates]) -> pl.DataFrame:
    """Return the mean over the root of the variance; null where the variance is not above 0."""
    ends = [pl.col(c).alias(f"var_{c}") for c in ("estimate", "low", "high", "reason")]
    rows = mean.join(variance.select(*PART, *ends), on=PART, how="left", maintain_order="left")
    differ = pl.col("var_estimate") > ROUNDING
    bounded = differ & pl.col("low").is_not_null() & (pl.col("var_low") > 0).fill_null(value=False)
    shift, variances = (
        arrays(rows, *(f"{prefix}{c}" for c in ("estimate", "low", "high")))
        for prefix in ("", "var_")
    )
    deviation = [np.sqrt(np.fmax(each, 0.0)) for each in variances]
    low, high = ratio_limits(shift, deviation)
    one = pl.col("estimate").is_not_null() & differ
    found = {
        "estimate": pl.when(one).then(pl.Series(over(shift[0], deviation[0]))),
        "low": pl.when(bounded).then(pl.Series(low)),
        "high": pl.when(bounded).then(pl.Series(high)),
        "level": pl.when(bounded).then(pl.lit(LEVEL)),
        "p_value": pl.when(one).then(pl.col("p_value")),
        **dict.fromkeys(("standard_error", *BOOT), NOTHING),
        "method": pl.when(bounded).then(pl.lit("Donner and Zou")).otherwise(pl.lit("none")),
        "reason": pl.when(pl.col("estimate").is_null() | bounded)
        .then(pl.col("reason"))
        .when(differ)
        .then(pl.coalesce("reason", "var_reason", pl.lit(UNBOUNDED)))
        .otherwise(pl.lit(ALL_NOISE)),
    }
    effects = rows.with_columns(**found, statistic=pl.lit("standardised_effect"))
    return effects.select(mean.columns)


def _over_which(rows: pl.DataFrame, groups: Groups, shammed: pl.Series) -> pl.DataFrame:
    """Note in the method which cells are measured over the sham."""
    cells = groups.cells.select(*PART, over=shammed)
    marked = join_cells(rows, cells)
    named = pl.when(pl.col("over") & (pl.col("method") != "none"))
    return marked.with_columns(
        method=named.then(pl.format("{}, over the sham", "method")).otherwise("method"),
        floor=named.then(pl.lit("sham")),
    ).drop("over")
