import numpy as np
import pytest

from tasks.calibration.label_values import make_panel
from tasks.metrics import METRICS


@pytest.mark.parametrize(
    ("judge", "gap"),
    [
        # Of a, b, c, d: {a, b} and {b, c} say the same of b and d, .5.
        ("bc", 0.5),
        ("", 0.0),
        ("abcd", 0.0),
        ("ad", -0.5),
    ],
)
def test_by_hand(judge: str, gap: float) -> None:
    values = [frozenset("ab"), frozenset("bc"), frozenset(judge), frozenset("abcd")]
    panel = make_panel(values, np.array([0, 0]), np.array([0, 1]))
    assert METRICS["hamming"].prepare(panel)(np.array([2]))[0] == pytest.approx(gap)
