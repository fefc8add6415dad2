from collections.abc import Callable
from itertools import product
from typing import Any

import polars as pl

from schemas.results import FINDINGS, Estimates
from tasks.conclude import conclude
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]
Row = dict[str, Any]


def cells() -> list[dict[str, Any]]:
    """Return shifts of all sizes, errors, p-values, numbers of questions and flaws detected."""
    rows = product(
        (-0.3, -0.06, 0.0, 0.01, 0.06, 0.3),
        (0.005, 0.05),
        (0.001, 0.03, 0.4),
        (9, 40),
        ("jury_mps", "jury_mps_sham"),
    )
    return [
        row
        for at, (shift, error, p, clusters, statistic) in enumerate(rows)
        for row in _cell(
            f"p{at:03}",
            ("promote", "detract")[at // 5 % 2],
            at,
            {
                "statistic": statistic,
                "estimate": shift,
                "low": shift - 2 * error,
                "high": shift + 2 * error,
                "standard_error": error,
                "p_value": p,
                "clusters": clusters,
            },
        )
    ]


def _cell(perturbation: str, kind: str, at: int, row: Row) -> list[Row]:
    """Return a cell's endpoint and, in all combinations, what is beside it."""
    low = (-0.4, 0.05, 0.55)[at % 3]
    beside = [
        ("jury_detection_power", {"estimate": 0.6, "low": low, "high": low + 0.1}),
        ("jury_detection_share", {"estimate": 0.6, "low": low - 0.1, "high": low + 0.3}),
        ("jury_sham_floor", {"estimate": (0.05, 0.5)[at % 2]}),
    ]
    if row["statistic"] == "jury_mps_sham":
        shift = (0.02, -0.05, 0.1)[at % 5 % 3]
        ends = {"low": shift - 0.01, "high": shift + (0.01, 0.2)[at % 2]}
        beside += [
            ("jury_mps", {"estimate": shift, "p_value": (0.001, 0.2)[at % 7 % 2]}),
            ("jury_sham_shift", {"estimate": shift, **ends}),
        ]
    named = [{"statistic": name, "clusters": row["clusters"], **more} for name, more in beside]
    cell = {"judge": "jury/all", "perturbation": perturbation, "kind": kind}
    return [{**cell, **each} for each in (row, *named)]


def test_a_jury_is_concluded_of_as_a_judge_is(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    empty = dict.fromkeys(("estimate", "low", "high", "standard_error", "p_value"))
    first = cells()[0]
    odd = [
        {**first, **empty, "perturbation": "null", "reason": "nobody came"},
        {**first, "perturbation": "bare", "standard_error": None},
        # Without a member, which is no part of the family
        {**first, "perturbation": "bare", "subgroup": "a", "p_value": 0.5},
    ]
    rows = make(Estimates, *cells(), *odd)
    warehouse.save(concluded(rows), run="r1", study="quick")
    renamed = rows.frame.with_columns(pl.col("statistic").str.strip_prefix("jury_"))
    expected = conclude(Estimates.of(renamed)).sort("perturbation")
    found = warehouse.query("select * from mart.jury_findings order by perturbation")
    assert found["perturbation"].to_list() == expected["perturbation"].to_list()
    assert found["statistic"].to_list() == [f"jury_{name}" for name in expected["statistic"]]
    assert found["finding"].to_list() == expected["finding"].to_list()
    assert found["reason"].to_list() == expected["reason"].to_list()
    gaps = (found["p_adjusted"] - expected["p_adjusted"]).abs()
    assert gaps.max() < 1e-12
    # Null is what has no p-value, and what has too few questions.
    assert gaps.is_null().equals(expected["p_adjusted"].is_null())
    assert found["p_adjusted"].is_null().equals(expected["p_adjusted"].is_null())
    assert 0 < gaps.null_count() < len(gaps)
    # All words occur, so all were compared.
    # A jury has no votes of its own, so it is not asked whether its shifts are mixed.
    assert set(found["finding"]) == {*FINDINGS, None} - {"mixed"}


def test_the_finding_stands_beside_the_shift(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    row = {
        "judge": "jury/all",
        "statistic": "jury_mps",
        "estimate": 0.3,
        "low": 0.2,
        "high": 0.4,
        "standard_error": 0.05,
        "p_value": 0.001,
        "clusters": 40,
    }
    control = {
        "judge": "jury/all",
        "statistic": "jury_accuracy",
        "perturbation": None,
        "kind": None,
        "mode": "any",
        "estimate": 0.75,
    }
    warehouse.save(
        concluded(make(Estimates, row, {**row, "subgroup": "a"}, control)), run="r1", study="quick"
    )
    found = warehouse.query(
        "select perturbation, left_out, finding, p_adjusted, accuracy from mart.jury order by all"
    )
    assert found.rows() == [
        ("padding", "a", None, None, None),
        ("padding", None, "biased", 0.001, None),
        (None, None, None, None, 0.75),
    ]
    reported = warehouse.query(
        "select subgroup, finding, adjustment from mart.numbers order by all"
    )
    assert ("biased", "Benjamini-Hochberg, the jury's perturbations") in {
        r[1:] for r in reported.rows()
    }
