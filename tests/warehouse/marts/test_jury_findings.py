from collections.abc import Callable
from itertools import product
from typing import Any

import polars as pl

from schemas.results import Estimates
from tasks.conclude import conclude
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
CELL = ["study", "perturbation"]
TOLD = ["statistic", "p_adjusted", "finding", "reading", "reason"]


def cells() -> list[dict[str, Any]]:
    """Return shifts of all sizes, errors, p-values and numbers of questions."""
    rows = product((-0.3, -0.06, 0.0, 0.01, 0.06, 0.3), (0.005, 0.05), (0.001, 0.03, 0.4), (9, 40))
    return [
        {"judge": "jury/all", "statistic": "jury_mps", "perturbation": f"p{at:02}",
         "kind": ("promote", "detract")[at % 2], "estimate": shift, "low": shift - 2 * error,
         "high": shift + 2 * error, "standard_error": error, "p_value": p, "clusters": clusters}
        for at, (shift, error, p, clusters) in enumerate(rows)
    ]  # fmt: skip


def test_a_jury_is_concluded_of_as_a_judge_is(warehouse: Warehouse, make: Make) -> None:
    empty = dict.fromkeys(("estimate", "low", "high", "standard_error", "p_value"))
    odd = [
        {**cells()[0], **empty, "perturbation": "null", "reason": "nobody came"},
        {**cells()[5], "perturbation": "bare", "standard_error": None},
        {**cells()[9], "perturbation": "shammed", "statistic": "jury_mps_sham", "estimate": 0.2},
        {**cells()[9], "perturbation": "shammed"},
        # Without a member, which is no part of the family
        {**cells()[9], "perturbation": "shammed", "subgroup": "a", "p_value": 0.5},
    ]
    rows = make(Estimates, *cells(), *odd)
    warehouse.save([rows], run="r1", study="quick")
    renamed = rows.frame.with_columns(pl.col("statistic").str.strip_prefix("jury_"))
    expected = conclude(Estimates.of(renamed)).sort("perturbation")
    found = warehouse.query("select * from mart.jury_findings order by perturbation")
    assert found["perturbation"].to_list() == expected["perturbation"].to_list()
    assert found["statistic"].to_list() == [f"jury_{name}" for name in expected["statistic"]]
    for column in ("finding", "reading", "reason"):
        assert found[column].to_list() == expected[column].to_list()
    gaps = (found["p_adjusted"] - expected["p_adjusted"]).abs()
    assert gaps.max() < 1e-12
    # Null is what has no p-value, and what has too few questions.
    assert gaps.is_null().equals(expected["p_adjusted"].is_null())
    assert found["p_adjusted"].is_null().equals(expected["p_adjusted"].is_null())
    assert 0 < gaps.null_count() < len(gaps)
    # All words occur, so all were compared.
    assert set(found["finding"]) == {"biased", "no relevant bias", "inconclusive", None}
    assert set(found["reading"]) == {"detects", "overlooks", "rewards", None}


def test_the_finding_stands_beside_the_shift(warehouse: Warehouse, make: Make) -> None:
    row = {"judge": "jury/all", "statistic": "jury_mps", "estimate": 0.3, "low": 0.2, "high": 0.4,
           "standard_error": 0.05, "p_value": 0.001, "clusters": 40}  # fmt: skip
    control = {"judge": "jury/all", "statistic": "jury_accuracy", "perturbation": None,
               "kind": None, "mode": "any", "estimate": 0.75}  # fmt: skip
    warehouse.save(
        [make(Estimates, row, {**row, "subgroup": "a"}, control)], run="r1", study="quick"
    )
    found = warehouse.query(
        "select perturbation, left_out, finding, p_adjusted, accuracy from mart.jury order by all"
    )
    assert found.rows() == [
        ("padding", "a", None, None, None), ("padding", None, "biased", 0.001, None),
        (None, None, None, None, 0.75),
    ]  # fmt: skip
    told = warehouse.query("select subgroup, finding, adjustment from mart.numbers order by all")
    assert ("biased", "Benjamini-Hochberg, the jury's perturbations") in {
        r[1:] for r in told.rows()
    }
