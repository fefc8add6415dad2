"""Krippendorff's alpha: agreement of several annotators with missing labels."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.counting.annotations import (
    NO_SCALE,
    ONE_LABEL,
    Asked,
    Block,
    CountColumns,
    measured,
    over,
    some,
)
from tasks.counting.missing_reasons import NO_LABELS_OF_TWO
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic

MOST_LABELS = 30
NAMES = {kind: f"krippendorff_alpha_{kind}" for kind in ("nominal", "ordinal", "interval")}


@statistic(
    source="methods.md, section 9; Krippendorff (2011)",
    gives=tuple(NAMES.values()),
    family="agreement",
    unit="coefficient",
    null=0.0,
    missing=NO_LABELS_OF_TWO,
)
def krippendorff_alpha(annotations: DataFrame[Annotations]) -> DataFrame[Estimates]:
    """Measure the agreement of all people, and of judges with the same prompt, by alpha.

    Items with m >= 2 labels add ``n_c (n_k - 1{c = k}) / (m - 1)`` to the coincidences ``o_ck``
    (n_c labels c in the item); N is their sum, N_c the sum of row c;
    ``alpha = 1 - (N - 1) sum o_ck d_ck / sum N_c N_k d_ck``. ``d``: nominal ``1{c != k}``; interval
    ``(v_c - v_k)^2``; ordinal ``(N_c + ... + N_k - (N_c + N_k) / 2)^2``.

    Parameters
    ----------
    annotations
        One row per item and annotator.

    Returns
    -------
    Estimates
        Three rows for the people (``judge`` is ``humans``) and three for the judges of each prompt
        and wave (``judges``), where there are two or more. Intervals by cluster bootstrap.

    Notes
    -----
    ``n`` items have two labels or more; ``dropped`` items have one. If only one label occurs, alpha
    is null, as agreement by chance is certain. Labels without an order have only the nominal alpha.
    Above 30 different labels: null.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.

    Examples
    --------
    Two annotators, labels aa, ab, bb: o_aa = 2, o_bb = 2, o_ab = o_ba = 1, N = 6, N_a = N_b = 3:
    nominal alpha = 1 - 5 * 2 / (2 * 9) = 4/9.
    """
    return measured(annotations, _asked)


def _asked(block: Block) -> Iterator[Asked]:
    kinds = len(block.labels)
    ordered = NO_SCALE if block.scale is None else ONE_LABEL
    many = f"more than {MOST_LABELS} different labels" if kinds > MOST_LABELS else ""
    rows = {
        row: CountColumns(0, undefined=many or (ONE_LABEL if kind == "nominal" else ordered))
        for kind, row in NAMES.items()
    }
    for name, chosen in block.groups():
        counts = block.counts(chosen)
        cell = block.group(name, chosen, dropped=int((counts.sum(axis=1) == 1).sum()))
        yield cell, partial(some, _coincidences(counts)), partial(_solve, block), rows


def _coincidences(counts: Sums) -> Sums:
    """Return whether each item has two labels, and its coincidences unless there are too many."""
    total = counts.sum(axis=1)
    paired = total > 1
    kinds = counts.shape[1]
    if kinds > MOST_LABELS:
        return np.where(paired, 1.0, 0.0)[:, None, None]
    coincident = counts[:, :, None] * (counts[:, None, :] - np.eye(kinds))
    coincident *= (paired / np.maximum(total - 1, 1))[:, None, None]
    flat = coincident.reshape(len(counts), -1)
    return np.concatenate([paired[:, None], flat], axis=1)[:, None, :]


def _solve(block: Block, sums: Sums) -> dict[str, Sums]:
    kinds = len(block.labels)
    values = dict.fromkeys(NAMES.values(), np.full(sums.shape[:-1], np.nan))
    if sums.shape[-1] == 1:
        return values
    coincident = sums[..., 1:].reshape(*sums.shape[:-1], kinds, kinds)
    labels = coincident.sum(axis=-1)
    total = labels.sum(axis=-1)
    distances = {"nominal": 1 - np.eye(kinds)}
    if block.scale is not None:
        distances["interval"] = (block.scale[:, None] - block.scale) ** 2
        distances["ordinal"] = _between(labels) ** 2
    expected = labels[..., :, None] * labels[..., None, :]
    for kind, distance in distances.items():
        apart = (coincident * distance).sum(axis=(-2, -1))
        chance = (expected * distance).sum(axis=(-2, -1))
        values[NAMES[kind]] = 1 - over((total - 1) * apart, chance)
    return values


def _between(labels: Sums) -> Sums:
    """Return the number of labels ranked between each two, counting half of those two."""
    middle = np.cumsum(labels, axis=-1) - labels / 2
    return middle[..., :, None] - middle[..., None, :]
