"""Labels of people and judges from ratings of single answers."""

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tasks.calibration.rated_labels import PEOPLE, labels_of_ratings

Make = Callable[..., Any]


def said(frame: pl.DataFrame) -> dict[str, Any]:
    return {item: json.loads(label) for item, label in frame["item", "label"].rows()}


def test_verdicts_are_those_of_the_majority_of_repeats(make_ratings: Make) -> None:
    given = {"s1": [1, 1, 0], "s2": [0, 0, 1], "s3": [1, 0], "s4": [None, None], "s5": [None, 1]}
    people = {"s1": 1.0, "s2": 1.0, "s3": 0.0, "s4": 1.0}
    rows = [
        {"sample": s, "value": value, "repeat": at, "kind": "label", "human_value": people.get(s)}
        for s, values in given.items()
        for at, value in enumerate(values)
    ]
    other_arm = {"sample": "s1", "value": 0, "kind": "label", "arm": "experimental"}
    (found,) = labels_of_ratings(make_ratings([*rows, other_arm]))
    assert said(found.humans) == {"s1": "pass", "s2": "pass", "s3": "fail", "s4": "pass"}
    assert {*found.humans["annotator"]} == {PEOPLE}
    # Tied and unread ones are labels of no kind, and say why.
    assert said(found.judges) == {
        "s1": "pass",
        "s2": "fail",
        "s3": {"unreadable": "repeats tie"},
        "s4": {"unreadable": "no rating"},
        "s5": "pass",
    }


def test_a_label_none_of_whose_ratings_was_read_says_why(make_ratings: Make) -> None:
    rows = [
        {"sample": "s1", "value": None, "invalid": "off the scale", "human_value": 4.0},
        {"sample": "s1", "value": None, "invalid": "refused", "repeat": 1, "human_value": 4.0},
        {"sample": "s2", "value": 3.0, "human_value": 3.0},
    ]
    (found,) = labels_of_ratings(make_ratings(rows))
    assert said(found.judges) == {"s1": {"unreadable": "off the scale"}, "s2": 3.0}


def test_people_who_gave_grades_beside_verdicts_keep_them(make_ratings: Make) -> None:
    rows = [
        {"sample": f"s{at}", "value": 1, "kind": "label", "human_value": grade}
        for at, grade in enumerate([1.0, 4.0])
    ]
    (found,) = labels_of_ratings(make_ratings(rows))
    assert said(found.humans) == {"s0": 1.0, "s1": 4.0}
    assert said(found.judges) == {"s0": "pass", "s1": "pass"}


def test_grades_are_means_and_anchors_are_left_out(make_ratings: Make) -> None:
    rows = [
        {"sample": "s1", "value": 4.0, "human_value": 5.0},
        {"sample": "s1", "value": 7.0, "repeat": 1, "human_value": 5.0},
        {"sample": "s1", "value": 9.0, "side": "anchor"},
    ]
    (found,) = labels_of_ratings(make_ratings(rows))
    assert said(found.judges) == {"s1": 5.5}
    assert said(found.humans) == {"s1": 5.0}
    assert found.whole == (None,)
    for part in ({"value": 4.5}, {"human_value": 4.5}):
        (found,) = labels_of_ratings(make_ratings([rows[0] | part]))
        assert found.whole == ()


def test_the_chance_of_a_label_is_that_of_the_data(make_ratings: Make) -> None:
    rows = [
        {"sample": "s1", "value": 4.0, "human_value": 5.0, "label_chance": 0.5},
        {"sample": "s2", "value": 7.0, "label_chance": 0.2},
    ]
    ratings = make_ratings(rows)
    (found,) = labels_of_ratings(ratings)
    assert found.items.select("item", "label_chance").rows() == [("s1", 0.5), ("s2", 0.2)]
    people = pl.DataFrame({"annotator": ["ann"], "item": ["s1"], "label": ["5"]})
    (found,) = labels_of_ratings(ratings, people)
    assert found.items["label_chance"].to_list() == [None, None]


def test_chosen_labels_are_a_set(make_ratings: Make) -> None:
    rows = [
        {"sample": s, "criterion": name, "value": value, "kind": "label", "human_value": human}
        for s, name, value, human in [
            ("s1", "rude", 1, 1.0),
            ("s1", 'a "quoted"', 1, 0.0),
            ("s2", "rude", 0, 0.0),
            ("s2", 'a "quoted"', 0, 1.0),
        ]
    ]
    (found,) = labels_of_ratings(make_ratings(rows))
    assert said(found.judges) == {"s1": ['a "quoted"', "rude"], "s2": []}
    assert said(found.humans) == {"s1": ["rude"], "s2": ['a "quoted"']}
    assert found.items["criterion"].null_count() == found.items.height == 2


def test_each_criterion_of_a_rubric_has_its_own_labels(make_ratings: Make) -> None:
    rows = [
        {"sample": "s1", "criterion": name, "value": value, "human_value": 3.0}
        for name, value in {"clear": 2.0, "true": 4.0}.items()
    ]
    (found,) = labels_of_ratings(make_ratings(rows))
    assert found.judges.sort("criterion")["criterion", "label"].rows() == [
        ("clear", "2.0"),
        ("true", "4.0"),
    ]


def test_several_prompts_are_several_datasets(make_ratings: Make) -> None:
    rows = [{"sample": "s1", "value": 4.0, "prompt": name} for name in ("one", "two")]
    assert [each.dataset for each in labels_of_ratings(make_ratings(rows))] == [
        "demo: one",
        "demo: two",
    ]


def labels(item: str) -> pl.DataFrame:
    rows = {"annotator": ["ann"], "item": [item], "label": ['["rude"]']}
    return pl.DataFrame(rows)


@pytest.mark.parametrize("name", ["demo/q1/a2", "demo/q1", "q1"])
def test_people_may_name_an_answer_by_its_question(make_ratings: Make, name: str) -> None:
    ratings = make_ratings([{"sample": "demo/q1/a2", "value": 4.0}])
    (found,) = labels_of_ratings(ratings, labels(name))
    assert said(found.humans) == {"demo/q1/a2": ["rude"]}


def test_labels_of_other_items_are_an_error(make_ratings: Make) -> None:
    ratings = make_ratings([{"sample": "demo/q1/a2", "value": 4.0}])
    with pytest.raises(ValueError, match=r"no label of people is about an answer .* such as .q9"):
        labels_of_ratings(ratings, labels("q9"))


def test_grades_that_are_all_0_or_1_take_the_majority(make_ratings: Make) -> None:
    given = {"s1": [1, 1, 0], "s2": [0, 0, 1], "s3": [1, 0]}
    rows = [
        {"sample": s, "value": value, "repeat": at, "human_value": 1.0}
        for s, values in given.items()
        for at, value in enumerate(values)
    ]
    (found,) = labels_of_ratings(make_ratings(rows))
    tie = {"unreadable": "repeats tie"}
    assert said(found.judges) == {"s1": 1, "s2": 0, "s3": tie}
    # Beside grades of people they are grades.
    (found,) = labels_of_ratings(make_ratings([row | {"human_value": 0.4} for row in rows]))
    assert said(found.judges) == pytest.approx({"s1": 2 / 3, "s2": 1 / 3, "s3": 0.5})
