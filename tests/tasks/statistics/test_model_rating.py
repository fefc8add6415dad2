from collections.abc import Callable
from typing import Any

import pytest
from scipy import stats

from tasks.inference.intervals import wilson
from tasks.statistics.model_rating import model_rating

Make = Callable[..., Any]
AUTHORS = {"target_author": "a", "anchor_author": "b"}


def test_grades_of_both_answers_of_a_question_belong_to_their_authors(make_ratings: Make) -> None:
    # The docstring's example: model b wrote the anchors.
    given = [
        {"sample": "q1", "item": "q1/t", "side": "target", "value": 4.0},
        {"sample": "q2", "item": "q2/t", "side": "target", "value": 6.0},
        {"sample": "q1", "item": "q1/a", "side": "anchor", "value": 9.0},
        {"sample": "q2", "item": "q2/a", "side": "anchor", "value": 5.0},
        {"sample": "q1", "item": "q1/t", "side": "target", "value": 1.0, "arm": "experimental"},
    ]
    made = make_ratings([{**row, **AUTHORS} for row in given], lowest=1.0, highest=10.0)
    found = model_rating(ratings=made)
    rows = {row["subgroup"]: row for row in found.to_dicts()}
    assert {name: (row["estimate"], row["n"]) for name, row in rows.items()} == {
        "a": (pytest.approx(5.0), 2),
        "b": (pytest.approx(7.0), 2),
    }
    assert set(found["statistic"].cast(str)) == {"model_rating"}
    assert set(found["unit"].cast(str)) == {"points"}
    assert all(1 <= row["low"] < row["estimate"] < row["high"] <= 10 for row in rows.values())


def test_pass_rates_of_a_log_without_sides(make_ratings: Make) -> None:
    given = [
        {"sample": f"q{at}", "item": f"q{at}/{model}", "value": float(at < passes)}
        | {"target_author": model, "side": None}
        for model, passes in (("a", 3), ("b", 9))
        for at in range(12)
    ]
    found = model_rating(ratings=make_ratings(given, kind="label"))
    rows = {row["subgroup"]: row for row in found.to_dicts()}
    assert {name: row["estimate"] for name, row in rows.items()} == {"a": 0.25, "b": 0.75}
    # Independent items: Wilson's interval of 11, as the variance has G / (G - 1), times (z / t)^2.
    size = 11 * (stats.norm.ppf(0.975) / stats.t(11).ppf(0.975)) ** 2
    expected = [float(end) for end in wilson(0.25 * size, size)]
    assert [rows["a"]["low"], rows["a"]["high"]] == pytest.approx(expected)


def test_an_item_may_stand_for_the_answers_of_two_models(make_ratings: Make) -> None:
    # A table whose items are questions, graded once more as a replicate.
    given = [
        {"sample": f"q{at}", "value": value, "target_author": model, "repeat": repeat}
        | {"side": None, "arm": arm}
        for at in range(10)
        for repeat, (model, arm, value) in enumerate(
            (("good", "control", 8.5), ("bad", "control", 2.5), ("bad", "replicate", 10.0))
        )
    ]
    found = model_rating(ratings=make_ratings(given))
    rows = dict(found.select("subgroup", "estimate").rows())
    assert rows == pytest.approx({"good": 8.5, "bad": 2.5})
    assert found["n"].to_list() == [10, 10]


def test_the_whole_of_a_rubric_counts_and_people_need_no_author(make_ratings: Make) -> None:
    given = [
        {"sample": "q1", "criterion": name, "weight": weight, "value": value}
        | {"target_author": "a" if who == "ada" else None, "judge": who, "human": who != "ada"}
        for who, grades in (("ada", (4.0, 8.0)), ("Ann", (2.0, 6.0)))
        for name, weight, value in zip(("tone", "facts"), (1.0, 3.0), grades, strict=True)
    ]
    found = model_rating(ratings=make_ratings(given))
    # (4 + 3 x 8) / 4 and (2 + 3 x 6) / 4.
    assert dict(found.select("judge", "estimate").rows()) == pytest.approx({"ada": 7.0, "Ann": 5.0})


def test_without_authors_there_are_no_rows(make_ratings: Make) -> None:
    assert model_rating(ratings=make_ratings([{"sample": "q1", "value": 4.0}])).is_empty()
    assert model_rating(ratings=make_ratings([])).is_empty()
