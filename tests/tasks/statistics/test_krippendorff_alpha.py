from collections.abc import Callable
from typing import Any

import evalica
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.statistics.krippendorff_alpha import MOST_LABELS, krippendorff_alpha

Make = Callable[..., Any]
KINDS = ("nominal", "ordinal", "interval")


def rows_of(*labels: str, **more: Any) -> list[dict[str, Any]]:
    """Make one text of digits per person; a space is no label."""
    return [
        {"annotator": f"P{who}", "item": f"i{at:02}", "label": label, "value": float(label), **more}
        for who, text in enumerate(labels)
        for at, label in enumerate(text)
        if label != " "
    ]


def alphas(make: Make, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = krippendorff_alpha(annotations=make(rows)).to_dicts()
    return {row["statistic"].removeprefix("krippendorff_alpha_"): row for row in found}


def test_docstring_example(make_annotations: Make) -> None:
    rows = alphas(make_annotations, rows_of("112", "122"))
    assert rows["nominal"]["estimate"] == pytest.approx(4 / 9)
    assert (rows["nominal"]["judge"], rows["nominal"]["n"]) == ("humans", 3)


def test_the_example_of_krippendorff(make_annotations: Make) -> None:
    # Krippendorff (2011), sections C to E: four observers, twelve units.
    rows = alphas(
        make_annotations, rows_of("123321412   ", "1233224125 3", " 3332342251 ", "12332441251 ")
    )
    for kind, published in zip(KINDS, (0.743, 0.815, 0.849), strict=True):
        row = rows[kind]
        assert row["estimate"] == pytest.approx(published, abs=5e-4)
        assert (row["n"], row["dropped"], row["clusters"]) == (11, 1, 11)
        assert row["low"] < row["estimate"] < row["high"]


@settings(max_examples=40)
@given(st.lists(st.text("1235 ", min_size=3, max_size=3), min_size=1, max_size=15))
def test_against_evalica(make_annotations: Make, items: list[str]) -> None:
    people = ["".join(item[who] for item in items) for who in range(3)]
    rows = alphas(make_annotations, rows_of(*people))
    if sum(bool(text.strip()) for text in people) < 2:
        assert rows == {}
        return
    paired = [item for item in items if len(item.replace(" ", "")) > 1]
    used = {label for item in paired for label in item} - {" "}
    data = pd.DataFrame([[float(label) if label != " " else None for label in t] for t in people])
    for kind in KINDS:
        row = rows[kind]
        assert row["n"] == len(paired)
        if len(used) < 2:
            # evalica says 1 where there is one label only.
            assert row["estimate"] is None
            assert row["reason"].startswith("one label only" if paired else "nothing qualifies")
        else:
            expected = evalica.alpha(data.astype(float), distance=kind, solver="naive").alpha
            assert row["estimate"] == pytest.approx(expected, abs=1e-9), kind
            assert -1 <= row["estimate"] <= 1


def test_labels_without_an_order(make_annotations: Make) -> None:
    rows = alphas(make_annotations, rows_of("112", "122", value=None))
    assert rows["nominal"]["estimate"] == pytest.approx(4 / 9)
    assert {rows[kind]["reason"] for kind in KINDS[1:]} == {"the labels have no order"}


def test_too_many_labels(make_annotations: Make) -> None:
    rows = [
        {"annotator": who, "item": f"i{at}", "label": f"text {at}"}
        for who in ("Amy", "Bob")
        for at in range(MOST_LABELS + 1)
    ]
    (reason,) = {row["reason"] for row in alphas(make_annotations, rows).values()}
    assert reason == "more than 30 different labels"
