from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.near_threshold import near_threshold

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 6, 7, 9], 0.5),
        ([5, 8, 9, 1], 0.0),
        # A tenth of the scale from 1 to 10 is .9.
        ([6.0, 6.2, 7.8, 7.95], 0.5),
        ([6, None, 7, 9], 2 / 3),
    ],
)
def test_grades_that_a_small_change_moves_across(
    make_ratings: Make, values: list[float | None], expected: float
) -> None:
    given = [{"sample": f"s{i}", "value": v} for i, v in enumerate(values)]
    row = near_threshold(ratings=make_ratings(given, passes_at=7.0)).to_dicts()[0]
    assert row["estimate"] == pytest.approx(expected)


def test_without_a_threshold_nothing_is_near(make_ratings: Make) -> None:
    given = [{"sample": "a", "value": 6.0}]
    assert near_threshold(ratings=make_ratings(given)).is_empty()
    assert near_threshold(ratings=make_ratings([])).is_empty()
