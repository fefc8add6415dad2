from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]

CONTROL = {"perturbation": None, "kind": None}


def test_consistency_beside_its_direction(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {
            **CONTROL,
            "statistic": "position_consistency",
            "estimate": 0.7,
            "low": 0.5,
            "high": 0.85,
            "n": 10,
            "dropped": 2,
        },
        {**CONTROL, "statistic": "primacy", "estimate": 0.2, "low": 0.0, "high": 0.4, "n": 10},
        {**CONTROL, "statistic": "recency", "estimate": 0.1, "n": 10},
        {**CONTROL, "statistic": "preference_fairness", "estimate": -0.1, "low": -0.3, "n": 10},
        {"statistic": "position_consistency", "estimate": 0.6, "n": 8},
        {"statistic": "asr", "estimate": 0.9},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query(
        "select study, dataset, judge, prompt, wave, perturbation, simulated, position_consistency,"
        " low, high, primacy, recency, preference_fairness, n, dropped"
        " from mart.position_bias order by perturbation nulls first"
    )
    judge = {
        "study": "quick",
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "simulated": True,
    }
    assert found.to_dicts() == [
        {
            **judge,
            "perturbation": None,
            "position_consistency": 0.7,
            "low": 0.5,
            "high": 0.85,
            "primacy": 0.2,
            "recency": 0.1,
            "preference_fairness": -0.1,
            "n": 10,
            "dropped": 2,
        },
        {
            **judge,
            "perturbation": "padding",
            "position_consistency": 0.6,
            "low": None,
            "high": None,
            "primacy": None,
            "recency": None,
            "preference_fairness": None,
            "n": 8,
            "dropped": 0,
        },
    ]


MEASURES = [
    "position_kappa",
    "first_pick_share",
    "position_gap",
    "within_order_agreement",
    "across_order_agreement",
    "excess_conflict",
    "repetition_stability",
    "tie_rate",
    "swap_win_rate",
    "swap_tie_rate",
    "swap_inconsistent_rate",
    "lenient_consistency",
]


def test_every_measure_has_its_column(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {
            **CONTROL,
            "mode": "any",
            "statistic": name,
            "estimate": 0.01 * number,
            "low": -0.1 * number,
            "high": 0.1 * number,
            "p_value": 0.001 * number,
        }
        for number, name in enumerate([*MEASURES, "primacy_test"], 1)
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    (found,) = warehouse.query("select * from mart.position_bias").to_dicts()
    assert [found[name] for name in MEASURES] == [0.01 * n for n in range(1, len(MEASURES) + 1)]
    assert found["primacy_test_p"] == 0.001 * (len(MEASURES) + 1)
    for number, name in enumerate(MEASURES, 1):
        if name in ("position_kappa", "position_gap", "excess_conflict"):
            assert (found[f"{name}_low"], found[f"{name}_high"]) == (-0.1 * number, 0.1 * number)
    assert found["position_gap_p"] == 0.001 * 3
