from collections.abc import Callable

from schemas.calibration import Advantages
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_row_per_judge_and_annotator_at_the_epsilon_asked_for(
    warehouse: Warehouse, make: Make
) -> None:
    untested = {
        "annotator": "Bob",
        "n": 3,
        "test": None,
        "p_value": None,
        "p_value_t": None,
        "p_value_score": None,
        "p_adjusted": None,
        "rejected": None,
        "reason": "fewer than 30 instances",
    }
    rows = [{}, {"epsilon": 0.2, "asked": False}, untested]
    warehouse.save([make(Advantages, *rows)], run="r1", study="people")
    found = warehouse.query(
        "select study, judge, annotator, n, advantage_probability, low, high, "
        "human_advantage_probability, test, p_value, p_value_t, p_value_score, p_adjusted, "
        "rejected, reason from mart.advantage_probability order by annotator"
    ).rows()
    shares = (0.875, 0.75, 0.9375, 0.75)
    assert found == [
        ("people", "ada", "Ann", 40, *shares, "score", 0.01, 0.005, 0.01, 0.04, True, None),
        ("people", "ada", "Bob", 3, *shares, *[None] * 6, "fewer than 30 instances"),
    ]
