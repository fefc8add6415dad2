from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.flaws_detected import flaws_detected

Make = Callable[..., Any]


def ratings(make: Make, base: list[float], flawed: list[float], **more: Any) -> Any:
    rows = [
        {"sample": f"s{i}", "arm": arm, "value": value}
        for arm, values in (("control", base), ("sham", base), ("experimental", flawed))
        for i, value in enumerate(values)
    ]
    return make(
        [{**r, "perturbation_kind": None if r["arm"] == "control" else "detract"} for r in rows],
        **more,
    )


@pytest.mark.parametrize(
    ("base", "flawed", "more", "expected"),
    [
        ([8, 7, 5, 1], [5, 7, 6, 1], {}, 0.0),
        ([8, 7, 5, 1], [5, 6, 4, 1], {}, 1.0),
        ([1, 1, 1, 0], [0, 0, 1, 0], {"kind": "label"}, 2 / 3),
        ([1, 1, 0, 0], [1, 1, 1, 1], {"kind": "label"}, -1.0),
    ],
)
def test_falls_beyond_rises(
    make_ratings: Make,
    base: list[float],
    flawed: list[float],
    more: dict[str, Any],
    expected: float,
) -> None:
    row = flaws_detected(ratings=ratings(make_ratings, base, flawed, **more)).to_dicts()[0]
    assert (row["estimate"], row["n"]) == (pytest.approx(expected), 4)
    assert row["kind"] == "detract"


def test_promote_kinds_have_no_flaws(make_ratings: Make) -> None:
    rows = [
        {"sample": "a", "arm": arm, "value": 5.0} for arm in ("control", "sham", "experimental")
    ]
    assert flaws_detected(ratings=make_ratings(rows)).is_empty()
    assert flaws_detected(ratings=make_ratings([])).is_empty()
