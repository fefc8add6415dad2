from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_flips_stand_beside_those_of_the_sham(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "flips_up", "estimate": 0.6, "low": 0.2, "high": 0.9, "hits": 3, "n": 5},
        {"statistic": "flips_down", "estimate": 0.2, "hits": 1, "n": 5},
        {"statistic": "flip_direction", "estimate": 0.5, "p_value": 0.625, "n": 4},
        {"statistic": "robustness_rate", "estimate": 0.2, "low": 0.1, "hits": 1, "n": 5},
        {"statistic": "consistency_rate", "estimate": 0.8, "hits": 4, "n": 5},
        {"statistic": "excess_flips", "estimate": 0.6, "low": 0.1, "high": 1.0, "p_value": 0.03},
        {"statistic": "mps", "estimate": 0.1},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query("select * exclude (study, dataset, prompt, wave) from mart.flips")
    reported = {name: value for name, value in found.to_dicts()[0].items() if value is not None}
    assert reported == {
        "judge": "offline/honest",
        "mode": "balanced",
        "perturbation": "padding",
        "kind": "promote",
        "simulated": True,
        "up": 3,
        "down": 1,
        "n": 5,
        "up_rate": 0.6,
        "up_low": 0.2,
        "up_high": 0.9,
        "down_rate": 0.2,
        "direction": 0.5,
        "direction_p": 0.625,
        "robustness_rate": 0.2,
        "robustness_rate_low": 0.1,
        "consistency_rate": 0.8,
        "excess_flips": 0.6,
        "low": 0.1,
        "high": 1.0,
        "p_value": 0.03,
    }
