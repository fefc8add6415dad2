from collections.abc import Callable
from typing import Any

import pytest

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]
Win = tuple[float, float | None, float | None]
PAIR = {"subgroup": "ant vs bee"}


def rows(win: Win, bound: float | None, won_on: int, checked_on: int) -> list[dict[str, Any]]:
    estimate, low, high = win
    checked = {**PAIR, "method": "a", "clusters": checked_on}
    return [
        {
            **PAIR,
            "statistic": "win_rate",
            "mode": "any",
            "perturbation": None,
            "kind": None,
            "estimate": estimate,
            "low": low,
            "high": high,
            "clusters": won_on,
        },
        {**checked, "statistic": "bias_bound", "estimate": bound},
        {**checked, "statistic": "tipping_shift", "estimate": 0.12},
        {"statistic": "mps"},
    ]


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
    concluded: Concluded,
    *,
    win: Win,
    bound: float | None,
    conclusion: str,
) -> None:
    made = make(Estimates, *rows(win, bound, 10, 10))
    warehouse.save(concluded(made), run="r1", study="quick")
    found = warehouse.query(
        "select subgroup, perturbation, tipping_shift, rests_on, conclusion "
        "from mart.decision_check"
    )
    assert found.rows() == [("ant vs bee", "padding", 0.12, "a", conclusion)]


@pytest.mark.parametrize("clusters", [(9, 10), (10, 9)])
@pytest.mark.parametrize("bound", [0.05, 0.07])
def test_nothing_is_concluded_from_nine_questions(
    warehouse: Warehouse,
    make: Make,
    concluded: Concluded,
    bound: float,
    clusters: tuple[int, int],
) -> None:
    made = make(Estimates, *rows((0.56, 0.52, 0.60), bound, *clusters))
    warehouse.save(concluded(made), run="r1", study="quick")
    found = warehouse.query("select conclusion from mart.decision_check").item()
    assert found == "no conclusion: fewer than 10 independent questions"
