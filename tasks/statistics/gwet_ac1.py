"""Gwet's AC1: chance-corrected agreement that is robust to skewed labels."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.counting.annotations import (
    AGREE,
    FIRST,
    ONE_LABEL,
    Asked,
    Block,
    CountColumns,
    N,
    measured,
    over,
    pairs_of,
    sums_of,
)
from tasks.counting.missing_reasons import NO_LABELS_OF_BOTH
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic


@statistic(
    source="methods.md, section 9; Gwet (2008)",
    family="agreement",
    unit="coefficient",
    null=0.0,
    missing=NO_LABELS_OF_BOTH,
)
def gwet_ac1(annotations: DataFrame[Annotations]) -> DataFrame[Estimates]:
    """Measure the agreement of two annotators by Gwet's AC1.

    ``AC1 = (p_o - p_e) / (1 - p_e)``, ``p_e = sum_k pi_k (1 - pi_k) / (K - 1)`` with ``pi`` the
    mean of both marginals and K the number of labels that occur in the dataset.

    Parameters
    ----------
    annotations
        One row per item and annotator.

    Returns
    -------
    Estimates
        One row per pair, as in ``agreement``; interval by cluster bootstrap.

    Notes
    -----
    K counts the labels of all annotators, not of these two, as they could have chosen any. If both
    use only one label, the same, the value is null, although AC1 would be 1.

    References
    ----------
    Gwet (2008), Br. J. Math. Stat. Psychol. 61, 29-48.

    Examples
    --------
    Ten items, two labels, 9 equal; one says the first label 10 times, the other 9 times: pi = .95,
    p_e = 2 * .95 * .05 = .095, AC1 = (.9 - .095) / .905 = .8895, where Cohen's kappa is 0.
    """
    return measured(annotations, _asked, in_pairs=True)


def _asked(block: Block) -> Iterator[Asked]:
    pairs = pairs_of(block)
    rows = {"gwet_ac1": CountColumns(N, undefined=ONE_LABEL)}
    yield pairs.cells, partial(sums_of, block, pairs), _solve, rows


def _solve(sums: Sums) -> dict[str, Sums]:
    n = sums[..., N]
    one, other = np.split(sums[..., FIRST:], 2, axis=-1)
    share = over(one + other, 2 * n[..., None])
    chance = (share * (1 - share)).sum(axis=-1) / max(share.shape[-1] - 1, 1)
    alone = (share > 1 - 1e-12).any(axis=-1)
    value = over(over(sums[..., AGREE], n) - chance, 1 - chance)
    value[alone] = float("nan")
    return {"gwet_ac1": value}
