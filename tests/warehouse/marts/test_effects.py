from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
OF_MODE = (
    "mps",
    "mps_sham",
    "asr",
    "dasr",
    "detection_power",
    "excess_flips",
    "shift_spread",
    "mean_square_shift",
    "standardised_effect",
    "sham_shift",
    "sham_difference",
    "unanimous_rate",
)
OF_COUNTS = ("los", "los_sham")


def test_each_cell_has_every_effect_with_its_bounds(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {
            "statistic": name,
            "estimate": k / 10,
            "low": k / 10 - 0.05,
            "high": k / 10 + 0.05,
            "mode": "any" if name in OF_COUNTS else "paper",
        }
        for k, name in enumerate((*OF_MODE, *OF_COUNTS), 1)
    ]
    spread = {"statistic": "category_spread", "mode": "paper", "estimate": 1.95, "p_value": 0.02}
    # Not of this mart: a contrast with another judge, and what is of the whole judge.
    other = {"statistic": "mps", "mode": "paper", "subgroup": "ada", "estimate": 0.9}
    whole = {"statistic": "valid_rate", "mode": "any", "perturbation": None, "kind": None}
    warehouse.save([make(Estimates, *rows, spread, other, whole)], run="r1", study="quick")
    found = warehouse.query("select * from mart.effects").to_dicts()
    cell = {
        "study": "quick",
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "mode": "paper",
        "perturbation": "padding",
        "kind": "promote",
        "simulated": True,
        "votes_per_pair": 2,
        "category_spread": 1.95,
        "category_spread_p": 0.02,
    }
    numbers = {}
    for k, name in enumerate((*OF_MODE, *OF_COUNTS), 1):
        numbers |= {name: k / 10, f"{name}_low": k / 10 - 0.05, f"{name}_high": k / 10 + 0.05}
    assert found == [{**cell, **numbers}]


def test_what_was_not_estimated_is_null(warehouse: Warehouse, make: Make) -> None:
    row = {"statistic": "mps", "estimate": None, "reason": "a single cluster: no interval"}
    warehouse.save([make(Estimates, row)], run="r1", study="quick")
    found = warehouse.query("select mps, los, detection_power from mart.effects")
    assert found.rows() == [(None, None, None)]
