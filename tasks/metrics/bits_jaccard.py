"""Mean Jaccard index of present and absent labels."""

import numpy as np

from tasks.calibration.label_values import Codes, Floats, Panel, Sets
from tasks.calibration.similarity import mean_similarity
from tasks.metrics import Gaps, metric


@metric(labels="set", source="https://scikit-learn.org/stable/modules/model_evaluation.html")
def bits_jaccard(panel: Panel) -> Gaps:
    """Mean of two Jaccard indices, for the labels that sets contain and for those that they lack.

    Notes
    -----
    This is what a macro-averaged Jaccard gives on one multi-hot vector: the classes are the bits 1
    and 0, not the labels, so sets without a common label are still alike. Prefer `jaccard`.

    Examples
    --------
    Of the labels a, b, c the sets {a} and {b} hold nothing and lack c of three: 1/6.
    """
    sets = Sets(panel.values)

    def similarity(a: Codes, b: Codes) -> Floats:
        common = sets.common(a, b)
        either = sets.sizes[a] + sets.sizes[b] - common
        lacked, lacking = sets.labels - either, sets.labels - common
        held = np.where(either == 0, 1.0, common / np.maximum(either, 1))
        lack = np.where(lacking == 0, 1.0, lacked / np.maximum(lacking, 1))
        return (held + lack) / 2

    return mean_similarity(panel, similarity)
