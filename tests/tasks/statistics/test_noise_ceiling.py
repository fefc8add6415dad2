from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.noise_ceiling import noise_ceiling

Make = Callable[..., Any]


def rows_of(judge: str, *people: str) -> list[dict[str, Any]]:
    """Make one letter per item: a anchor, t target, = tie; a space is no label."""
    words = {"a": "anchor", "t": "target", "=": "tie"}
    return [
        {"annotator": who, "item": f"i{at:02}", "label": words[letter]}
        for who, text in (("ada", judge), *((f"P{at}", text) for at, text in enumerate(people)))
        for at, letter in enumerate(text)
        if letter != " "
    ]


def measured(make: Make, *texts: str) -> dict[str, dict[str, Any]]:
    found = noise_ceiling(annotations=make(rows_of(*texts))).to_dicts()
    assert {(row["judge"], row["subgroup"]) for row in found} <= {("ada", "humans")}
    return {row["statistic"]: row for row in found}


def test_docstring_example(make_annotations: Make) -> None:
    rows = measured(make_annotations, "ta", "ta", "ta", "a ")
    assert rows["noise_ceiling"]["estimate"] == pytest.approx(2 / 3)
    assert rows["below_ceiling"]["estimate"] == pytest.approx(5 / 6)
    assert rows["ceiling_ratio"]["estimate"] == pytest.approx(5 / 4)
    assert rows["ceiling_ratio"]["n"] == 2
    assert rows["ceiling_ratio"]["low"] <= 5 / 4 <= rows["ceiling_ratio"]["high"]


def test_only_items_with_the_judge_and_two_people_count(make_annotations: Make) -> None:
    # The third item has one person, the fourth no judge.
    rows = measured(make_annotations, "tat ", "tatt", "ta t")
    assert (rows["noise_ceiling"]["n"], rows["noise_ceiling"]["estimate"]) == (2, 1.0)


def test_people_who_never_agree(make_annotations: Make) -> None:
    rows = measured(make_annotations, "tat", "ttt", "aaa")
    assert rows["noise_ceiling"]["estimate"] == 0.0
    assert rows["ceiling_ratio"]["estimate"] is None
    assert rows["ceiling_ratio"]["reason"].startswith("the people never agree")


def test_one_person(make_annotations: Make) -> None:
    rows = measured(make_annotations, "tat", "ttt")
    assert {(row["estimate"], row["n"]) for row in rows.values()} == {(None, 0)}
    assert measured(make_annotations, "tat") == {}
