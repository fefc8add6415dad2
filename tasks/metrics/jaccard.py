"""How much two sets have in common."""

import numpy as np

from tasks.calibration.label_values import Codes, Floats, Panel, Sets
from tasks.calibration.similarity import mean_similarity
from tasks.metrics import Gaps, metric


@metric(labels="set", source="Jaccard (1912), New Phytologist 11")
def jaccard(panel: Panel) -> Gaps:
    """Mean share of labels in both sets among labels in either; two empty sets are equal.

    Examples
    --------
    {a, b} and {b, c} have one of three in common.
    """
    sets = Sets(panel.values)

    def similarity(a: Codes, b: Codes) -> Floats:
        common = sets.common(a, b)
        either = sets.sizes[a] + sets.sizes[b] - common
        return np.where(either == 0, 1.0, common / np.maximum(either, 1))

    return mean_similarity(panel, similarity)
