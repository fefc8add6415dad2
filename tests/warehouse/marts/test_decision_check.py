from collections.abc import Callable

import pytest

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


@pytest.mark.parametrize(
    ("win", "bound", "conclusion"),
    [
        ((0.56, 0.52, 0.60), 0.07, "conclusion not robust to padding"),
        ((0.44, 0.40, 0.48), 0.07, "conclusion not robust to padding"),
        ((0.56, 0.52, 0.60), 0.05, "robust"),
        ((0.56, 0.48, 0.64), 0.01, "no conclusion: the interval holds .5"),
        ((0.56, 0.52, 0.60), None, "unknown"),
        ((0.56, None, None), 0.07, "unknown"),
    ],
)
def test_conclusions(
    warehouse: Warehouse,
    make: Make,
    win: tuple[float, float | None, float | None],
    bound: float | None,
    conclusion: str,
) -> None:
    pair = {"subgroup": "ant vs bee"}
    estimate, low, high = win
    rows = [
        {**pair, "statistic": "win_rate", "mode": "any", "perturbation": None, "kind": None,
         "estimate": estimate, "low": low, "high": high},
        {**pair, "statistic": "bias_bound", "estimate": bound, "method": "a"},
        {**pair, "statistic": "tipping_shift", "estimate": 0.12, "method": "a"},
        {"statistic": "mps"},
    ]  # fmt: skip
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query(
        "select subgroup, perturbation, tipping_shift, rests_on, conclusion "
        "from mart.decision_check"
    )
    assert found.rows() == [("ant vs bee", "padding", 0.12, "a", conclusion)]
