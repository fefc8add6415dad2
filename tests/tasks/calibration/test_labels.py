import json
from typing import Any

import pytest

from tasks.calibration.label_values import read_labels


@pytest.mark.parametrize(
    ("label", "text", "number", "names"),
    [
        ("a", "a", None, {"a"}),
        ("3", "3", 3.0, {"3"}),
        (3, "3", 3.0, {"3"}),
        (3.0, "3", 3.0, {"3"}),
        ("3.0", "3", 3.0, {"3"}),
        ("1.10", "1.10", 1.1, {"1.10"}),
        (-0.5, "-0.5", -0.5, {"-0.5"}),
        (" 1e3 ", " 1e3 ", 1000.0, {" 1e3 "}),
        ("1_000", "1_000", None, {"1_000"}),
        ("inf", "inf", None, {"inf"}),
        (True, "true", None, {"true"}),
        (10**400, str(10**400), None, {str(10**400)}),
        (["b", "a", "b"], {"a", "b"}, None, {"a", "b"}),
        ([], set(), None, set()),
        ([["a"]], None, None, None),
        ({}, None, None, None),
        ("=1+1", "=1+1", None, {"=1+1"}),
    ],
)
def test_by_hand(label: Any, text: Any, number: Any, names: Any) -> None:
    assert read_labels("text", [label]) == [text]
    assert read_labels("number", [label]) == [number]
    assert read_labels("set", [label]) == [names]


def test_flags_per_label_are_sets_of_their_places() -> None:
    # a set repeats nothing, so [0, 1, 1] is none
    assert read_labels("set", [[0, 1, 1], ["0", "0", "0"]]) == [{"1", "2"}, set()]
    assert read_labels("set", [[0, 1, 1], "1"]) == [{"1", "2"}, None]
    assert read_labels("text", [[0, 1, 1], [1, 0, 0]]) == [{"1", "2"}, {"0"}]
    # without repetition they are names
    assert read_labels("set", [[0, 1], [1]]) == [{"0", "1"}, {"1"}]
    # what is none among flags cannot be read
    assert read_labels("set", [[0, 1, 1], [0, 2, 1], [1, 1, 0], [1, 0]]) == [
        {"1", "2"},
        None,
        {"0", "1"},
        None,
    ]
    # as sets of names, all pairs would be one
    assert read_labels("set", [[0, 1], [1, 0]]) == [{"1"}, {"0"}]
    with pytest.raises(ValueError, match="2 other lists hold something else"):
        read_labels("set", [[0, 1, 1], ["polite"], ["polite", "short"]])
    with pytest.raises(ValueError, match=r"their lengths differ \(2 to 3\)"):
        read_labels("set", [[0, 1, 1], [1, 1]])


def test_for_functions_they_stay_what_they_are() -> None:
    values = read_labels("any", ["a", 1, 2.5, ["b", 1]])
    assert values[:3] == ["a", 1, 2.5]
    assert json.loads(values[3].json) == ["b", 1]  # type: ignore[union-attr]
