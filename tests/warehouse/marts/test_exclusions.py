from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]


def test_who_is_left_out_and_why(warehouse: Warehouse, make: Make, concluded: Concluded) -> None:
    whole = {"perturbation": None, "kind": None, "mode": "any", "clusters": 20}
    rows = [
        {**whole, "judge": judge, "statistic": "tie_rate", "estimate": 0.5, "low": low}
        for judge, low in (("ada", 0.85), ("bea", 0.45))
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    found = warehouse.query(
        "select study, judge, excluded, reasons, tie_rate_bound, tie_rate_limit "
        "from mart.exclusions order by judge"
    )
    # The other rules cannot be computed for bea.
    assert found.rows() == [
        ("quick", "ada", True, "tie rate", 0.85, 0.8),
        ("quick", "bea", None, None, 0.45, 0.8),
    ]
