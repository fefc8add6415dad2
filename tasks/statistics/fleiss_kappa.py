"""Fleiss' kappa: agreement of several annotators on items that all of them labelled."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.counting.annotations import ONE_LABEL, Asked, Block, CountColumns, measured, over, some
from tasks.counting.missing_reasons import NO_LABELS_OF_TWO
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic

N, ALIKE, FIRST = 0, 1, 2


@statistic(
    source="methods.md, section 9; Fleiss (1971)",
    family="agreement",
    unit="coefficient",
    null=0.0,
    missing=NO_LABELS_OF_TWO,
)
def fleiss_kappa(annotations: DataFrame[Annotations]) -> DataFrame[Estimates]:
    """Measure the agreement of all people, and of judges with the same prompt, by Fleiss' kappa.

    With m annotators and n_ik of them giving item i the label k:
    ``P_i = (sum_k n_ik^2 - m) / (m (m - 1))``, ``p_k`` the share of label k,
    ``kappa = (mean P_i - sum p_k^2) / (1 - sum p_k^2)``.

    Parameters
    ----------
    annotations
        One row per item and annotator.

    Returns
    -------
    Estimates
        One row for the people (``judge`` is ``humans``) and one for the judges of each prompt and
        wave (``judges``), where there are two or more. Interval by cluster bootstrap.

    Notes
    -----
    Complete cases only: ``n`` items have all m labels, ``dropped`` items have some. Null if there
    are no complete cases, or only one label, as agreement by chance is then certain.

    References
    ----------
    Fleiss (1971), Psychol. Bull. 76, 378-382.

    Examples
    --------
    Three annotators, labels aaa and aab: P = 1 and 1/3, mean 2/3; p = 5/6, 1/6, sum p^2 = 26/36;
    kappa = (24 - 26) / (36 - 26) = -.2.
    """
    return measured(annotations, _asked)


def _asked(block: Block) -> Iterator[Asked]:
    for name, chosen in block.groups():
        counts, size = block.counts(chosen), float(chosen.sum())
        total = counts.sum(axis=1)
        complete = total == size
        sums = np.zeros((len(counts), 1, FIRST + counts.shape[1]))
        sums[:, 0, N] = complete
        sums[:, 0, ALIKE] = np.where(complete, (counts**2).sum(axis=1) - size, 0)
        sums[:, 0, FIRST:] = counts * complete[:, None]
        cell = block.group(name, chosen, dropped=int(((total > 0) & ~complete).sum()))
        rows = {"fleiss_kappa": CountColumns(N, undefined=ONE_LABEL)}
        yield cell, partial(some, sums), partial(_solve, size), rows


def _solve(size: float, sums: Sums) -> dict[str, Sums]:
    n = sums[..., N]
    observed = over(sums[..., ALIKE], n * size * (size - 1))
    shares = over(sums[..., FIRST:], (n * size)[..., None])
    chance = (shares**2).sum(axis=-1)
    return {"fleiss_kappa": over(observed - chance, 1 - chance)}
