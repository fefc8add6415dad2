"""Whether numbers differ by one at most."""

import numpy as np

from tasks.calibration.label_values import Codes, Floats, Panel
from tasks.calibration.similarity import mean_similarity
from tasks.metrics import Gaps, metric


@metric(labels="number", source="mine")
def within_one(panel: Panel) -> Gaps:
    """Share of the others whose number is at most one away."""
    values = np.array(panel.values, np.float64)

    def similarity(a: Codes, b: Codes) -> Floats:
        return (np.abs(values[a] - values[b]) <= 1).astype(np.float64)

    return mean_similarity(panel, similarity)
