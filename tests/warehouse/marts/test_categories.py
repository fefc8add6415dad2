from collections.abc import Callable

import pytest

from schemas.conclusions import CategoryShifts
from schemas.results import Estimates
from tasks.conclude import category_shifts
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
F5 = "Benjamini-Hochberg, all categories of all cells (F5)"


def test_a_row_for_each_category_adjusted_in_one_family(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {
            "statistic": "category_shift",
            "subgroup": name,
            "estimate": 0.1,
            "p_value": p,
            "clusters": clusters,
        }
        for name, p, clusters in (("a", 0.01, 30), ("b", 0.04, 30), ("c", 0.5, 30), ("d", 0.001, 3))
    ]
    other = {"statistic": "mps", "subgroup": "ada", "estimate": 0.9}
    estimates = make(Estimates, *rows, other)
    found = category_shifts(Estimates.of(estimates.frame))
    warehouse.save([estimates, Saving(CategoryShifts, found)], run="r1", study="quick")
    shown = warehouse.query(
        "select judge, perturbation, category, category_shift, p_value, adjustment, reason "
        "from mart.categories order by category"
    )
    cell = ("offline/honest", "padding")
    assert [row[:5] for row in shown.rows()] == [
        (*cell, row["subgroup"], 0.1, row["p_value"]) for row in rows
    ]
    assert shown["adjustment"].to_list() == [F5, F5, F5, None]
    assert "question" in shown["reason"][3]
    # By hand, of the three with enough questions: .01 * 3, .04 * 3 / 2, .5.
    adjusted = warehouse.query("select p_adjusted from mart.categories order by category")
    assert adjusted["p_adjusted"].to_list() == [*map(pytest.approx, (0.03, 0.06, 0.5)), None]
