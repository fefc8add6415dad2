from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_bounds_stand_beside_the_test(warehouse: Warehouse, make: Make) -> None:
    rows = [
        # v = 4, k = 1, m = 3: 1/7 and 4/7
        {"statistic": "asr_bounds", "estimate": 0.25, "low": 1 / 7, "high": 4 / 7, "n": 7},
        {
            "statistic": "differential_attrition", "estimate": 0.3, "low": 0.0, "high": 0.6,
            "p_value": 0.25, "n": 10,
        },
        {"statistic": "asr", "estimate": 0.25},
    ]  # fmt: skip
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query("select * exclude (study, dataset, prompt, wave) from mart.attrition")
    assert found.to_dicts() == [
        {
            "judge": "offline/honest", "mode": "balanced", "perturbation": "padding",
            "kind": "promote", "simulated": True, "asr": 0.25, "asr_at_least": 1 / 7,
            "asr_at_most": 4 / 7, "n": 7, "lost": 3, "differential_attrition": 0.3, "low": 0.0,
            "high": 0.6, "p_value": 0.25,
        }
    ]  # fmt: skip
