"""Rating shifts by category, by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from scipy import stats

from tasks.statistics.rating_category_shift import rating_category_shift

Make = Callable[..., Any]
CATEGORIES = {"s0": "sums", "s1": "sums", "s2": "words"}


def made(make: Make, arms: dict[str, list[Any]], **more: Any) -> Any:
    rows = [
        {"sample": f"s{i}", "category": CATEGORIES[f"s{i}"], "arm": arm, "value": value, **more}
        for arm, values in arms.items()
        for i, value in enumerate(values)
    ]
    return make(rows)


def found(ratings: Any) -> dict[str, dict[str, Any]]:
    rows = rating_category_shift(ratings=ratings).to_dicts()
    assert {row["statistic"] for row in rows} <= {"rating_category_shift"}
    return {row["subgroup"]: row for row in rows}


def test_docstring_example(make_ratings: Make) -> None:
    arms: dict[str, list[Any]] = {"control": [4, 6, 5], "experimental": [5, 8, 5]}
    rows = found(made(make_ratings, arms))
    assert {name: row["estimate"] for name, row in rows.items()} == {"sums": 1.5, "words": 0.0}
    # A t test of the paired differences 1 and 2.
    test = stats.ttest_1samp([1, 2], 0)
    low, high = test.confidence_interval()
    # Bounds end where the scale does, nine points from 0.
    assert rows["sums"]["p_value"] == pytest.approx(test.pvalue)
    bounds = (rows["sums"]["low"], rows["sums"]["high"])
    assert bounds == pytest.approx((low, min(high, 9.0)))
    assert (rows["sums"]["unit"], rows["sums"]["n"]) == ("points", 2)


def test_passes_are_shares(make_ratings: Make) -> None:
    arms: dict[str, list[Any]] = {"control": [1.0, 0.0, 1.0], "experimental": [1.0, 1.0, 0.0]}
    rows = found(made(make_ratings, arms, kind="label"))
    assert {name: row["estimate"] for name, row in rows.items()} == {"sums": 0.5, "words": -1.0}
    assert rows["sums"]["unit"] == "share"
    # Flips are rare, so the score interval counts (tests of rating_shift have its numbers).
    assert rows["sums"]["method"] == "cluster-adjusted Tango"


def test_without_categories_or_perturbations_there_is_no_row(make_ratings: Make) -> None:
    arms: dict[str, list[Any]] = {"control": [4, 6, 5], "experimental": [5, 8, 5]}
    assert found(made(make_ratings, {"control": [4, 6, 5]})) == {}
    assert found(made(make_ratings, arms).with_columns(category=None)) == {}
