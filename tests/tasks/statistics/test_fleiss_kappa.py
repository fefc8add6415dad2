from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as by_statsmodels

from tasks.statistics.fleiss_kappa import fleiss_kappa

Make = Callable[..., Any]


def rows_of(*labels: str) -> list[dict[str, Any]]:
    """Make one text per person; a space is no label."""
    return [
        {"annotator": f"P{who}", "item": f"i{at}", "label": label}
        for who, text in enumerate(labels)
        for at, label in enumerate(text)
        if label != " "
    ]


def test_docstring_example(make_annotations: Make) -> None:
    (row,) = fleiss_kappa(annotations=make_annotations(rows_of("aa", "aa", "ab"))).to_dicts()
    assert row["estimate"] == pytest.approx(-0.2)
    assert (row["judge"], row["subgroup"], row["n"], row["dropped"]) == ("humans", "", 2, 0)


@settings(max_examples=30)
@given(st.lists(st.text("abc ", min_size=3, max_size=3), min_size=1, max_size=20))
def test_against_statsmodels(make_annotations: Make, items: list[str]) -> None:
    rows = rows_of(*("".join(item[who] for item in items) for who in range(3)))
    present = {row["annotator"] for row in rows}
    found = fleiss_kappa(annotations=make_annotations(rows)).to_dicts()
    if len(present) < 2:
        assert found == []
        return
    chosen = [who for who in range(3) if f"P{who}" in present]
    items = ["".join(item[who] for who in chosen) for item in items]
    complete = [item for item in items if " " not in item]
    (row,) = found
    assert row["n"] == len(complete)
    assert row["dropped"] == sum(" " in item and bool(item.strip()) for item in items)
    if len({label for item in complete for label in item}) < 2:
        assert row["estimate"] is None
        assert row["reason"].startswith("one label only" if complete else "nothing qualifies")
        return
    table = np.array([[item.count(label) for label in "abc"] for item in complete])
    assert row["estimate"] == pytest.approx(by_statsmodels(table[:, table.any(axis=0)]), abs=1e-12)


def test_judges_by_prompt(make_annotations: Make) -> None:
    rows = [
        {"annotator": judge, "item": f"i{at}", "label": label, "prompt": prompt}
        for judge, prompt, labels in (
            ("ada", "p", "aabb"),
            ("bea", "p", "abbb"),
            ("cem", "q", "abab"),
        )
        for at, label in enumerate(labels)
    ]
    (row,) = fleiss_kappa(annotations=make_annotations(rows)).to_dicts()
    assert (row["judge"], row["prompt"], row["n"]) == ("judges", "p", 4)
    # P = 3/4; p = 3/8, 5/8: (3/4 - 34/64) / (30/64)
    assert row["estimate"] == pytest.approx(14 / 30)


def test_formulas_are_judges_only_where_all_are(make_annotations: Make) -> None:
    def reported(simulated: str) -> list[tuple[float, bool]]:
        rows = [
            {
                "annotator": judge,
                "item": f"i{at}",
                "label": label,
                "prompt": "p",
                "simulated": judge in simulated.split(),
            }
            for judge, labels in (("ada", "aabb"), ("bea", "abbb"), ("cem", "bbbb"))
            for at, label in enumerate(labels)
        ]
        found = fleiss_kappa(annotations=make_annotations(rows)).to_dicts()
        return [(row["estimate"], row["simulated"]) for row in found]

    # The two that are left, as above.
    assert reported("cem") == [(pytest.approx(14 / 30), False)]
    assert reported("bea cem") == []
    # All three: P = (1/3 + 1/3 + 1 + 1) / 4; p = 3/12, 9/12.
    assert reported("ada bea cem") == [(pytest.approx((2 / 3 - 10 / 16) / (6 / 16)), True)]
