import numpy as np
import pytest

from tasks.calibration.label_values import make_panel
from tasks.metrics import METRICS


@pytest.mark.parametrize(
    ("judge", "signs"),
    [
        # Of 1, 2, 4: squares to the others are 1 + 9, 1 + 4, 9 + 4.
        (3.0, [1, 0, 1]),  # 1 + 1, 4 + 1, 4 + 1
        (1.0, [0, -1, 1]),  # 1 + 9, 0 + 9, 0 + 1
        (5.0, [0, -1, -1]),  # 9 + 1, 16 + 1, 16 + 9
    ],
)
def test_by_hand(judge: float, signs: list[int]) -> None:
    panel = make_panel([1.0, 2.0, 4.0, judge], np.array([0, 0, 0]), np.array([0, 1, 2]))
    gap = METRICS["neg_rmse"].prepare(panel)(np.array([3]))
    assert np.sign(gap).tolist() == signs


@pytest.mark.parametrize(
    ("far", "scale"), [(0, 1), (0, 0.1), (0, 1e-7), (0, 1e50), (1e9, 1), (-1e15, 1)]
)
def test_ties_do_not_depend_on_where_numbers_lie(far: float, scale: float) -> None:
    values = [far + scale * x for x in (1, 2, 3)]
    panel = make_panel(values, np.array([0, 0]), np.array([0, 1]))
    # to 2, 1 and 3 are as near
    assert METRICS["neg_rmse"].prepare(panel)(np.array([2]))[0] == 0
