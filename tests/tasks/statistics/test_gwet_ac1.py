from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.gwet_ac1 import gwet_ac1

Make = Callable[..., Any]


def rows_of(one: str, other: str, **more: str) -> list[dict[str, Any]]:
    people = {"ada": one, "Bob": other, **more}
    return [
        {"annotator": who, "item": f"i{at}", "label": label}
        for who, labels in people.items()
        for at, label in enumerate(labels)
    ]


def test_docstring_example(make_annotations: Make) -> None:
    (row,) = gwet_ac1(annotations=make_annotations(rows_of("a" * 10, "a" * 9 + "b"))).to_dicts()
    assert row["estimate"] == pytest.approx((0.9 - 0.095) / 0.905)
    assert (row["n"], row["subgroup"]) == (10, "Bob")


def test_a_skewed_table_by_hand(make_annotations: Make) -> None:
    # 118 + 5 + 2 + 0 of 125: p_o = .944,
    # pi = (123 + 120) / 250 = .972, p_e = 2 * .972 * .028 = .054432.
    one, other = "a" * 118 + "a" * 5 + "b" * 2, "a" * 118 + "b" * 5 + "a" * 2
    (row,) = gwet_ac1(annotations=make_annotations(rows_of(one, other))).to_dicts()
    assert row["estimate"] == pytest.approx((0.944 - 0.054432) / (1 - 0.054432))
    assert row["low"] < row["estimate"] < row["high"] < 1


def test_labels_of_others_are_labels_too(make_annotations: Make) -> None:
    found = gwet_ac1(annotations=make_annotations(rows_of("aab", "aba", Cid="ccc")))
    row = next(row for row in found.to_dicts() if row["subgroup"] == "Bob")
    # p_o = 1/3, pi = 2/3, 1/3, 0: p_e = (4/9) / 2 = 2/9.
    assert row["estimate"] == pytest.approx((1 / 3 - 2 / 9) / (7 / 9))


def test_one_label_is_null(make_annotations: Make) -> None:
    (row,) = gwet_ac1(annotations=make_annotations(rows_of("aaa", "aaa"))).to_dicts()
    assert (row["estimate"], row["low"], row["n"]) == (None, None, 3)
    assert row["reason"].startswith("one label only")
