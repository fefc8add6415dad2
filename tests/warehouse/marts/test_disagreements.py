from collections.abc import Callable

from schemas.calibration import Disagreements
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_the_worst_come_first(warehouse: Warehouse, make: Make) -> None:
    rows = [{"rank": 2, "item": "i2", "gap": 0.5}, {"gap": 3.0, "texts": '{"input":"Why?"}'}]
    warehouse.save([make(Disagreements, *rows)], run="r1", study="labels")
    found = warehouse.query(
        'select "rank", item, gap, human_label, judge_label, texts from mart.disagreements'
    ).rows()
    assert found == [
        (1, "i1", 3.0, "pass", "fail", '{"input":"Why?"}'),
        (2, "i2", 0.5, "pass", "fail", "{}"),
    ]
