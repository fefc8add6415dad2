from collections.abc import Callable

import pytest
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
PAIRS = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]


def test_holm_over_all_pairs_of_one_perturbation(warehouse: Warehouse, make: Make) -> None:
    p_values = [0.01, 0.01, None, 0.02, 0.2, 0.9]
    rows = [
        {
            "statistic": statistic, "judge": judge, "subgroup": other, "perturbation": perturbation,
            "p_value": p,
        }
        for statistic, perturbation in (
            ("mps_contrast", "padding"), ("mps_contrast", "rich"), ("asr_contrast", "padding"),
        )
        for (judge, other), p in zip(PAIRS, p_values, strict=True)
    ]  # fmt: skip
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query(
        "select statistic, perturbation, list(p_holm order by judge, other) from mart.contrasts "
        "group by all"
    ).rows()
    # Holm of five, by statsmodels; the null does not count
    told = multipletests([p for p in p_values if p is not None], method="holm")[1].tolist()
    expected = [*told[:2], None, *told[2:]]
    assert len(found) == 3
    for *_, adjusted in found:
        assert adjusted == [None if p is None else pytest.approx(p) for p in expected]


def test_each_judge_beside_its_own_value(warehouse: Warehouse, make: Make) -> None:
    rows = [
        {"statistic": "mps_sham_contrast", "judge": "a", "subgroup": "b", "estimate": 0.2,
         "low": 0.1, "high": 0.3, "p_value": 0.03},
        {"statistic": "mps_sham", "judge": "a", "estimate": 0.25},
        {"statistic": "mps_sham", "judge": "b", "estimate": 0.05},
        {"statistic": "mps_sham", "judge": "b", "estimate": 9.0, "subgroup": "a part of it"},
        {"statistic": "mps", "judge": "a", "estimate": 0.9},
        {"statistic": "mcnemar", "judge": "a", "subgroup": "b", "estimate": 0.1},
    ]  # fmt: skip
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    columns = "statistic, judge, other, contrast, low, high, p_holm, judge_value, other_value"
    assert warehouse.query(f"select {columns} from mart.contrasts order by statistic").rows() == [
        ("mcnemar", "a", "b", 0.1, None, None, None, None, None),
        ("mps_sham_contrast", "a", "b", 0.2, 0.1, 0.3, 0.03, 0.25, 0.05),
    ]
