from collections.abc import Callable

from schemas.calibration import AltTests
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_row_per_judge_and_epsilon(warehouse: Warehouse, make: Make) -> None:
    reported = {
        "winning_rate": None,
        "passed": None,
        "advantage_probability": None,
        "low": None,
        "high": None,
        "human_advantage_probability": None,
        "tied": None,
        "reason": "why",
    }
    rows = [{}, {"epsilon": 0.2, "asked": False, "winning_rate": 1.0}, {"judge": "bee", **reported}]
    warehouse.save([make(AltTests, *rows)], run="r1", study="people")
    found = warehouse.query(
        "select study, judge, metric, epsilon, epsilon_kind, asked, test, winning_rate, passed, "
        "advantage_probability, low, high, human_advantage_probability, n, reason "
        "from mart.alt_test order by judge, epsilon"
    ).rows()
    rest = ("additive", True, "auto", 0.75, True, 0.875, 0.75, 0.9375, 0.8125, 50, None)
    assert found == [
        ("people", "ada", "accuracy", 0.1, *rest),
        ("people", "ada", "accuracy", 0.2, "additive", False, "auto", 1.0, *rest[4:]),
        ("people", "bee", "accuracy", 0.1, *rest[:3], *[None] * 6, 50, "why"),
    ]
