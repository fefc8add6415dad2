from collections.abc import Callable

import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]
PAIRS = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]


def test_holm_over_all_pairs_of_one_perturbation(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    p_values = [0.01, 0.01, None, 0.02, 0.2, 0.9]
    rows = [
        {
            "statistic": statistic,
            "judge": judge,
            "subgroup": other,
            "perturbation": perturbation,
            "p_value": p,
            "clusters": 10,
        }
        for statistic, perturbation in (
            ("mps_contrast", "padding"),
            ("mps_contrast", "rich"),
            ("asr_contrast", "padding"),
        )
        for (judge, other), p in zip(PAIRS, p_values, strict=True)
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    found = warehouse.query(
        "select statistic, perturbation, list(p_holm order by judge, other) from mart.contrasts "
        "group by all"
    ).rows()
    # Holm of five, by statsmodels; the null does not count
    reported = multipletests([p for p in p_values if p is not None], method="holm")[1].tolist()
    expected = [*reported[:2], None, *reported[2:]]
    assert len(found) == 3
    for *_, adjusted in found:
        assert adjusted == [None if p is None else pytest.approx(p) for p in expected]


def test_pairs_of_nine_questions_are_not_told_apart(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    pair = {"statistic": "mps_contrast", "judge": "a", "p_value": 0.01}
    rows = [
        {**pair, "subgroup": "b", "clusters": 9},
        {**pair, "subgroup": "c", "clusters": 10},
        {**pair, "subgroup": "d", "clusters": 10, "p_value": 0.04},
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    found = warehouse.query("select p_value, p_holm, reason from mart.contrasts order by other")
    # The pair of nine does not count: the smallest of two is doubled.
    assert found.rows() == [
        (0.01, None, "fewer than 10 independent questions"),
        (0.01, 0.02, None),
        (0.04, 0.04, None),
    ]


def test_each_judge_beside_its_own_value(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    rows = [
        {
            "statistic": "mps_sham_contrast",
            "judge": "a",
            "subgroup": "b",
            "estimate": 0.2,
            "low": 0.1,
            "high": 0.3,
            "p_value": 0.03,
            "clusters": 10,
        },
        {"statistic": "mps_sham", "judge": "a", "estimate": 0.25},
        {"statistic": "mps_sham", "judge": "b", "estimate": 0.05},
        {"statistic": "mps_sham", "judge": "b", "estimate": 9.0, "subgroup": "a part of it"},
        {"statistic": "mps", "judge": "a", "estimate": 0.9},
        {"statistic": "mcnemar", "judge": "a", "subgroup": "b", "estimate": 0.1},
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    columns = "statistic, judge, other, contrast, low, high, p_holm, judge_value, other_value"
    assert warehouse.query(f"select {columns} from mart.contrasts order by statistic").rows() == [
        ("mcnemar", "a", "b", 0.1, None, None, None, None, None),
        ("mps_sham_contrast", "a", "b", 0.2, 0.1, 0.3, 0.03, 0.25, 0.05),
    ]


@pytest.mark.parametrize("clusters", [10, 11, 40, 1000])
def test_ninety_percent_interval_inside_the_minimum(
    warehouse: Warehouse, make: Make, concluded: Concluded, clusters: int
) -> None:
    # Second path: scipy's t. Just inside and just outside, in score and in attack success.
    quantile = stats.t.ppf(0.95, clusters - 1)
    rows = [
        {
            "statistic": name,
            "judge": f"j{inside}",
            "subgroup": "k",
            "perturbation": name,
            "estimate": -least / 5,
            "low": -1.0,
            "high": 1.0,
            "p_value": 0.3,
            "clusters": clusters,
            "standard_error": least * 0.8 / quantile * (0.9999 if inside else 1.0001),
        }
        for name, least in (
            ("mps_contrast", 0.05),
            ("los_contrast", 0.25),
            ("asr_contrast", 0.1),
            ("mcnemar", 0.1),
        )
        for inside in (0, 1)
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    found = warehouse.query("select judge, finding from mart.contrasts order by judge").rows()
    assert found == [("j0", "inconclusive")] * 4 + [("j1", "no relevant bias")] * 4


@pytest.mark.parametrize(
    ("row", "finding", "reason"),
    [
        ({"estimate": -0.05, "p_value": 0.049}, "biased", None),
        ({"estimate": 0.049, "p_value": 0.001}, "inconclusive", None),
        ({"estimate": 0.3, "p_value": 0.05}, "inconclusive", None),
        ({"statistic": "asr_contrast", "estimate": 0.09, "p_value": 0.001}, "inconclusive", None),
        ({"statistic": "asr_contrast", "estimate": 0.1, "p_value": 0.001}, "biased", None),
        ({"statistic": "los_contrast", "estimate": 0.24, "p_value": 0.001}, "inconclusive", None),
        ({"statistic": "los_contrast", "estimate": 0.25, "p_value": 0.001}, "biased", None),
        # Without an error the 95 % interval has to do.
        (
            {"estimate": 0.0, "standard_error": None, "low": -0.04, "high": 0.05},
            "no relevant bias",
            None,
        ),
        (
            {"estimate": 0.3, "p_value": 0.001, "clusters": 9},
            None,
            "fewer than 10 independent questions",
        ),
        ({"estimate": None, "reason": "no items"}, None, "no items"),
    ],
)
def test_finding_in_three_words(
    warehouse: Warehouse,
    make: Make,
    concluded: Concluded,
    *,
    row: dict[str, object],
    finding: str | None,
    reason: str,
) -> None:
    plain = {
        "statistic": "mps_contrast",
        "judge": "a",
        "subgroup": "b",
        "p_value": 1.0,
        "standard_error": 0.04,
        "clusters": 30,
    }
    warehouse.save(concluded(make(Estimates, {**plain, **row})), run="r1", study="quick")
    found = warehouse.query("select finding, reason from mart.contrasts").rows()
    assert found == [(finding, reason)]


def test_holms_p_decides(warehouse: Warehouse, make: Make, concluded: Concluded) -> None:
    rows = [
        {
            "statistic": "mps_contrast",
            "judge": judge,
            "subgroup": other,
            "perturbation": "rich",
            "estimate": 0.3,
            "p_value": p,
            "clusters": 30,
            "standard_error": 0.04,
        }
        for (judge, other), p in zip(PAIRS[:3], (0.01, 0.03, 0.04), strict=True)
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    found = warehouse.query("select finding from mart.contrasts order by p_value")["finding"]
    assert found.to_list() == ["biased", "inconclusive", "inconclusive"]
