from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_both_forms_of_the_shift_and_nothing_else(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {
            "statistic": "mps",
            "estimate": 0.25,
            "low": 0.1,
            "high": 0.4,
            "p_value": 0.01,
            "dropped": 2,
        },
        {"statistic": "mps_sham", "estimate": None, "reason": "no sham", "n": 0, "clusters": 0},
        {"statistic": "asr"},
        {"statistic": "dasr"},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query("select * from mart.mps order by statistic").to_dicts()
    cell = {
        "study": "quick",
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "mode": "balanced",
        "perturbation": "padding",
        "kind": "promote",
        "simulated": True,
        "votes_per_pair": 2,
    }
    assert found == [
        {
            **cell,
            "statistic": "mps",
            "shift": 0.25,
            "low": 0.1,
            "high": 0.4,
            "p_value": 0.01,
            "n": 4,
            "clusters": 4,
            "dropped": 2,
            "reason": None,
        },
        {
            **cell,
            "statistic": "mps_sham",
            "shift": None,
            "low": None,
            "high": None,
            "p_value": None,
            "n": 0,
            "clusters": 0,
            "dropped": 0,
            "reason": "no sham",
        },
    ]
