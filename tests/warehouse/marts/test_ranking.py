from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_rank_has_its_interval_and_letters(
    warehouse: Warehouse, make: Make, concluded: Callable[..., list[Saving]]
) -> None:
    tier = {"statistic": "tier", "judge": "a"}
    rows = [
        {"statistic": "rank", "judge": "a", "estimate": 1.5, "low": 1, "high": 3},
        {"statistic": "rank", "judge": "b", "estimate": None, "reason": "nothing qualifies"},
        *({**tier, "subgroup": s, "estimate": e} for s, e in (("aa", 27), ("b", 2), ("z", 26))),
        {"statistic": "rank", "judge": "c", "estimate": 2, "low": None, "reason": "formulas"},
        {"statistic": "mps", "judge": "a"},
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    columns = "judge, rank, low, high, tier, reason"
    assert warehouse.query(f"select {columns} from mart.ranking order by judge").rows() == [
        ("a", 1.5, 1.0, 3.0, "bzaa", None),
        ("b", None, None, None, None, "nothing qualifies"),
        # Never a bare rank.
        ("c", None, None, None, None, "formulas"),
    ]
