import numpy as np
import pytest

from tasks.calibration.label_values import make_panel
from tasks.metrics import METRICS


@pytest.mark.parametrize(
    ("judge", "score"),
    [
        # Against {b}, of a, b, c; held, and lacked: sets that share nothing are still alike.
        ("b", 1.0),
        ("a", (0 + 1 / 3) / 2),
        ("", (0 + 2 / 3) / 2),
        ("abc", (1 / 3 + 0) / 2),
    ],
)
def test_by_hand(judge: str, score: float) -> None:
    values = [frozenset("c"), frozenset("b"), frozenset(judge), frozenset("abc")]
    panel = make_panel(values, np.array([0, 0]), np.array([0, 1]))
    # {c} is left out, which is as near as {a}
    gap = METRICS["bits_jaccard"].prepare(panel)(np.array([2]))[0]
    assert gap == pytest.approx(score - 1 / 6)
