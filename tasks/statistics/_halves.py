"""Means of logs in which every pair was seen in one order: over the halves shown in either order.

The position of an answer moves the two halves in opposite directions, so the mean of their two
estimates is free of it, whatever their sizes, if the order of each pair was drawn at random.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics._bootstrap import BOOT, boot_ends, bounds_of
from tasks.statistics._cluster_variance import correction
from tasks.statistics._delta import over
from tasks.statistics._groups import PART, Groups, grouped
from tasks.statistics._intervals import EMPTY, LEVEL
from tasks.statistics._quantiles import t_tail

Sums = NDArray[np.float64]
Measure = Callable[[pl.DataFrame, Groups | None], DataFrame[Estimates]]
NOTE = "mean of the two halves seen in either order, orders taken as drawn at random"
ONE_HALF = "every pair was seen in the same order: its effect cannot be told from the answers"
HALVES = (True, False)


def by_order(
    items: pl.DataFrame, measure: Measure, groups: Groups | None = None
) -> DataFrame[Estimates]:
    """Measure items; those of judges that saw every pair in one order by halves.

    ``half`` is null in all items of other judges; ``groups`` are those of the items.
    """
    alone = items["half"].is_not_null()
    if not alone.any():
        return measure(items, groups)
    if alone.all():
        return mean_of_halves(items, measure)
    both = [measure(items.filter(~alone), None), mean_of_halves(items.filter(alone), measure)]
    return Estimates.draft(pl.concat(both))


def mean_of_halves(items: pl.DataFrame, measure: Measure) -> DataFrame[Estimates]:
    """Return, per cell, the mean of what ``measure`` gives for each half.

    With the estimates m_1 and m_2 and the distances d_1 and d_2 to the same ends of their
    intervals: ``(m_1 + m_2) / 2``, an end at ``1/2 sqrt(d_1^2 + d_2^2 + 2 r d_1 d_2)`` from it, the
    variance ``(v_1 + v_2 + 2 r sqrt(v_1 v_2)) / 4``, and Welch's degrees of freedom, but no more
    than those of the clusters by their share of the mean: Welch takes the halves as independent. r
    is the correlation of the two means that comes from clusters with items in both halves, else 0.

    Parameters
    ----------
    items
        As ``measure`` takes them, with ``counted`` and ``num``, and ``half``, true or false.
    measure
        Ratios or shares of items, with the groups that it is given.

    References
    ----------
    methods.md, section 16 (one order only). Zou and Donner (2008), Stat. Med. 27, 1693-1702 (limits
    of sums from those of the parts). Welch (1947), Biometrika 34, 28-35.

    Examples
    --------
    Shares .6 +- .08 and .2 +- .06: .4 +- 1/2 sqrt(.0064 + .0036) = .4 +- .05.
    """
    groups = grouped(items)
    counted = items["counted"].fill_null(value=False)
    rows = []
    deviations, sizes = [], []
    for half in HALVES:
        own = (counted & (items["half"] == half)).fill_null(value=False)
        rows.append(measure(items.with_columns(counted=own, dropped=pl.lit(0)), groups).sort(PART))
        size = groups.by_cluster(own)
        total = groups.by_cluster(items["num"].zip_with(own, pl.Series([0.0])))
        mean = over(groups.of_cells(total), groups.of_cells(size))
        deviations.append(total - np.nan_to_num(mean)[groups.cell_of_sums()] * size)
        sizes.append((size, total))
    lost = groups.by_cell(items.select((~pl.col("counted")).fill_null(value=True)).to_series())
    shares = (np.nan_to_num(over(n, groups.of_cells(n)[groups.cell_of_sums()])) for n, _ in sizes)
    both = groups.of_cells(deviations[0] * deviations[1])
    squares = [groups.of_cells(each**2) for each in deviations]
    shared = groups.cells.select(*PART).with_columns(
        r=pl.Series(np.clip(np.nan_to_num(over(both, np.sqrt(squares[0] * squares[1]))), -1, 1)),
        freedom=pl.Series(correction(np.add(*shares), groups.starts).df).fill_nan(None),
        lost=pl.Series(lost.astype(np.int64)),
        seen=pl.Series(
            groups.of_cells(((sizes[0][0] + sizes[1][0]) > 0).astype(np.float64)).astype(np.int64)
        ),
        **_boot(groups, sizes),
    )
    return _combined(rows[0], rows[1], shared)


def _boot(groups: Groups, sizes: list[tuple[Sums, Sums]]) -> dict[str, pl.Series]:
    (n_one, one), (n_other, other) = sizes
    sums = {"n_one": n_one, "one": one, "n_other": n_other, "other": other}

    def value(totals: dict[str, Sums]) -> Sums:
        halves = (over(totals[half], totals[f"n_{half}"]) for half in ("one", "other"))
        return np.add(*halves) / 2

    ends = bounds_of(groups, sums, n_one + n_other, value)
    return {f"of_{series.name}": series for series in boot_ends(ends)}


def _combined(one: pl.DataFrame, other: pl.DataFrame, shared: pl.DataFrame) -> DataFrame[Estimates]:
    numbers = (
        "estimate", "low", "high", "standard_error", "df", "clusters", "n", "method", "reason"
    )  # fmt: skip
    found = one.join(
        other.select(*PART, *(pl.col(name).alias(f"other_{name}") for name in numbers)),
        on=PART, nulls_equal=True, maintain_order="left",
    ).join(shared, on=PART, nulls_equal=True, maintain_order="left")  # fmt: skip
    estimate = (pl.col("estimate") + pl.col("other_estimate")) / 2

    def joined(first: pl.Expr, second: pl.Expr) -> pl.Expr:
        return (first**2 + second**2 + 2 * pl.col("r") * first * second).sqrt() / 2

    def end(name: str) -> pl.Expr:
        apart = (pl.col(f"{side}{name}") - pl.col(f"{side}estimate") for side in ("", "other_"))
        sign = -1 if name == "low" else 1
        return estimate + sign * joined(*apart)

    bounded = pl.col("low").is_not_null() & pl.col("other_low").is_not_null()
    several = pl.when(pl.col("n") > 0).then("reason").otherwise(None)
    empty = (pl.col("n") == 0) != (pl.col("other_n") == 0)
    found = found.with_columns(
        estimate=estimate,
        low=end("low"),
        high=end("high"),
        level=pl.when(bounded).then(LEVEL),
        standard_error=joined(pl.col("standard_error"), pl.col("other_standard_error")),
        df=pl.when(bounded).then(pl.min_horizontal(_welch(), "freedom")),
        n=pl.col("n") + pl.col("other_n"),
        clusters=pl.when(estimate.is_not_null()).then("seen").otherwise(0),
        dropped=pl.col("lost"),
        hits=None,
        method=pl.when(bounded)
        .then(pl.format("{}; {}", "method", pl.lit(NOTE)))
        .otherwise(pl.lit("none")),
        reason=pl.when(empty)
        .then(pl.lit(ONE_HALF))
        .when(pl.col("n") == 0)
        .then(pl.lit(EMPTY))
        .otherwise(pl.coalesce(several, "other_reason")),
        **{name: pl.when(bounded).then(f"of_{name}") for name in BOOT},
    )
    score = (found["estimate"] / found["standard_error"]).to_numpy().astype(np.float64)
    df = found["df"].fill_null(1.0).to_numpy().astype(np.float64)
    tested = pl.Series(t_tail(df, score)).fill_nan(None)
    return Estimates.draft(found.with_columns(p_value=tested))


def _welch() -> pl.Expr:
    """Return Welch's degrees of freedom of the mean of two estimates, by their intervals."""
    one, other = (
        ((pl.col(f"{half}high") - pl.col(f"{half}low")) ** 2, pl.col(f"{half}df"))
        for half in ("", "other_")
    )
    return (one[0] + other[0]) ** 2 / (one[0] ** 2 / one[1] + other[0] ** 2 / other[1])
