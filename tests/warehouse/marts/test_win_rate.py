from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_corrections_stand_side_by_side(warehouse: Warehouse, make: Make) -> None:
    cell = {"mode": "any", "perturbation": None, "kind": None, "subgroup": "ant vs bee"}
    names = ("win_rate_naive", "win_rate", "length_controlled", "ppi_win_rate", "human_win_rate")
    rows = [
        {
            **cell,
            "statistic": name,
            "estimate": 0.5 + i / 20,
            "low": i / 20,
            "high": 0.9,
            "n": 10 + i,
        }
        for i, name in enumerate(names)
    ]
    other = {
        **cell,
        "statistic": "rogan_gladen",
        "subgroup": "ant",
        "estimate": None,
        "reason": "blind",
    }
    own = {**cell, "statistic": "self_score_error", "subgroup": "ant", "estimate": 0.25}
    warehouse.save(
        [make(Estimates, *rows, other, own, {"statistic": "asr"})], run="r1", study="quick"
    )
    found = warehouse.query(
        "select subgroup, naive, swap_averaged, length_controlled, ppi, ppi_low, human, "
        "rogan_gladen, n, labels, self_score_error, reason from mart.win_rate order by subgroup"
    )
    assert found.rows() == [
        ("ant", None, None, None, None, None, None, None, None, None, 0.25, "rogan_gladen: blind"),
        ("ant vs bee", 0.5, 0.55, 0.6, 0.65, 0.15, 0.7, None, 11, 14, None, None),
    ]
