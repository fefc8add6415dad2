import numpy as np
import pytest

from tasks.calibration.label_values import make_panel
from tasks.metrics import METRICS


@pytest.mark.parametrize(("judge", "gaps"), [("a", [0, 1]), ("b", [0, 0]), ("c", [-1, 0])])
def test_by_hand(judge: str, gaps: list[int]) -> None:
    # Of a, a, b: each a agrees with one other, b with none. A judge's a agrees with one of a, b
    # and with two of a, a; b with one of a, b and none of a, a; c with nobody.
    panel = make_panel(["a", "b", "c"], np.array([0, 0, 0]), np.array([0, 0, 1]))
    gap = METRICS["accuracy"].prepare(panel)(np.array(["abc".index(judge)]))
    assert np.sign(gap).tolist() == gaps
