"""Several people's labels of an item: combined, and each against the others."""

import random
from collections import Counter
from itertools import groupby

import polars as pl
import pytest

from tasks.agreement.combine import combined, left_out

Label = tuple[str, str, str, float | None]


def labels(*rows: Label) -> pl.DataFrame:
    schema = {"item": pl.String, "annotator": pl.String, "word": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_the_majority_and_ties() -> None:
    people = labels(
        *(
            ("i1", who, word, None)
            for who, word in zip("ABC", ("pass", "pass", "fail"), strict=True)
        ),
        *(("i2", who, word, None) for who, word in zip("AB", ("pass", "fail"), strict=True)),
        ("i3", "A", "fail", None),
    )
    found = combined(people).select("item", "word", "people", "share", "tied").rows()
    assert found == [
        ("i1", "pass", 3, pytest.approx(2 / 3), False),
        ("i2", None, 2, 0.5, True),
        ("i3", "fail", 1, 1.0, False),
    ]


def test_grades_are_averaged_and_named_by_the_nearest_grade() -> None:
    people = labels(
        *(("i1", who, str(v), float(v)) for who, v in zip("ABC", (2, 3, 3), strict=True)),
        *(("i2", who, str(v), float(v)) for who, v in zip("AB", (4, 5), strict=True)),
    )
    scale = pl.DataFrame({"word": ["2", "3", "4", "5"], "value": [2.0, 3.0, 4.0, 5.0]})
    found = combined(people, scale).select("item", "word", "value", "share").rows()
    # of two equally near, the higher
    assert found == [
        ("i1", "3", pytest.approx(8 / 3), pytest.approx(2 / 3)),
        ("i2", "5", 4.5, 0.5),
    ]


def test_each_person_against_the_majority_of_the_others() -> None:
    """Against counting the others' labels of every person one by one."""
    draw = random.Random(1)
    rows: list[Label] = [
        (f"i{item}", f"p{person}", draw.choice("abc"), None)
        for item in range(300)
        for person in range(draw.randint(1, 6))
    ]
    expected = {}
    for item, group in groupby(rows, key=lambda row: row[0]):
        own = list(group)
        for _, who, word, _ in own:
            others = Counter(row[2] for row in own if row[1] != who).most_common(2)
            if others and (len(others) == 1 or others[0][1] > others[1][1]):
                expected[item, who] = word == others[0][0]
    found = {(i, who): agrees for i, who, agrees in left_out(labels(*rows), grades=False).rows()}
    assert len(found) > 500
    assert found == expected


def test_each_person_s_distance_from_the_mean_of_the_others() -> None:
    people = labels(("i", "A", "1", 1.0), ("i", "B", "2", 2.0), ("i", "C", "6", 6.0))
    found = left_out(people, grades=True).sort("annotator")
    assert found["error"].to_list() == [3.0, 1.5, 4.5]
