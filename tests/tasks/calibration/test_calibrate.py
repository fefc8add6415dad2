import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tasks.calibration.calibrate import (
    Terms,
    annotations_of,
    labelled_by_files,
    labelled_by_votes,
    try_judges,
    why_none_is_tested,
)
from tasks.calibration.label_values import ListLabel, as_word
from tasks.calibration.similarity import find_metric
from tasks.kit.stage import _plain

Make = Callable[..., pl.DataFrame]


def frame(labels: dict[str, dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"annotator": who, "item": item, "label": None if x is None else json.dumps(x)}
            for who, own in labels.items()
            for item, x in (own or {None: None}).items()
        ],
        schema=dict.fromkeys(("annotator", "item", "label"), pl.String),
    )


def tell(labels: str) -> dict[str, str]:
    return {f"i{number:02}": label for number, label in enumerate(labels)}


HUMANS = {who: tell("ab" * 20) for who in ("Ann", "Bob", "Cid")}


def test_a_trial_has_the_epsilon_asked_for_and_the_curve() -> None:
    labelled = labelled_by_files("mine", frame(HUMANS), frame({"ada": tell("ab" * 20)}))
    trial = try_judges(labelled, Terms(epsilon=0.12))
    assert trial.judges["epsilon"].to_list() == [0, 0.05, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3]
    assert trial.judges.filter("asked")["epsilon"].to_list() == [0.12]
    row = trial.judges.filter("asked").to_dicts()[0]
    assert (row["dataset"], row["judge"], row["prompt"], row["wave"]) == ("mine", "ada", "none", "")
    assert (row["winning_rate"], row["advantage_probability"], row["n"]) == (1, 1, 40)
    assert row["method"] == "cluster-adjusted Wilson"
    each = trial.annotators.filter("asked")
    assert each["annotator"].to_list() == ["Ann", "Bob", "Cid"]
    assert each["rejected"].to_list() == [True] * 3
    # three hypotheses with one p: times 3 (1 + 1/2 + 1/3) / 3
    for one in each.to_dicts():
        assert one["p_adjusted"] == pytest.approx(one["p_value"] * 11 / 6)


@pytest.mark.parametrize(
    ("whole", "metric", "advantage"),
    # 2.67 counts as 3: the judge agrees like each person does. As they are, no mean agrees, and
    # each misses people's grade by 1/3 more than a person does.
    [((None,), "accuracy", 1), ((), "accuracy", 0), ((None,), "neg_rmse", 0)],
)
def test_means_of_repeated_whole_grades(
    whole: tuple[None, ...], metric: str, advantage: float
) -> None:
    people = frame({who: dict.fromkeys(tell("a" * 40), 3) for who in ("Ann", "Bob", "Cid")})
    judge = frame({"ada": dict.fromkeys(tell("a" * 40), 8 / 3)})
    labelled = labelled_by_files("mine", people, judge)._replace(whole=whole)
    asked = try_judges(labelled, Terms(metric=metric)).judges.filter("asked")
    assert asked["advantage_probability"].to_list() == [advantage]
    words = annotations_of(labelled, metric).filter(~pl.col("human"))["label"].unique().to_list()
    assert words == ["3" if advantage else "2.6666666666666665"]


def test_a_judge_without_labels_is_reported() -> None:
    labelled = labelled_by_files("mine", frame(HUMANS), frame({"mute": {}}))
    (row,) = try_judges(labelled, Terms()).judges.filter("asked").to_dicts()
    assert (row["winning_rate"], row["low"], row["level"]) == (None, None, None)
    assert row["method"] == "none"
    assert row["reason"] == "the judge gave no valid label"


def test_annotations_are_what_can_be_read() -> None:
    humans = {"Ann": {"1": "a", "2": 3.0, "3": None}, "Bob": {"1": ["b", "a", "b"], "2": "["}}
    labelled = labelled_by_files("mine", frame(humans), frame({"ada": {"1": 1}, "mute": {}}))
    found = annotations_of(labelled, "accuracy")
    assert found.select("annotator", "item", "cluster", "label", "human", "prompt").rows() == [
        ("Ann", "1", "1", "a", True, None),
        ("Bob", "1", "1", '["a", "b"]', True, None),
        ("ada", "1", "1", "1", False, "none"),
        ("Ann", "2", "2", "3", True, None),
        ("Bob", "2", "2", '"["', True, None),
    ]
    numbers = annotations_of(labelled, "neg_rmse")
    assert numbers.select("annotator", "label", "value").rows() == [
        ("ada", "1", 1),
        ("Ann", "3", 3),
    ]
    assert find_metric("neg_rmse").labels == "number"


