from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.rating_attrition import rating_attrition

Make = Callable[..., Any]


def test_lost_shares_by_arm(make_ratings: Make) -> None:
    lost = {("s0", "experimental", 0), ("s1", "sham", 1)}
    given = [
        {"sample": s, "arm": arm, "repeat": r, "value": None if (s, arm, r) in lost else 5}
        for s in ("s0", "s1")
        for arm in ("control", "experimental", "sham")
        for r in range(2)
    ]
    found = rating_attrition(ratings=make_ratings(given)).to_dicts()
    rows = {(r["statistic"], r["subgroup"]): (r["estimate"], r["n"]) for r in found}
    assert rows == {
        ("rating_lost_over_control", ""): (pytest.approx(0.25), 2),
        ("rating_lost_over_sham", ""): (pytest.approx(0.0), 2),
        ("rating_lost_rate", "control"): (0.0, 4),
        ("rating_lost_rate", "experimental"): (0.25, 4),
        ("rating_lost_rate", "sham"): (0.25, 4),
    }


def test_a_criterion_loses_the_whole(make_ratings: Make) -> None:
    given = [
        {"sample": "s0", "arm": arm, "criterion": c, "value": v}
        for arm, c, v in (
            ("control", "x", 4),
            ("control", "y", 4),
            ("experimental", "x", 4),
            ("experimental", "y", None),
        )
    ]
    found = rating_attrition(ratings=make_ratings(given)).to_dicts()
    assert next(r["estimate"] for r in found if r["subgroup"] == "") == 1.0


def test_nothing_without_arms(make_ratings: Make) -> None:
    assert rating_attrition(ratings=make_ratings([])).is_empty()
    assert rating_attrition(ratings=make_ratings([{"sample": "a", "value": 3}])).is_empty()
