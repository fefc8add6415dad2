"""Changes of ratings between waves, by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from schemas.judging import Shifts, Tallies
from tasks.drift.alerts import watch
from tasks.drift.rating_changes import rated_answers

Make = Callable[..., Any]
PASSES = {"kind": "label"}


def found_of(make_ratings: Make, values: dict[str, list[float]], form: dict[str, Any]) -> Any:
    """Watch one judge whose answers a00, a01, ... of a question each are rated so."""
    rows = [
        {"wave": wave, "sample": f"a{n:02}", "value": value, **form}
        for wave, given in values.items()
        for n, value in enumerate(given)
    ]
    answers = rated_answers(make_ratings(rows))
    found = watch(Tallies.empty(), Shifts.empty(), answers=answers)
    return found.filter(measure="rating_drift").sort("wave").to_dicts()


def test_a_pass_rate_that_falls(make_ratings: Make) -> None:
    before = [1.0] * 12 + [0.0] * 8
    after = [0.0] * 20
    rows = found_of(make_ratings, {"n1": before, "n2": before, "n3": after, "n4": after}, PASSES)
    assert [row["estimate"] for row in rows] == pytest.approx([0.0, -0.6, -0.6])
    assert [row["state"] for row in rows] == ["quiet", "suspect", "alert"]
    assert [row["unit"] for row in rows] == ["share"] * 3
    # McNemar: 12 fall and none rises, 2 * (1/2)^12.
    assert rows[1]["p_value"] == pytest.approx(2 / 2**12)
    assert rows[1]["minimum"] == 0.05


def test_grades_change_in_points(make_ratings: Make) -> None:
    before = [4.0, 6.0] * 10
    after = [5.0, 8.0] * 10
    rows = found_of(make_ratings, {"n1": before, "n2": after}, {})
    (row,) = rows
    # Ten rise by 1 and ten by 2; a quarter of the baseline's standard deviation of 1.
    assert row["estimate"] == pytest.approx(1.5)
    assert row["minimum"] == pytest.approx(0.25)
    # sd of the changes is .5: sqrt(20 / 19) * .5 / sqrt(20) = .11471; t of 19 df: 2.09302
    assert row["high"] - row["estimate"] == pytest.approx(2.09302 * 0.114708, rel=1e-4)
    assert (row["unit"], row["state"]) == ("points", "suspect")


def test_nine_answers_are_no_alert(make_ratings: Make) -> None:
    (row,) = found_of(make_ratings, {"n1": [1.0] * 9, "n2": [0.0] * 9}, PASSES)
    assert (row["state"], row["reason"]) == (
        "not measured",
        "fewer than 10 independent questions",
    )
