from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_other_words_stand_beside_the_same_words(warehouse: Warehouse, make: Make) -> None:
    control = {"perturbation": None, "kind": None}
    rows = [
        {"statistic": "rewording_sensitivity", "estimate": 0.3, "low": 0.2, "high": 0.4, "n": 40},
        {"statistic": "rewording_sensitivity", "subgroup": "brief", "estimate": 0.25, "n": 20},
        {"statistic": "rewording_score_change", "estimate": 0.15, "low": 0.12, "high": 0.18},
        {"statistic": "repeat_sensitivity", "estimate": 0.1, "low": 0.05, "high": 0.2},
        {"statistic": "repeat_score_change", "estimate": 0.05, "low": 0.01, "high": 0.09},
        {"statistic": "rewording_excess", "estimate": 0.2, "low": 0.1, "high": 0.3},
        {"statistic": "asr", "estimate": 0.5},
    ]
    saved = [{**control, **row} for row in rows]
    warehouse.save([make(Estimates, *saved)], run="r1", study="quick")
    found = warehouse.query(
        "select judge, variant, n, changed, changed_low, changed_high, score_change, score_low,"
        " score_high, again_changed,"
        " again_low, again_high, again_score_change, again_score_low,"
        " again_score_high, excess, low, high from mart.rewording"
        " order by variant nulls first"
    )
    whole = (40, 0.3, 0.2, 0.4, 0.15, 0.12, 0.18, 0.1, 0.05, 0.2, 0.05, 0.01, 0.09, 0.2, 0.1, 0.3)
    first, second = found.rows()
    assert first == ("offline/honest", None, *whole)
    assert second[:4] == ("offline/honest", "brief", 20, 0.25)
    assert second[6:] == (None,) * 12
