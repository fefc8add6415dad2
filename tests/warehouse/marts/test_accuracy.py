from collections.abc import Callable

import pytest

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
ALL = {"perturbation": None, "kind": None}


def test_accuracy_in_each_order(warehouse: Warehouse, make: Make) -> None:
    shares = {
        "accuracy": 0.6,
        "accuracy_12": 0.5,
        "accuracy_21": 0.7,
        "accuracy_valid": 0.65,
        "both_right": 0.4,
        "order_agreement": 0.8,
        "order_agreement_llmbar": 0.75,
    }
    rows = [
        {
            **ALL,
            "statistic": name,
            "estimate": share,
            "low": 0.1,
            "high": 0.9,
            "n": 20,
            "hits": round(share * 20),
        }
        for name, share in shares.items()
    ]
    kappa = {**ALL, "statistic": "order_kappa", "estimate": 0.3}
    chance = {**ALL, "statistic": "accuracy_beyond_chance", "estimate": 0.25, "low": 0.05}
    other = {"statistic": "asr", "estimate": 0.99}
    changes = {"accuracy_before": 0.6, "accuracy_after": 0.4, "accuracy_change": -0.2}
    of_padding = [
        {"statistic": name, "estimate": value, "low": value - 0.1, "high": value + 0.1}
        for name, value in changes.items()
    ]
    warehouse.save(
        [make(Estimates, *rows, kappa, chance, other, *of_padding)], run="r1", study="quick"
    )
    perturbed = warehouse.query(
        "select before, after, change, change_low, change_high, accuracy from mart.accuracy "
        "where perturbation = 'padding'"
    )
    assert perturbed.rows() == [(0.6, 0.4, -0.2, pytest.approx(-0.3), pytest.approx(-0.1), None)]
    (control,) = warehouse.query(
        "select * from mart.accuracy where perturbation is null"
    ).to_dicts()
    bounds = {
        f"{name}_{end}": at
        for name in shares
        if name != "accuracy"
        for end, at in (("low", 0.1), ("high", 0.9))
    }
    assert {name: value for name, value in control.items() if value is not None} == {
        "study": "quick",
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "simulated": True,
        "low": 0.1,
        "high": 0.9,
        "hits": 12,
        "n": 20,
        "clusters": 4,
        "order_kappa": 0.3,
        "beyond_chance": 0.25,
        "beyond_chance_low": 0.05,
        **shares,
        **bounds,
    }
