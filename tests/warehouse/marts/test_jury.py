from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_the_jury_with_and_without_each_member(warehouse: Warehouse, make: Make) -> None:
    jury = {"judge": "jury/all"}
    rows = [
        {**jury, "statistic": "jury_mps", "estimate": 0.3, "n": 9},
        {**jury, "statistic": "jury_mps_sham", "estimate": 0.2, "low": 0.1, "high": 0.3},
        {**jury, "statistic": "jury_asr", "estimate": 0.4},
        {**jury, "statistic": "jury_size", "estimate": 1.5},
        {**jury, "statistic": "jury_correlation", "estimate": 0.5},
        {**jury, "statistic": "jury_mps_sham", "subgroup": "a", "estimate": 0.15},
        {"judge": "a", "statistic": "mps", "estimate": 0.9},
        {"judge": "a", "statistic": "mps_sham", "estimate": 0.25},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    columns = "left_out, shift, low, high, member_shift, asr, size, correlation, n"
    assert warehouse.query(f"select {columns} from mart.jury order by left_out").rows() == [
        ("a", 0.15, None, None, 0.25, None, None, None, None),
        (None, 0.2, 0.1, 0.3, None, 0.4, 1.5, 0.5, 9),
    ]
