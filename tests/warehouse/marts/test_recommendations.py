from collections.abc import Callable

from schemas.results import Estimates, Findings
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]


def test_a_row_per_judge_with_reasons(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    whole = {"perturbation": None, "kind": None, "mode": "any", "clusters": 10}
    share = {"statistic": "invalid_rate", "estimate": 0.02, "low": 0.0, "high": 0.05}
    position = {"kind": "position", "statistic": "position_gap", "finding": "biased"}
    shift = {"estimate": 0.2, "low": 0.1, "high": 0.3}
    findings = make(Findings, {}, {"perturbation": None, "mode": "any", **position, **shift})
    saved = concluded(make(Estimates, {**whole, **share}), findings)
    warehouse.save(saved, run="r1", study="quick")
    [row] = warehouse.query("select * from mart.recommendations").to_dicts()
    assert (row["study"], row["recommendation"]) == ("quick", "do not use")
    assert row["reasons"].endswith("prefers the first slot (.20 [.10, .30], limit .05)")
    assert row["summary"] == (
        "Biased by padding (.25 [.10, .40], limit .05); prefers the first slot (.20 [.10, .30], "
        "limit .05)"
    )
    assert row["list_order"] == 3
    assert (row["passed"], row["failed"]) == (1, 2)
    assert row["not_measured"] == "discernment, agreement with people, drift"
