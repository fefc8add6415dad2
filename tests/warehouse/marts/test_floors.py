from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_floors_stand_side_by_side(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "sham_floor", "estimate": 0.24, "low": 0.2, "high": 0.3},
        {"statistic": "replicate_floor", "estimate": 0.22, "low": 0.1, "high": 0.4},
        {"statistic": "prompt_sensitivity", "estimate": 0.02, "low": -0.1, "high": 0.14},
        {"statistic": "random_baseline", "estimate": 0.4},
        {"statistic": "random_baseline_coin", "estimate": 0.25},
        {"statistic": "asr", "estimate": 0.5},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query("select * exclude (study, dataset, prompt, wave) from mart.floors")
    assert found.to_dicts() == [
        {
            "judge": "offline/honest",
            "mode": "balanced",
            "perturbation": "padding",
            "kind": "promote",
            "simulated": True,
            "votes_per_pair": 2,
            "sham_floor": 0.24,
            "sham_low": 0.2,
            "sham_high": 0.3,
            "replicate_floor": 0.22,
            "replicate_low": 0.1,
            "replicate_high": 0.4,
            "prompt_sensitivity": 0.02,
            "low": -0.1,
            "high": 0.14,
            "random_baseline": 0.4,
            "random_baseline_coin": 0.25,
        }
    ]
