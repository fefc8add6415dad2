from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.scale_use import scale_use

Make = Callable[..., Any]


def shares(ratings: Any) -> dict[str, float]:
    found = scale_use(ratings=ratings)
    return dict(found.filter(subgroup="").select("statistic", "estimate").rows())


def test_the_mode_and_the_ends(make_ratings: Make) -> None:
    given = [{"sample": f"s{i}", "value": v} for i, v in enumerate([7, 7, 10, 2, None])]
    assert shares(make_ratings(given)) == {
        "modal_share": 0.5,
        "ceiling_share": 0.25,
        "floor_share": 0.0,
    }
    row = scale_use(ratings=make_ratings(given)).to_dicts()[0]
    assert (row["n"], row["dropped"], row["unit"]) == (4, 1, "share")


def test_ends_that_are_not_declared_are_unknown(make_ratings: Make) -> None:
    given = [{"sample": f"s{i}", "value": v} for i, v in enumerate([7, 7, 10])]
    assert shares(make_ratings(given, highest=None)) == {"modal_share": pytest.approx(2 / 3)}


def test_criteria_have_their_own_and_passes_none(make_ratings: Make) -> None:
    given = [
        {"sample": f"s{i}", "value": v, "criterion": c}
        for c, values in (("x", [1, 1, 2]), ("y", [10, 3, 4]))
        for i, v in enumerate(values)
    ]
    found = scale_use(ratings=make_ratings(given))
    rows = {(r["statistic"], r["subgroup"]): r["estimate"] for r in found.to_dicts()}
    assert rows["floor_share", "x"] == pytest.approx(2 / 3)
    assert rows["ceiling_share", "y"] == pytest.approx(1 / 3)
    assert rows["modal_share", ""] == pytest.approx(1 / 3)  # 5.5, 2 and 3
    passed = make_ratings([{"sample": "a", "value": 1.0, "kind": "label"}])
    assert scale_use(ratings=passed).is_empty()
    assert scale_use(ratings=make_ratings([])).is_empty()
