"""How labels are read: verdicts, grades or names, by what people gave."""

import json
from typing import Any

import polars as pl
import pytest

from tasks.agreement.label_kinds import Declared, LabelReading, reading_of, values_of


def texts(*labels: Any) -> pl.Series:
    return pl.Series([json.dumps(label) for label in labels], dtype=pl.String)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (("pass", "FAIL "), "pass_fail"),
        ((True, False), "pass_fail"),
        (("1", "0"), "pass_fail"),
        ((1.0, 0.0), "pass_fail"),
        (("Yes",), "pass_fail"),
        ((1, 2), "grade"),
        (("4.5", 3), "grade"),
        (("bug", "pass"), "name"),
        ((1, "n/a"), "name"),
        ((), "name"),
    ],
)
def test_people_decide_the_kind(labels: tuple[Any, ...], kind: str) -> None:
    assert reading_of(texts(*labels)).kind == kind


def test_a_scale_makes_grades_of_0_and_1() -> None:
    assert reading_of(texts(0, 1), Declared(scale=(0.0, 1.0))) == LabelReading(
        "grade", None, 0.0, 1.0
    )


def test_values() -> None:
    found = values_of(texts("Pass", "error", "0", 1), LabelReading("pass_fail"))
    assert {label: value for label, _, value in found.rows()} == {
        '"Pass"': 1.0,
        '"error"': None,
        '"0"': 0.0,
        "1": 1.0,
    }
    grades = values_of(texts("3.0", 3, 11, "[[7]]", True), LabelReading("grade", None, 1.0, 10.0))
    assert {label: word for label, word, _ in grades.rows()} == {
        '"3.0"': "3",
        "3": "3",
        "11": None,
        '"[[7]]"': None,
        "true": None,
    }
