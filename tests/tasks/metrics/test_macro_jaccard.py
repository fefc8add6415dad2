import numpy as np
import pytest

from tasks.calibration.label_values import make_panel
from tasks.metrics import METRICS


@pytest.mark.parametrize(
    ("judge", "score"),
    [
        # Against {a} and {a, c}, of a, b, c, d, label by label:
        ("ab", (1 + 0 + 0 + 1) / 4),
        ("", (0 + 1 + 0 + 1) / 4),
        ("ac", (1 + 1 + 0.5 + 1) / 4),
        ("a", (1 + 1 + 0 + 1) / 4),
    ],
)
def test_by_hand(judge: str, score: float) -> None:
    values = [frozenset("b"), frozenset("a"), frozenset("ac"), frozenset(judge), frozenset("d")]
    panel = make_panel(values, np.array([0, 0, 0]), np.array([0, 1, 2]))
    gap = METRICS["macro_jaccard"].prepare(panel)(np.array([3]))[0]
    # {b} is left out: of a 0, of b 0, of c 0, of d 1. A gap is four labels times two people.
    assert gap == pytest.approx((score - 1 / 4) * 4 * 2)
