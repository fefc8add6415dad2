from collections.abc import Callable
from typing import Any

import pytest
from scipy import stats

from tasks.statistics.rating_bias import rating_bias

Make = Callable[..., Any]


def test_the_difference_from_people(make_ratings: Make) -> None:
    people = [6, 8, 3, 40, None]
    given = [
        {"sample": f"s{i}", "value": v, "human_value": h}
        for i, (v, h) in enumerate(zip([7, 8, 4, 4, 4], people, strict=True))
    ]
    row, standardised = rating_bias(ratings=make_ratings(given)).to_dicts()
    low, high = stats.ttest_1samp([1, 0, 1], 0).confidence_interval()
    assert (row["estimate"], row["low"], row["high"]) == pytest.approx((2 / 3, low, high))
    # A grade of 40 is on another scale; nobody graded the last.
    assert (row["n"], row["dropped"], row["unit"]) == (3, 2, "points")
    # The deviation of 7, 8 and 4 is 1.6997.
    assert (standardised["estimate"], standardised["n"]) == (pytest.approx(0.39223, abs=1e-5), 3)
    assert (standardised["statistic"], standardised["unit"]) == ("rating_bias_sd", "sd")


def test_passes_are_compared_as_rates(make_ratings: Make) -> None:
    given = [
        {"sample": f"s{i}", "value": v, "human_value": h}
        for i, (v, h) in enumerate([(1, 1), (1, 0), (0, 0), (1, 0)])
    ]
    (row,) = rating_bias(ratings=make_ratings(given, kind="label")).to_dicts()
    assert row["estimate"] == pytest.approx(0.5)
    # As of any pass rates that are compared; the tests of rating_shift have its numbers.
    assert row["method"] == "cluster-adjusted Tango"


def test_grades_of_people_are_no_verdicts(make_ratings: Make) -> None:
    given = [{"sample": f"s{i}", "value": 1, "human_value": h} for i, h in enumerate([1, 4, 2])]
    assert rating_bias(ratings=make_ratings(given, kind="label")).is_empty()


def test_nothing_without_people(make_ratings: Make) -> None:
    assert rating_bias(ratings=make_ratings([{"sample": "a", "value": 3}])).is_empty()
    assert rating_bias(ratings=make_ratings([])).is_empty()
