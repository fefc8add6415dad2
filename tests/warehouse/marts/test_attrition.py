from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_bounds_stand_beside_the_tests_and_rates(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "asr_bounds", "estimate": 0.25, "low": 1 / 7, "high": 4 / 7, "n": 7},
        {"statistic": "asr", "estimate": 0.25},
        *(
            {
                "statistic": f"lost_over_{base}",
                "estimate": 0.3 + at,
                "low": 0.1 + at,
                "high": 0.6 + at,
                "p_value": 0.25,
            }
            for at, base in ((0.0, "sham"), (0.25, "control"))
        ),
        *(
            {"statistic": "lost_rate", "subgroup": arm, "estimate": at / 8, "hits": at, "n": 8}
            for at, arm in enumerate(("control", "experimental", "sham"), 1)
        ),
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query("select * exclude (study, dataset, prompt, wave) from mart.attrition")
    assert found.to_dicts() == [
        {
            "judge": "offline/honest",
            "mode": "balanced",
            "perturbation": "padding",
            "kind": "promote",
            "simulated": True,
            "asr": 0.25,
            "asr_at_least": 1 / 7,
            "asr_at_most": 4 / 7,
            "n": 7,
            "lost_over_sham": 0.3,
            "lost_over_sham_low": 0.1,
            "lost_over_sham_high": 0.6,
            "lost_over_sham_p": 0.25,
            "lost_over_control": 0.55,
            "lost_over_control_low": 0.35,
            "lost_over_control_high": 0.85,
            "lost_over_control_p": 0.25,
            "lost": 2,
            "lost_experimental": 2 / 8,
            "lost_sham": 3 / 8,
            "lost_control": 1 / 8,
        }
    ]
