"""Correlation of jury members' errors against labels, and the jury's effective size."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.counting.missing_reasons import NO_SCORES_OF_MEMBERS
from tasks.panels.error_correlation import correlation, products, size_rows
from tasks.panels.panels import ALL, ITEM, JURY, jurors
from tasks.statistics import Rows, statistic

NAMES = ("jury_error_correlation", "jury_error_size")
UNVARIED = "errors of the members do not vary"
RIGHT = {"anchor": 0.0, "tie": 0.5, "target": 1.0}
ROUNDING = 9
"""Decimals of scores: differences in the last digits are not variation."""


@statistic(
    source="methods.md, section 11",
    gives=NAMES,
    family="jury",
    rows={
        "jury_error_correlation": {"unit": "coefficient", "null": 0.0},
        "jury_error_size": {"unit": "count"},
    },
    needs=("label",),
    missing=NO_SCORES_OF_MEMBERS,
)
def jury_errors(tallies: DataFrame[Tallies]) -> Rows:
    """Measure how many independent judges a jury is worth, by its members' errors.

    The error of a member on a labelled control pair is its score, the mean of both orders, minus
    the label's (anchor 0, tie 1/2, target 1). ``jury_error_correlation``: the correlation r of the
    errors of two members, averaged over all pairs of members; ``jury_error_size = m / (1 + (m - 1)
    r)`` for m members.

    Parameters
    ----------
    tallies
        One row per pair and judge. Members are the judges with a score that are neither people nor
        simulated or, if all are simulated, those.

    Returns
    -------
    Estimates
        For judge ``jury/all``, two rows per dataset, prompt and wave with labels, with widened
        percentiles of 2000 cluster bootstraps. Without labels there are no rows.

    Notes
    -----
    A pair needs every member's score in both orders, else it is dropped. A member whose errors
    never vary, for example because it is always right, has no correlation and does not count in r,
    but counts in m; if fewer than two vary, both are null. If members oppose each other so much
    that ``1 + (m - 1) r`` is not above 0, the size is unbounded: null. Errors come from noise, from
    common misreadings, and from wrong labels, which affect all members. ``jury_size`` needs no
    labels: it treats shifts under a perturbation as errors.

    References
    ----------
    Verga et al. (2024), Replacing Judges with Juries, arXiv:2404.18796. methods.md, section 11.

    Examples
    --------
    Label target on four pairs; scores of one member 1, 1, 0, 0 and of the other 1, 0, 1, 0: errors
    0, 0, -1, -1 and 0, -1, 0, -1 have r = 0, so the two are worth 2. Were both 1, 1, 0, 0, r = 1:
    they are worth one.
    """
    labelled = jurors(tallies).filter(pl.col("label").is_not_null())
    error = pl.col("score") - pl.col("label").replace_strict(RIGHT, return_dtype=pl.Float64)
    errors = labelled.with_columns(error=error.round(ROUNDING))
    found = [row for cell in errors.partition_by(JURY, maintain_order=True) for row in _rows(cell)]
    return pl.DataFrame(found, {**Estimates.dtypes()})


def _rows(cell: pl.DataFrame) -> Iterator[dict[str, Any]]:
    items = cell.group_by(ITEM).agg(pl.col("planned").cast(pl.Int64).sum())
    table = cell.pivot(
        "judge", index=["cluster", "sample"], values="error", aggregate_function="first"
    ).sort("cluster", "sample")
    values = table.drop("cluster", "sample").to_numpy().astype(np.float64)
    whole: NDArray[np.bool_] = np.asarray(~np.isnan(values).any(axis=1))
    names = table["cluster"]
    starts = np.flatnonzero((names != names.shift()).fill_null(value=True).to_numpy())
    sums = np.add.reduceat(products(values, whole), starts, axis=0)
    members = int(cell["members"][0])
    if values.shape[1] < members:  # some member was asked no labelled pair
        whole, sums = np.zeros_like(whole), np.zeros_like(sums)
    row = {
        **{name: cell[name][0] for name in JURY},
        "judge": ALL,
        "subgroup": "",
        "mode": "any",
        "simulated": bool(cell["simulated"].any()),
        "dropped": int((~whole).sum()),
        "votes_per_pair": items["planned"].mode().max(),
    }
    used = int(whole.sum()), int((sums[:, 0] > 0).sum())
    estimated = correlation(sums, values.shape[1], UNVARIED)
    yield from size_rows(NAMES, row, estimated, members, used)
