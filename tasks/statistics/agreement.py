"""Agreement of two annotators, raw and beyond chance (Cohen's kappa)."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.agreement.kappa import kappa
from tasks.counting.annotations import (
    AGREE,
    AGREE_DECIDED,
    FIRST,
    LINEAR,
    N_DECIDED,
    NO_SCALE,
    ONE_LABEL,
    QUADRATIC,
    Asked,
    Block,
    CountColumns,
    N,
    measured,
    over,
    pairs_of,
    sums_of,
)
from tasks.counting.missing_reasons import ALL_TIED, NO_LABELS_OF_BOTH
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic

KAPPAS = {"cohen_kappa": AGREE, "cohen_kappa_linear": LINEAR, "cohen_kappa_quadratic": QUADRATIC}


@statistic(
    source="methods.md, section 9; Cohen (1960, 1968)",
    gives=("agreement", "agreement_decided", *KAPPAS),
    family="agreement",
    rows={name: {"unit": "coefficient", "null": 0.0} for name in KAPPAS},
    missing={
        **dict.fromkeys(("agreement", *KAPPAS), NO_LABELS_OF_BOTH),
        "agreement_decided": ALL_TIED,
    },
)
def agreement(annotations: DataFrame[Annotations]) -> DataFrame[Estimates]:
    """Measure how often two annotators give the same label, raw and corrected for chance.

    ``p_o`` is the share of common items with equal labels, ``p_e = sum_k r_k c_k`` from their
    marginals, ``kappa = (p_o - p_e) / (1 - p_e)``. Weighted: ``1 - sum w o / sum w e`` with
    ``w = |v - v'|`` (linear) or its square, v the value of a label, ``e`` from the marginals.
    ``agreement_decided``: the share of equal labels where neither is a tie.

    Parameters
    ----------
    annotations
        One row per item and annotator.

    Returns
    -------
    Estimates
        Five rows per pair: ``judge`` is one annotator (the model, if the other is a person),
        ``subgroup`` the other. Shares by cluster-adjusted Wilson, with bootstrap percentiles as a
        cross-check; kappas by cluster bootstrap.

    Notes
    -----
    Everybody is compared with every person, and judges with the same prompt and wave with each
    other, if they share an item. If only one label occurs, kappa is null, as agreement by chance is
    certain. Labels without an order have no weighted kappa. ``dropped`` counts items that only one
    of the two labelled.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20, 37-46; (1968), Psychol. Bull. 70, 213-220.

    Examples
    --------
    Ten items, equal on 3 anchor and 4 target; one says anchor 5 times, the other 4 times:
    p_o = .7, p_e = .5 * .4 + .5 * .6 = .5, kappa = .4.
    """
    return measured(annotations, _asked, in_pairs=True)


def _asked(block: Block) -> Iterator[Asked]:
    pairs = pairs_of(block)
    rows = {
        "agreement": CountColumns(N, AGREE),
        "agreement_decided": CountColumns(N_DECIDED, AGREE_DECIDED),
        "cohen_kappa": CountColumns(N, undefined=ONE_LABEL),
        **dict.fromkeys(
            (name for name in KAPPAS if name != "cohen_kappa"),
            CountColumns(N, undefined=NO_SCALE if block.scale is None else ONE_LABEL),
        ),
    }
    yield pairs.cells, partial(sums_of, block, pairs), partial(_solve, block), rows


def _solve(block: Block, sums: Sums) -> dict[str, Sums]:
    n = sums[..., N]
    one, other = np.split(sums[..., FIRST:], 2, axis=-1)
    values = {
        "agreement": over(sums[..., AGREE], n),
        "agreement_decided": over(sums[..., AGREE_DECIDED], sums[..., N_DECIDED]),
        "cohen_kappa": kappa(n, n - sums[..., AGREE], one, other),
    }
    for name, power in (("cohen_kappa_linear", 1), ("cohen_kappa_quadratic", 2)):
        values[name] = np.full(n.shape, np.nan)
        if block.scale is not None:
            apart = np.abs(block.scale[:, None] - block.scale) ** power
            values[name] = kappa(n, sums[..., KAPPAS[name]], one, other, apart)
    return values
