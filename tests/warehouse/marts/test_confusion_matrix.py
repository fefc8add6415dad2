from collections.abc import Callable

from schemas.calibration import ConfusionMatrix
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_shares_are_of_a_label_of_people(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {},
        {"judge_label": "fail", "items": 10, "share_of_human_label": 0.25},
        {"human_label": "fail", "judge_label": "fail", "items": 5, "share_of_human_label": 1.0},
        {"criterion": "tone", "judge_label": "fail", "items": 1, "share_of_human_label": 1.0},
    ]
    warehouse.save([make(ConfusionMatrix, *rows)], run="r1", study="labels")
    found = warehouse.query(
        "select criterion, human_label, judge_label, items, share_of_human_label "
        "from mart.confusion_matrix order by criterion nulls first, human_label, judge_label"
    ).rows()
    assert found == [
        (None, "fail", "fail", 5, 1.0),
        (None, "pass", "fail", 10, 0.25),
        (None, "pass", "pass", 30, 0.75),
        ("tone", "pass", "fail", 1, 1.0),
    ]
