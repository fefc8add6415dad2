from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_power_stands_beside_the_gain(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "detection_power", "estimate": None, "reason": "the floor is 0", "n": 6},
        {
            "statistic": "detection_gain",
            "estimate": 0.0,
            "low": -0.2,
            "high": 0.2,
            "p_value": 1.0,
            "n": 6,
        },
        {"statistic": "dasr", "estimate": 0.0},
    ]
    detract = [{"kind": "detract", **row} for row in rows]
    warehouse.save([make(Estimates, *detract)], run="r1", study="quick")
    found = warehouse.query("select * exclude (study, dataset, prompt, wave) from mart.detection")
    assert found.to_dicts() == [
        {
            "judge": "offline/honest",
            "mode": "balanced",
            "perturbation": "padding",
            "simulated": True,
            "detection_power": None,
            "low": None,
            "high": None,
            "reason": "the floor is 0",
            "detection_gain": 0.0,
            "gain_low": -0.2,
            "gain_high": 0.2,
            "p_value": 1.0,
            "detection_share": None,
            "share_low": None,
            "share_high": None,
            "n": 6,
        }
    ]
