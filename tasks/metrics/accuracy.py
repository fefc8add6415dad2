"""Whether labels agree."""

import numpy as np

from tasks.calibration.label_values import Codes, Floats, Panel
from tasks.metrics import Gaps, metric


@metric(labels="text", source="https://arxiv.org/abs/2501.10970")
def accuracy(panel: Panel) -> Gaps:
    """Share of the others who gave the same label; lists agree as sets.

    Examples
    --------
    Of a, a, b the first agrees with one of two others. A judge who says b agrees with one of these
    two as well: a tie.
    """

    def gaps(codes: Codes) -> Floats:
        same = codes[panel.item] == panel.code
        gap: Floats = (panel.votes(codes)[panel.item] - same - (panel.count - 1)).astype(np.float64)
        return gap

    return gaps
