"""Accuracy before and after a perturbation, on the same pairs."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.keys import SAMPLE
from tasks.counting.cells import differences, means
from tasks.inference.cluster_sums import grouped
from tasks.statistics import Rows, statistic
from tasks.statistics.accuracy import right_votes


@statistic(
    source="arXiv:2410.02736; methods.md, section 2",
    gives=("accuracy_before", "accuracy_after", "accuracy_change"),
    family="accuracy",
    rows={"accuracy_change": {"null": 0.0}},
    needs=("label",),
    missing="no sample with a label in both arms has votes in both, or one arm has no valid vote",
)
def accuracy_change(tallies: DataFrame[Tallies]) -> Rows:
    """Measure how a perturbation changes a judge's accuracy.

    ``accuracy_before = mean_i b(i)``, ``accuracy_after = mean_i a(i)``,
    ``accuracy_change = mean_i (a(i) - b(i))``; b and a are the shares of a pair's votes that name
    the right answer, in the control and in the experimental arm.

    Parameters
    ----------
    tallies
        One row per pair and judge; only samples with a label in both arms count, each arm by its
        own label.

    Returns
    -------
    Estimates
        Three rows per judge and perturbation: both rates by cluster-adjusted Wilson, the change by
        cluster linearisation with a p-value against 0.

    Notes
    -----
    A vote without a verdict is wrong; if an arm of a cell has only such votes, the cell is null.
    Samples without a vote in either arm are dropped. With sequential stopping only the first vote
    in each order counts. Ye et al. (CALM) print accuracies before and after, for one vote per item.
    The definitions here follow our specification and have not been compared with the paper's text,
    so they claim no parity with it.

    References
    ----------
    Ye et al. (2024), Justice or Prejudice?, arXiv:2410.02736.

    Examples
    --------
    Right before: 2 of 2 votes and 1 of 2; after: 1 of 2 and 0 of 2. Accuracy .75, then .25, change
    -.5.
    """
    counted = right_votes(tallies).with_columns(
        share=pl.when(pl.col("voted") > 0).then(pl.col("right") / pl.col("voted"))
    )
    before = counted.filter(pl.col("arm") == "control").select(
        *SAMPLE, before="share", valid_before="valid"
    )
    pairs = (
        counted.filter(pl.col("arm") == "experimental")
        .rename({"share": "after"})
        .join(before, on=SAMPLE)
    )
    if pairs.is_empty():
        return []
    groups = grouped(pairs)
    both = (pl.col("before") + pl.col("after")).is_not_null()
    valid = [
        groups.by_cell(pairs.select(pl.when(both).then(name)).to_series())
        for name in ("valid", "valid_before")
    ]
    # In cells where an arm has no valid vote there is nothing to compare.
    answered = pl.Series((np.minimum(*valid) > 0)[groups.cell])
    first, last = (pl.when(both & answered).then(arm) for arm in ("before", "after"))
    return [
        means("accuracy_before", pairs, first, groups),
        means("accuracy_after", pairs, last, groups),
        differences("accuracy_change", pairs, last, first, groups),
    ]
