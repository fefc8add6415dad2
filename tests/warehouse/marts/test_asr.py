from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_each_cell_has_its_rate_beside_its_floor(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {
            "statistic": "asr",
            "estimate": 0.5,
            "low": 0.1,
            "high": 0.9,
            "hits": 2,
            "n": 4,
            "dropped": 1,
        },
        {"statistic": "sham_floor", "estimate": 0.25, "low": 0.0, "high": 0.7, "hits": 1, "n": 4},
        # fewer shams were asked about than perturbed answers
        {
            "statistic": "dasr",
            "estimate": 0.25,
            "low": -0.1,
            "high": 0.6,
            "n": 3,
            "votes_per_pair": 1,
        },
        {"statistic": "dasr_posterior", "estimate": 0.875, "n": 3, "low": None, "high": None},
        {"statistic": "random_baseline", "estimate": 0.3333, "n": 5, "hits": None},
        {"statistic": "mps", "estimate": 0.125},
        {"statistic": "position_consistency", "perturbation": None, "kind": None, "estimate": 0.8},
        # what has no mode is kept under "balanced"
        {"statistic": "valid_rate", "mode": "balanced", "votes_per_pair": 6, "estimate": 1.0},
    ]
    paper = [{"mode": "paper", **row} for row in rows]
    warehouse.save([make(Estimates, *paper)], run="r1", study="quick")
    found = warehouse.query("select * from mart.asr").to_dicts()
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
    }
    numbers = {
        "asr": 0.5,
        "asr_low": 0.1,
        "asr_high": 0.9,
        "hits": 2,
        "n": 4,
        "clusters": 4,
        "dropped": 1,
        "sham_floor": 0.25,
        "sham_floor_low": 0.0,
        "sham_floor_high": 0.7,
        "dasr": 0.25,
        "dasr_low": -0.1,
        "dasr_high": 0.6,
        "dasr_posterior": 0.875,
        "random_baseline": 0.3333,
        "excluded": None,
        "excluded_for": None,
    }
    assert found == [{**cell, **numbers}]


def test_what_was_not_estimated_is_null(warehouse: Warehouse, make: Make) -> None:
    row = {"statistic": "asr", "estimate": None, "n": 0, "reason": "no sample to flip"}
    warehouse.save([make(Estimates, row)], run="r1", study="quick")
    found = warehouse.query("select asr, asr_low, sham_floor, dasr, n, hits from mart.asr")
    assert found.rows() == [(None, None, None, None, 0, None)]


def test_studies_judges_and_waves_stay_apart(warehouse: Warehouse, make: Make) -> None:
    both = make(Estimates, {"wave": "1", "estimate": 0.1}, {"judge": "a/b", "estimate": 0.2})
    warehouse.save([both], run="r1", study="one")
    warehouse.save([make(Estimates, {"estimate": 0.3})], run="r1", study="two")
    found = warehouse.query("select study, judge, wave, asr from mart.asr order by asr")
    assert found.rows() == [
        ("one", "offline/honest", "1", 0.1),
        ("one", "a/b", "", 0.2),
        ("two", "offline/honest", "", 0.3),
    ]
