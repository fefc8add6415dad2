from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tasks.inference.intervals import wilson
from tasks.statistics.mean_rating import mean_rating

Make = Callable[..., Any]
Rows = dict[tuple[str, str], dict[str, Any]]


def rows(ratings: Any) -> Rows:
    return {(r["statistic"], r["subgroup"]): r for r in mean_rating(ratings=ratings).to_dicts()}


def test_repeats_are_averaged_and_unreadable_ratings_are_no_fails(make_ratings: Make) -> None:
    # The docstring's example, and an answer without any valid rating.
    given = [
        {"sample": "a", "value": 4.0},
        {"sample": "a", "value": 6.0, "repeat": 1},
        {"sample": "b", "value": 9.0},
        {"sample": "b", "value": None, "repeat": 1},
        {"sample": "c", "value": None},
        {"sample": "a", "value": 1.0, "arm": "experimental"},
    ]
    found = rows(make_ratings(given, passes_at=6.0))
    assert {k: r["estimate"] for k, r in found.items()} == pytest.approx(
        {("mean_rating", ""): 7.0, ("pass_rate", ""): 0.75}
    )
    row = found["mean_rating", ""]
    assert (row["unit"], row["n"], row["clusters"], row["dropped"]) == ("points", 2, 2, 1)
    assert row["low"] < 7 < row["high"] <= 10


def test_the_whole_of_a_rubric_is_the_weighted_mean_of_its_criteria(make_ratings: Make) -> None:
    parts = {"style": (1.0, [2, 4, None]), "truth": (3.0, [6, 8, 9])}
    given = [
        {"sample": f"s{i}", "criterion": name, "weight": weight, "value": value}
        for name, (weight, values) in parts.items()
        for i, value in enumerate(values)
    ]
    found = rows(make_ratings(given))
    # (2 + 3 x 6) / 4 = 5 and (4 + 3 x 8) / 4 = 7; the third ballot has no style.
    assert {k[1]: (r["estimate"], r["n"]) for k, r in found.items()} == {
        "": (pytest.approx(6.0), 2),
        "style": (pytest.approx(3.0), 2),
        "truth": (pytest.approx(23 / 3), 3),
    }


def test_the_whole_of_criteria_on_different_scales_is_a_share(make_ratings: Make) -> None:
    parts = {"tone": (1.0, 5.0, [1, 3, 5]), "facts": (3.0, 101.0, [101, 51, 1])}
    given = [
        {
            "sample": f"s{i}",
            "criterion": name,
            "weight": weight,
            "value": value,
            "lowest": 1.0,
            "highest": highest,
        }
        for name, (weight, highest, values) in parts.items()
        for i, value in enumerate(values)
    ]
    # As shares: tone 0, .5, 1 and facts 1, .5, 0. The wholes are .75, .5 and .25.
    found = rows(make_ratings(given))
    assert {k[1]: r["estimate"] for k, r in found.items()} == pytest.approx(
        {"": 0.5, "tone": 3.0, "facts": 51.0}
    )
    lost = [{**given[0], "value": None}, *given[1:]]
    whole = rows(make_ratings(lost))["mean_rating", ""]
    assert (whole["estimate"], whole["n"]) == (pytest.approx(0.375), 2)


def test_a_rubric_of_which_one_criterion_is_never_read_has_no_whole(make_ratings: Make) -> None:
    given = [
        {"sample": f"s{i}", "criterion": name, "weight": 1.0, "value": value}
        for name, values in {"style": [None, None], "truth": [6, 8]}.items()
        for i, value in enumerate(values)
    ]
    found = rows(make_ratings(given))
    assert found["mean_rating", "truth"]["estimate"] == pytest.approx(7.0)
    assert found.get(("mean_rating", ""), {"estimate": None})["estimate"] is None


def test_criteria_of_a_log_are_not_mixed(make_ratings: Make) -> None:
    given = [
        {"sample": "a", "item": "a", "criterion": c, "value": v} for c, v in (("x", 2), ("y", 9))
    ]
    found = rows(make_ratings([{**row, "sample": "a"} for row in given]).with_columns(sample=None))
    assert {k[1] for k in found} == {"x", "y"}


def test_a_pass_rate_of_one_vote_each_has_wilsons_interval(make_ratings: Make) -> None:
    given = [{"sample": f"s{i}", "value": float(i < 7)} for i in range(10)]
    found = rows(make_ratings(given, kind="label"))
    assert set(found) == {("pass_rate", "")}
    row = found["pass_rate", ""]
    assert row["estimate"] == pytest.approx(0.7)
    # The effective size counts the t quantile with 9 degrees of freedom (2.2622) against 1.96,
    # and the n - 1 of the variance: 10 * (9 / 10) * (1.95996 / 2.26216)^2.
    low, high = (float(end) for end in wilson(0.7 * 6.7560, 6.7560))
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=2e-4)


def test_equal_grades_have_an_interval_on_a_declared_scale_only(make_ratings: Make) -> None:
    given = [{"sample": f"s{i}", "value": 10.0} for i in range(20)]
    row = rows(make_ratings(given))["mean_rating", ""]
    assert (row["estimate"], row["high"]) == (10.0, 10.0)
    assert 8 < row["low"] < 9
    row = rows(make_ratings(given, lowest=None, highest=None))["mean_rating", ""]
    assert (row["estimate"], row["low"]) == (10.0, None)
    assert row["reason"] == ("all ratings are equal and the scale is not declared: no interval")


def test_verdicts_and_names_are_left_out(make_ratings: Make) -> None:
    verdict = {"sample": "a", "value": 1.0, "kind": "verdict", "label": "target"}
    assert mean_rating(ratings=make_ratings([verdict])).is_empty()
    named = make_ratings([{"sample": "a", "value": None, "kind": "label"}])
    assert mean_rating(ratings=named).is_empty()
    assert mean_rating(ratings=make_ratings([])).is_empty()


def test_a_hundred_answers_have_the_interval_of_a_mean(make_ratings: Make) -> None:
    random = np.random.default_rng(5)
    grades = random.integers(3, 9, 200).astype(float)
    given = [{"sample": f"s{i}", "value": g} for i, g in enumerate(grades)]
    row = rows(make_ratings(given))["mean_rating", ""]
    half = 1.972 * grades.std(ddof=1) / np.sqrt(200)
    assert row["estimate"] == pytest.approx(grades.mean())
    assert (row["low"], row["high"]) == pytest.approx(
        (grades.mean() - half, grades.mean() + half), abs=0.01
    )
