"""Negative root mean squared error."""

import numpy as np

from tasks.calibration.label_values import Codes, Floats, Panel
from tasks.metrics import Gaps, metric

TOLERANCE = 1e-9
ROUNDING = 1e-13


@metric(labels="number", source="https://arxiv.org/abs/2501.10970")
def neg_rmse(panel: Panel) -> Gaps:
    """Negative root mean squared error against the others' numbers.

    Notes
    -----
    The root is monotone and both are compared with the same people, so sums of squares suffice:
    of whole numbers exactly, of others up to one in 1e9, which is a tie.

    Examples
    --------
    Of 1, 2, 4 the first is off by 1 and 3. A judge who says 3 is off by 1 and 1: better.
    """
    values = np.array(panel.values, np.float64)
    # Distances from a label of the item keep small what is squared, and whole numbers whole.
    first = values[panel.code[panel.starts[:-1]]]
    human = values[panel.code] - first[panel.item]
    size = panel.size[panel.item]
    total, squares = panel.sums(human)[panel.item], panel.sums(human**2)[panel.item]
    own = size * human**2 - 2 * human * total + squares

    def gaps(codes: Codes) -> Floats:
        judge = (values[codes] - first)[panel.item]
        off = size * judge**2 - 2 * judge * total + squares - (judge - human) ** 2
        scale = size * np.maximum(human**2, judge**2) + squares
        near = 2 * TOLERANCE * np.maximum(own, off) + ROUNDING * scale
        return np.where(np.abs(own - off) <= near, 0.0, own - off)

    return gaps
