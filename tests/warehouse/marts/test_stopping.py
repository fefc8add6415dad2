from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_looks_and_evidence_side_by_side(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "sequential_shift", "subgroup": "1/3", "estimate": 0.5, "n": 20},
        {
            "statistic": "sequential_shift",
            "subgroup": "3/3",
            "estimate": 0.25,
            "low": 0.125,
            "high": 0.375,
            "n": 60,
        },
        {"statistic": "sequential_stop", "estimate": 0.75, "hits": 40, "n": 60},
        {"statistic": "e_value", "estimate": 12.5, "p_value": 0.0625, "n": 60},
        {"statistic": "e_stop", "estimate": None, "reason": "never", "n": 60},
        {"statistic": "mps", "estimate": 0.9, "n": 99},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    assert warehouse.query("select * from mart.stopping").to_dicts() == [
        {
            "study": "quick",
            "dataset": "d",
            "judge": "offline/honest",
            "prompt": "pair_v1",
            "wave": "",
            "mode": "balanced",
            "perturbation": "padding",
            "kind": "promote",
            "simulated": True,
            "shift": 0.25,
            "low": 0.125,
            "high": 0.375,
            "n": 60,
            "clusters": 4,
            "stop_by_looks": 40,
            "share_by_looks": 0.75,
            "stop_by_evidence": None,
            "share_by_evidence": None,
            "e_value": 12.5,
            "p_value": 0.0625,
            "reason": "e_stop: never",
        }
    ]
