from collections.abc import Callable

from schemas.results import Estimates, Findings
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_finding_with_all_that_it_rests_on(warehouse: Warehouse, make: Make) -> None:
    estimates = make(
        Estimates,
        {"statistic": "asr", "estimate": 0.5, "low": 0.4, "high": 0.6},
        {"statistic": "mps", "estimate": 0.25, "n": 57},
        {"statistic": "sham_floor", "estimate": 0.2, "low": 0.1, "high": 0.3},
        {"statistic": "dasr", "estimate": 0.3},
        {"statistic": "random_baseline", "estimate": 0.3333},
        {"statistic": "lost_over_sham", "estimate": 0.35, "p_value": 0.001},
        {"statistic": "asr_bounds", "low": 0.4, "high": 0.7},
        {
            "statistic": "position_consistency",
            "estimate": 0.9,
            "low": 0.8,
            "high": 0.95,
            "perturbation": None,
            "kind": None,
        },
        # of the perturbed pairs, which is not the judge's own
        {"statistic": "position_consistency", "estimate": 0.4},
    )
    changed = {
        "p_holm": 0.03,
        "p_by": 0.04,
        "e_value": 30.0,
        "e_rejected": True,
        "shrunk": 0.2,
        "control": 0.2,
        "control_low": 0.1,
        "control_high": 0.3,
        "control_p": 0.01,
        "sham_shift": -0.05,
        "shift_spread": 0.12,
        "shift_spread_low": 0.05,
        "shift_spread_high": 0.2,
        "moved_p": 0.04,
        "category_p": 0.5,
        "lost_difference": 0.35,
        "lost_over": "sham",
        "lost_p": 0.001,
        "lost_finding": "verdicts lost: differential",
    }
    warehouse.save([make(Findings, changed), estimates], run="r1", study="quick")
    assert warehouse.query("select * from mart.bias").to_dicts() == [
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
            "statistic": "mps",
            "unit": None,
            "prompt_kind": None,
            "n": 57,
            "shift": 0.25,
            "low": 0.1,
            "high": 0.4,
            "points": None,
            "points_low": None,
            "points_high": None,
            "control": 0.2,
            "control_low": 0.1,
            "control_high": 0.3,
            "control_p": 0.01,
            "sham_shift": -0.05,
            "sham_shift_low": None,
            "sham_shift_high": None,
            "detected": None,
            "detected_low": None,
            "detected_high": None,
            "detected_by": None,
            "detects_at": None,
            "p_value": 0.01,
            "p_adjusted": 0.02,
            "p_holm": 0.03,
            "p_by": 0.04,
            "e_value": 30.0,
            "e_rejected": True,
            "shrunk": 0.2,
            "asr": 0.5,
            "asr_low": 0.4,
            "asr_high": 0.6,
            "sham_floor": 0.2,
            "sham_floor_low": 0.1,
            "sham_floor_high": 0.3,
            "dasr": 0.3,
            "dasr_low": None,
            "dasr_high": None,
            "random_baseline": 0.3333,
            "votes_per_pair": 2,
            "position_consistency": 0.9,
            "position_consistency_low": 0.8,
            "position_consistency_high": 0.95,
            "finding": "biased",
            "reason": None,
            "shift_spread": 0.12,
            "shift_spread_low": 0.05,
            "shift_spread_high": 0.2,
            "moved_p": 0.04,
            "category_p": 0.5,
            "lost_difference": 0.35,
            "lost_over": "sham",
            "lost_p": 0.001,
            "lost_finding": "verdicts lost: differential",
            "asr_at_least": 0.4,
            "asr_at_most": 0.7,
        }
    ]


def test_one_row_for_each_finding_whatever_is_missing(warehouse: Warehouse, make: Make) -> None:
    findings = make(Findings, {}, {"perturbation": "rich_content"}, {"judge": "a/b"}, {"wave": "1"})
    for study in ("one", "two"):
        warehouse.save([findings], run="r1", study=study)
    warehouse.save([make(Estimates)], run="r1", study="one")
    rows = warehouse.query("select study, judge, wave, perturbation, asr from mart.bias")
    assert rows.height == 8
    assert rows.drop_nulls().rows() == [("one", "offline/honest", "", "padding", 0.5)]
