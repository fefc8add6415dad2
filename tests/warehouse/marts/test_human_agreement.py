from collections.abc import Callable

from schemas.calibration import HumanAgreement
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_row_per_judge_criterion_and_slice(warehouse: Warehouse, make: Make) -> None:
    nothing = {"low": None, "high": None, "level": None}
    rows = [
        {},
        {"statistic": "kappa", "estimate": None, **nothing, "reason": "one label"},
        {
            "statistic": "bias",
            "estimate": 0.125,
            "p_value": 0.25,
            "p_adjusted": 0.5,
            "finding": "inconclusive",
        },
        {"statistic": "labels_for_bias", "estimate": 300.0, **nothing},
        {"slice_column": "topic", "slice": "x", "estimate": 0.5, "n": 20},
        {"judge": "humans", "statistic": "people_agreement", "estimate": 0.9375},
    ]
    warehouse.save([make(HumanAgreement, *rows)], run="r1", study="labels")
    found = warehouse.query(
        "select judge, slice_column, slice, n, missing, invalid, unlabelled, tied, agreement, "
        "agreement_low, agreement_high, kappa, bias, bias_p_adjusted, bias_finding, "
        "labels_for_bias, people_agreement, reason "
        "from mart.human_agreement order by judge, slice nulls first"
    ).rows()
    counts = (1, 2, 3, 4)
    ends, bias = (0.5, 0.875), (0.125, 0.5, "inconclusive", 300.0)
    assert found == [
        ("ada", None, None, 40, *counts, 0.75, *ends, None, *bias, None, "kappa: one label"),
        ("ada", "topic", "x", 20, *counts, 0.5, *ends, *[None] * 7),
        ("humans", None, None, 40, *counts, *[None] * 8, 0.9375, None),
    ]
