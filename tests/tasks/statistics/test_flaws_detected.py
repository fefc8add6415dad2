from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tasks.inference.intervals import tango
from tasks.statistics.flaws_detected import flaws_detected

Make = Callable[..., Any]


def ratings(make: Make, base: list[float], flawed: list[float], **more: Any) -> Any:
    rows = [
        {"sample": f"s{i}", "arm": arm, "value": value}
        for arm, values in (("control", base), ("sham", base), ("experimental", flawed))
        for i, value in enumerate(values)
    ]
    return make(
        [{**r, "perturbation_kind": None if r["arm"] == "control" else "detract"} for r in rows],
        **more,
    )


@pytest.mark.parametrize(
    ("base", "flawed", "more", "expected"),
    [
        ([8, 7, 5, 1], [5, 7, 6, 1], {}, 0.0),
        ([8, 7, 5, 1], [5, 6, 4, 1], {}, 1.0),
        ([1, 1, 1, 0], [0, 0, 1, 0], {"kind": "label"}, 2 / 3),
        ([1, 1, 0, 0], [1, 1, 1, 1], {"kind": "label"}, -1.0),
    ],
)
def test_falls_beyond_rises(
    make_ratings: Make,
    base: list[float],
    flawed: list[float],
    more: dict[str, Any],
    expected: float,
) -> None:
    row = flaws_detected(ratings=ratings(make_ratings, base, flawed, **more)).to_dicts()[0]
    assert (row["estimate"], row["n"]) == (pytest.approx(expected), 4)
    assert row["kind"] == "detract"


def test_the_interval_is_the_score_interval_of_falls_and_rises(make_ratings: Make) -> None:
    # Of 31 grades 27 fall and 3 rise.
    flawed = [4.0] * 27 + [6.0] * 3 + [5.0]
    row = flaws_detected(ratings=ratings(make_ratings, [5.0] * 31, flawed)).to_dicts()[0]
    quantile = stats.t(30).ppf(0.975) / stats.norm.ppf(0.975)
    # Effective size: the variance of single answers over that of t is 30; times (z / t)^2.
    ends = tango(*(np.array([value]) for value in (27 / 31, 3 / 31, 30 / quantile**2)))
    assert row["estimate"] == pytest.approx(24 / 31)
    assert (row["low"], row["high"]) == pytest.approx([end.item() for end in ends])


def test_more_rises_from_the_lowest_grade_than_grades_that_could_fall(make_ratings: Make) -> None:
    # One of two falls, and five of six that could not fall rise: shares of no whole, so t.
    base, flawed = [1.0] * 2 + [0.0] * 6, [0.0, 1.0] + [1.0] * 5 + [0.0]
    row = flaws_detected(ratings=ratings(make_ratings, base, flawed, kind="label")).to_dicts()[0]
    assert row["estimate"] == pytest.approx(-2)
    assert row["method"] == "cluster linearisation, t"
    assert row["low"] <= row["high"]


def test_promote_kinds_have_no_flaws(make_ratings: Make) -> None:
    rows = [
        {"sample": "a", "arm": arm, "value": 5.0} for arm in ("control", "sham", "experimental")
    ]
    assert flaws_detected(ratings=make_ratings(rows)).is_empty()
    assert flaws_detected(ratings=make_ratings([])).is_empty()
