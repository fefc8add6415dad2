"""Cohen's kappa between a judge's verdicts in the two orders."""

from functools import partial

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.agreement.kappa import kappa
from tasks.counting.annotations import (
    AGREE,
    FIRST,
    ONE_LABEL,
    AnnotatorPairs,
    Block,
    CountColumns,
    N,
    collected,
    estimates,
    sums_of,
)
from tasks.counting.missing_reasons import NO_REPEAT_IN_BOTH_ORDERS
from tasks.counting.positions import VERDICTS
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic

ORDERS = ("once_12", "once_21")


@statistic(
    source="arXiv:2310.07641, section 4; Cohen (1960)",
    family="accuracy",
    unit="coefficient",
    null=0.0,
    missing=NO_REPEAT_IN_BOTH_ORDERS,
)
def order_kappa(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure by Cohen's kappa how far the verdicts in the two orders agree beyond chance.

    ``kappa = (p_o - p_e) / (1 - p_e)`` over the control pairs, from the first vote in each order
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
    Pairs in which either vote has no verdict are dropped and counted. If only one verdict occurs:
    null. This does not measure position bias: noise lowers it too, and so does a set of pairs in
    which one side mostly wins. Zeng et al. count a vote without a verdict as a vote for the second
    answer.

    References
    ----------
    Zeng et al. (2024), arXiv:2310.07641; Cohen (1960), Educ. Psychol. Meas. 20, 37-46.

    Examples
    --------
    Ten pairs: equal on 3 anchor and 4 target, three times anchor then target. p_o = .7,
    p_e = .6 * .3 + .4 * .7 = .46, kappa = .24 / .54 = 4/9.
    """
    control = tallies.filter(pl.col("arm") == "control", pl.col("matched_once")).select(
        *JUDGE, "sample", "cluster", "simulated", "planned", *ORDERS
    )
    judges = control.sort(*JUDGE, "cluster", "sample").partition_by(JUDGE, maintain_order=True)
    found = [row for rows in judges for row in _measured(rows)]
    return collected(found)


def _measured(asked: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the row of one judge, whose two orders are treated as two annotators."""
    voted = asked.drop_nulls(ORDERS)
    if voted.is_empty():
        return []
    dataset, judge, prompt, wave = voted.select(JUDGE).row(0)
    changes = voted["cluster"].rle_id().to_numpy()
    block = Block(
        dataset,
        None,
        pl.DataFrame(),
        [*VERDICTS],
        None,
        voted.select(ORDERS).to_numpy() + 1,
        np.flatnonzero(np.diff(changes, prepend=-1)).astype(np.int64),
    )
    cell = pl.DataFrame(
        {
            "judge": judge,
            "prompt": prompt,
            "wave": wave,
            "subgroup": "",
            "simulated": voted["simulated"].max(),
            "dropped": asked.height - voted.height,
            "votes": asked["planned"].mode().max(),
        },
        schema_overrides={"simulated": pl.Boolean},
    )
    pair = AnnotatorPairs(cell, np.array([0]), np.array([1]))
    rows = {"order_kappa": CountColumns(N, undefined=ONE_LABEL)}
    return estimates(block, cell, partial(sums_of, block, pair), _solve, rows)


def _solve(sums: Sums) -> dict[str, Sums]:
    n = sums[..., N]
    one, other = np.split(sums[..., FIRST:], 2, axis=-1)
    return {"order_kappa": kappa(n, n - sums[..., AGREE], one, other)}
