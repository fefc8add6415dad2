from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_row_for_each_arm(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "lost_rate", "subgroup": arm, "estimate": hits / 8, "hits": hits, "n": 8}
        for hits, arm in enumerate(("control", "experimental"), 1)
    ]
    warehouse.save([make(Estimates, *rows, {"statistic": "mps"})], run="r1", study="quick")
    found = warehouse.query("select arm, lost, votes, lost_rate from mart.lost order by arm")
    assert found.rows() == [("control", 1, 8, 1 / 8), ("experimental", 2, 8, 2 / 8)]
