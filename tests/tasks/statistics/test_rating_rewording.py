"""Ratings that change in other words, by hand."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from scipy import stats

from tasks.statistics import STATISTICS
from tasks.statistics.rating_rewording import rating_rewording

Make = Callable[..., Any]
ARMS = {
    "control": [4, 6, 8],
    "one": [5, 6, 10],
    "two": [4, 5, 8],
    "replicate": [4, 7, 8],
}


def rows_of(arms: dict[str, list[Any]], **more: Any) -> list[dict[str, Any]]:
    """Name a variant's arm by the variant."""
    return [
        {
            "sample": f"s{i}",
            "arm": name if name in {"control", "replicate", "experimental"} else "reworded",
            "perturbation": {"control": None, "replicate": None, "experimental": "boast"}.get(
                name, name
            ),
            "value": value,
            **more,
        }
        for name, values in arms.items()
        for i, value in enumerate(values)
    ]


def found(ratings: Any) -> dict[tuple[str, str], dict[str, Any]]:
    rows = rating_rewording(ratings=ratings).to_dicts()
    return {(row["statistic"].removeprefix("rating_"), row["subgroup"]): row for row in rows}


def test_docstring_example(make_ratings: Make) -> None:
    rows = found(make_ratings(rows_of(ARMS)))
    values = {key: (row["estimate"], row["n"]) for key, row in rows.items()}
    assert values == {
        ("rewording_shift", ""): (pytest.approx(1 / 3), 6),
        ("rewording_shift", "one"): (pytest.approx(1), 3),
        ("rewording_shift", "two"): (pytest.approx(-1 / 3), 3),
        ("rewording_change", ""): (pytest.approx(2 / 3), 6),
        ("rewording_change", "one"): (pytest.approx(1), 3),
        ("rewording_change", "two"): (pytest.approx(1 / 3), 3),
        ("repeat_change", ""): (pytest.approx(1 / 3), 3),
        ("rewording_excess", ""): (pytest.approx(1 / 3), 3),
    }
    assert {row["unit"] for row in rows.values()} == {"points"}
    assert {row["perturbation"] for row in rows.values()} == {None}
    # Six ratings are of three questions.
    assert rows["rewording_change", ""]["clusters"] == 3
    # A paired t test of the shifts of variant one.
    test = stats.ttest_1samp([1, 0, 2], 0)
    one = rows["rewording_shift", "one"]
    assert (one["low"], one["high"]) == pytest.approx(test.confidence_interval())
    assert one["p_value"] == pytest.approx(test.pvalue)
    # The same of the excess by answer, 1/2, 1/2 - 1 and 1.
    test = stats.ttest_1samp([0.5, -0.5, 1], 0)
    excess = rows["rewording_excess", ""]
    assert excess["p_value"] == pytest.approx(test.pvalue)
    assert (excess["null_value"], excess["floor"]) == (0.0, "replicate")


def test_unreadable_ratings_are_dropped_and_counted(make_ratings: Make) -> None:
    rows = found(make_ratings(rows_of(ARMS | {"control": [4, None, 8]})))
    change = rows["rewording_change", "one"]
    assert (change["estimate"], change["n"], change["dropped"]) == (pytest.approx(1.5), 2, 1)
    excess = rows["rewording_excess", ""]
    assert (excess["estimate"], excess["n"], excess["dropped"]) == (pytest.approx(0.75), 2, 1)


def test_passes_change_in_shares(make_ratings: Make) -> None:
    arms: dict[str, list[Any]] = {"control": [1.0, 0.0], "one": [0.0, 0.0], "replicate": [1.0, 0.0]}
    rows = found(make_ratings(rows_of(arms, kind="label")))
    assert rows["rewording_shift", "one"]["estimate"] == pytest.approx(-0.5)
    assert rows["rewording_excess", ""]["estimate"] == pytest.approx(0.5)
    assert {row["unit"] for row in rows.values()} == {"share"}


def test_without_other_words_there_is_no_row(make_ratings: Make) -> None:
    arms = {name: ARMS[name] for name in ("control", "replicate")}
    assert found(make_ratings(rows_of(arms))) == {}


def test_other_statistics_do_not_see_other_words(make_ratings: Make) -> None:
    arms: dict[str, list[Any]] = {
        "control": [4, 6, 8, 5] * 4,
        "experimental": [5, 7, 8, 4] * 4,
        "replicate": [4, 7, 8, 5] * 4,
    }
    both = []
    for more in ({}, {"one": [1, 10, None, 1] * 4}):
        ratings = make_ratings(rows_of(arms | more, human_value=5.0, category="sums"))
        rows = [
            entry.draft(ratings=ratings)
            for name, entry in STATISTICS.items()
            if name != "rating_rewording" and entry.reads == ("ratings",)
        ]
        both.append(pl.concat(rows))
    assert both[0].height == 15
    assert both[0].equals(both[1])
