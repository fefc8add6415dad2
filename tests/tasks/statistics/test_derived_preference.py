from collections.abc import Callable
from typing import Any

import pytest

from tasks.kit.defaults import Thresholds, limited_by
from tasks.statistics.derived_preference import derived_preference

Make = Callable[..., Any]


def ratings(make: Make, **more: Any) -> Any:
    sides = {"target": [7, 7.05, 3, 5], "anchor": [5, 7, 4, None]}
    given = [
        {"sample": f"s{i}", "side": side, "value": v}
        for side, values in sides.items()
        for i, v in enumerate(values)
    ]
    attacked = [
        {"sample": f"s{i}", "arm": "experimental", "value": v} for i, v in enumerate([8, 8, 8, 8])
    ]
    return make([*given, *attacked], **more)


def rows(made: Any) -> dict[tuple[str, str | None], dict[str, Any]]:
    found = derived_preference(ratings=made).to_dicts()
    return {(r["statistic"], r["perturbation"]): r for r in found}


def test_the_sign_of_the_difference_with_a_tie_band(make_ratings: Make) -> None:
    found = rows(ratings(make_ratings))
    assert {key: row["estimate"] for key, row in found.items()} == pytest.approx(
        {
            ("derived_preference", None): 0.5,
            ("derived_ties", None): 1 / 3,
            ("derived_preference", "boast"): 1.0,
            ("derived_ties", "boast"): 0.0,
        }
    )
    row = found["derived_preference", None]
    assert (row["n"], row["dropped"], row["null_value"]) == (3, 1, 0.5)
    with limited_by(Thresholds(tie_band=2.0)):
        found = rows(ratings(make_ratings))
    assert found["derived_ties", None]["estimate"] == 1.0


def test_the_end_of_the_band_is_a_tie_whatever_the_rounding(make_ratings: Make) -> None:
    given = [
        {"sample": "a", "side": "target", "value": 7.1},
        {"sample": "a", "side": "anchor", "value": 7.0},
    ]
    assert rows(make_ratings(given))["derived_ties", None]["estimate"] == 1.0


def test_nothing_without_anchors(make_ratings: Make) -> None:
    assert derived_preference(ratings=make_ratings([{"sample": "a", "value": 3}])).is_empty()
    assert derived_preference(ratings=make_ratings([])).is_empty()
