from collections.abc import Callable
from typing import Any

import pytest

from tasks.conclusions.worst_cases import RATED_WORST, rating_worst_cases

Make = Callable[..., Any]


def ratings(make: Make, lost: int, **more: Any) -> Any:
    given = [
        {"sample": f"s{i}", "arm": arm, "value": None if arm == "experimental" and i < lost else v}
        for arm, v in (("control", 4.0), ("sham", 4.0), ("experimental", 5.0))
        for i in range(20)
    ]
    return make(given, **more)


def test_lost_ratings_are_the_ends_of_the_scale(make_ratings: Make) -> None:
    found = rating_worst_cases(ratings(make_ratings, 10))
    points = found.filter(statistic="rating_shift").select("subgroup", "estimate").rows()
    # Half shift by 1; the others by -3, to the lowest, or by 6, to the highest.
    assert dict(points) == pytest.approx(
        {RATED_WORST["anchor"]: (1 - 3) / 2, RATED_WORST["target"]: (1 + 6) / 2}
    )


def test_no_cell_is_measured_again_without_need(make_ratings: Make) -> None:
    assert rating_worst_cases(ratings(make_ratings, 0)).is_empty()
    assert rating_worst_cases(make_ratings([])).is_empty()


def test_a_scale_that_is_not_declared_has_no_worst_case(make_ratings: Make) -> None:
    found = rating_worst_cases(ratings(make_ratings, 10, lowest=None, highest=None))
    assert found.filter(statistic="rating_shift")["n"].to_list() == [10, 10]
