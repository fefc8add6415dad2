"""Agreement of a judge with itself when the answers change places, beyond chance."""

from functools import partial

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._annotations import (
    ONE_LABEL,
    Row,
    block_of,
    collected,
    estimates,
    over,
)
from tasks.statistics._intervals import Sums
from tasks.statistics._pairs import AGREE, FIRST, N, pairs_of, sums_of

JUDGE = ("dataset", "judge", "prompt", "wave")


@statistic(source="arXiv:2310.07641, section 4; Cohen (1960)")
def order_kappa(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure by Cohen's kappa how far the verdicts in the two orders agree beyond chance.

    ``kappa = (p_o - p_e) / (1 - p_e)`` over the control pairs, of the first vote in each order
    (repeat 0), with the verdicts anchor, tie and target.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        One row per judge, prompt and wave. Interval by cluster bootstrap.

    Notes
    -----
    Pairs with a vote without a verdict are left out and counted. One verdict only: null. This is no
    measure of position bias: noise lowers it too, and so does a set of pairs in which one side
    mostly wins. Zeng et al. count a vote without a verdict as one for the second answer.

    References
    ----------
    Zeng et al. (2024), arXiv:2310.07641; Cohen (1960), Educ. Psychol. Meas. 20, 37-46.

    Examples
    --------
    Ten pairs: alike on 3 anchor and 4 target, three times anchor then target. p_o = .7,
    p_e = .6 * .3 + .4 * .7 = .46, kappa = .24 / .54 = 4/9.
    """
    control = tallies.filter(pl.col("arm") == "control", pl.col("matched_once"))
    found = []
    for keys, rows in sorted(
        control.partition_by(JUDGE, as_dict=True).items(), key=lambda p: tuple(map(str, p[0]))
    ):
        told = rows.drop_nulls(["once_12", "once_21"])
        if told.is_empty():
            continue
        block = block_of(str(keys[0]), None, _as_annotators(told))
        pairs = pairs_of(block)
        cell = pairs.cells.with_columns(
            judge=pl.lit(str(keys[1])), prompt=pl.lit(str(keys[2])), wave=pl.lit(str(keys[3])),
            subgroup=pl.lit(""), dropped=pl.lit(rows.height - told.height),
            votes=pl.lit(rows["planned"].mode().max()),
        )  # fmt: skip
        found += estimates(
            block, cell, partial(sums_of, block, pairs), partial(_solve, len(block.labels)),
            {"order_kappa": Row(N, undefined=ONE_LABEL)},
        )  # fmt: skip
    return collected(found)


def _as_annotators(rows: pl.DataFrame) -> pl.DataFrame:
    """Take the two orders for two annotators."""
    orders = [
        rows.select(
            pl.col("sample", "cluster").cast(pl.String), "simulated",
            annotator=pl.lit(order), prompt=pl.lit(""), wave=pl.lit(""), human=pl.lit(value=False),
            label=pl.col(f"once_{order}").cast(pl.String),
            value=pl.col(f"once_{order}").cast(pl.Float64), votes=pl.lit(1),
        ).rename({"sample": "item"})
        for order in ("12", "21")
    ]  # fmt: skip
    return pl.concat(orders)


def _solve(kinds: int, sums: Sums) -> dict[str, Sums]:
    n = sums[..., N]
    one, other = sums[..., FIRST : FIRST + kinds], sums[..., FIRST + kinds :]
    apart = over((n - sums[..., AGREE]) * n, n**2 - (one * other).sum(axis=-1))
    return {"order_kappa": 1 - apart}
