"""Hamming similarity of label sets."""

from tasks.calibration.label_values import Codes, Floats, Panel, Sets
from tasks.calibration.similarity import mean_similarity
from tasks.metrics import Gaps, metric


@metric(labels="set", source="Hamming (1950), Bell System Technical Journal 29")
def hamming(panel: Panel) -> Gaps:
    """Mean share of all labels seen that both sets hold or both lack.

    Examples
    --------
    Of the labels a, b, c, d the sets {a, b} and {b, c} say the same of b and d: .5.
    """
    sets = Sets(panel.values)
    labels = max(sets.labels, 1)

    def similarity(a: Codes, b: Codes) -> Floats:
        same: Floats = 1 - (sets.sizes[a] + sets.sizes[b] - 2 * sets.common(a, b)) / labels
        return same

    return mean_similarity(panel, similarity)