@pytest.mark.parametrize(
    ("label", "word"),
    [
        ("a", "a"),
        ("", ""),
        (frozenset("ba"), '["a", "b"]'),
        (frozenset(), "[]"),
        ('["a"]', '"[\\"a\\"]"'),
        ('"a"', '"\\"a\\""'),
        (3.0, "3"),
        (0.25, "0.25"),
        (ListLabel("[1]"), "[1]"),
        (True, "true"),
        (None, None),
    ],
)
def test_labels_as_words_stay_apart(label: Any, word: str | None) -> None:
    assert as_word(label) == word


def test_votes_are_labels_with_clusters(make_annotations: Make) -> None:
    rows = [
        {"annotator": who, "item": f"s{i}", "cluster": f"q{i // 2}", "label": label, **more}
        for i, label in enumerate(("anchor", "tie", "target", "target"))
        for who, more in (("Ann", {}), ("Bob", {}), ("ada", {}), ("ada", {"prompt": "other"}))
    ]
    rows.append({"annotator": "Ann", "item": "s0", "label": "x", "aspect": "tone"})
    (labelled,) = labelled_by_votes(make_annotations(rows), "accuracy")
    assert labelled.dataset == "demo"
    assert labelled.who.select("name", "judge", "prompt").rows() == [
        ("ada / other", "ada", "other"),
        ("ada / plain", "ada", "plain"),
    ]
    assert labelled.humans.height == 8
    assert labelled.items["cluster"].to_list() == ["q0", "q0", "q1", "q1"]
    trial = try_judges(labelled, Terms(least=1))
    assert trial.judges.filter("asked")["prompt"].to_list() == ["other", "plain"]
    back = annotations_of(labelled, "accuracy")
    assert back["cluster"].unique().sort().to_list() == ["q0", "q1"]
    (numbers,) = labelled_by_votes(make_annotations(rows), "neg_rmse")
    assert numbers.humans["label"].unique().sort().to_list() == ["-1.0", "0.0", "1.0"]


def test_saved_labels_are_read_back(make_annotations: Make) -> None:
    rows = [
        {"annotator": "Ann", "item": "1", "label": '["a", "b"]'},
        {"annotator": "Ann", "item": "2", "label": '"[\\"a\\"]"'},
        {"annotator": "ada", "item": "1", "label": "a"},
    ]
    (labelled,) = labelled_by_votes(make_annotations(rows), "accuracy")
    assert labelled.humans["label"].to_list() == ['["a", "b"]', '"[\\"a\\"]"']
    again = annotations_of(labelled, "accuracy").sort("annotator", "item")
    assert again["label"].to_list() == ['["a", "b"]', '"[\\"a\\"]"', "a"]


def test_a_name_is_of_a_person_or_of_a_judge() -> None:
    with pytest.raises(ValueError, match="'Ann' is the name of a person and of a judge"):
        labelled_by_files("mine", frame(HUMANS), frame({"Ann": tell("ab")}))


def test_labels_can_be_a_key_of_the_cache() -> None:
    one = labelled_by_files("mine", frame(HUMANS), frame({"ada": tell("ab")}))
    two = labelled_by_files("mine", frame(HUMANS), frame({"ada": tell("ba")}))
    assert _plain(one) == _plain(one._replace(humans=one.humans.clone()))
    assert _plain(one) != _plain(two)
    assert _plain(Terms()) != _plain(Terms(digest="x"))


@pytest.mark.parametrize(
    ("shared", "why"),
    [
        (40, ""),
        (20, "no annotator has 30 instances with labels of a judge and of another person"),
        (0, "no item has labels of a judge and of two people (40 items have labels of a judge and"),
    ],
)
def test_why_no_judge_is_tested(shared: int, why: str) -> None:
    labels = tell("ab" * 20)
    own = dict(list(labels.items())[:shared])
    humans = {"Ann": labels, "Bob": own or tell("ab" * 30)}
    if not shared:
        humans["Bob"] = {item: label for item, label in humans["Bob"].items() if item not in labels}
    labelled = labelled_by_files("mine", frame(humans), frame({"ada": labels}))
    said = why_none_is_tested([labelled], [try_judges(labelled, Terms())], Terms())
    assert said.startswith(why)
    assert bool(said) == bool(why)
