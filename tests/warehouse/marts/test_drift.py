from collections.abc import Callable

from schemas.results import Drifts
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_every_change_with_what_it_amounts_to(warehouse: Warehouse, make: Make) -> None:
    silent = {
        "measure": "verdict_drift",
        "mode": "any",
        "perturbation": None,
        "estimate": None,
        "p_value": None,
        "state": "not measured",
        "reason": "every vote is from a cache",
    }
    warehouse.save([make(Drifts, {}, silent)], run="r1", study="nightly")
    found = warehouse.query("select * from mart.drift order by measure").to_dicts()
    assert found[0] == {
        "study": "nightly",
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "n2",
        "wave_number": None,
        "mode": "balanced",
        "perturbation": "padding",
        "simulated": True,
        "measure": "mps_drift",
        "epoch": 1,
        "base": "n1",
        "base_questions": None,
        "change": 0.25,
        "low": 0.125,
        "high": 0.375,
        "p_value": 0.001,
        "p_adjusted": 0.002,
        "e_value": 150.0,
        "e_rejected": True,
        "level": 0.01,
        "minimum": 0.05,
        "detectable": 0.2,
        "n": 40,
        "clusters": 40,
        "state": "suspect",
        "reason": None,
    }
    assert (found[1]["state"], found[1]["change"]) == ("not measured", None)
