from collections.abc import Callable

from schemas.results import Drifts, Estimates, Findings
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]


def test_a_row_per_gate(warehouse: Warehouse, make: Make, concluded: Concluded) -> None:
    whole = {"perturbation": None, "kind": None, "mode": "any", "clusters": 10}
    estimates = make(
        Estimates,
        {**whole, "statistic": "invalid_rate", "estimate": 0.02, "low": 0.0, "high": 0.05},
    )
    drifts = make(Drifts, {"wave": ""})
    position = {
        "perturbation": None,
        "kind": "position",
        "mode": "any",
        "statistic": "position_gap",
        "finding": "biased",
    }
    warehouse.save(
        concluded(estimates, make(Findings, {}, position), drifts), run="r1", study="quick"
    )
    sql = "select study, gate, perturbation, verdict from mart.scorecard order by gate"
    assert warehouse.query(sql).rows() == [
        ("quick", "bias", "padding", "fail"),
        ("quick", "discernment", None, "inconclusive"),
        ("quick", "drift", None, "inconclusive"),
        ("quick", "position", None, "fail"),
        ("quick", "validity", None, "pass"),
    ]
