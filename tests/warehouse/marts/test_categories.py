from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_row_for_each_category(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "category_shift", "subgroup": name, "estimate": 0.1 * k, "p_value": 0.5}
        for k, name in enumerate(("sums", "words"), 1)
    ]
    other = {"statistic": "mps", "subgroup": "ada", "estimate": 0.9}
    warehouse.save([make(Estimates, *rows, other)], run="r1", study="quick")
    found = warehouse.query(
        "select judge, perturbation, category, category_shift, p_value from mart.categories "
        "order by category"
    )
    cell = ("offline/honest", "padding")
    assert found.rows() == [(*cell, "sums", 0.1, 0.5), (*cell, "words", 0.2, 0.5)]
