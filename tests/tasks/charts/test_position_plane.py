from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.charts import CHARTS
from tasks.charts.position_plane import spread
from tasks.drawing.render import inline_svg

position_plane = CHARTS["position_plane"]
Make = Callable[[list[dict[str, Any]]], pl.DataFrame]
OVERALL = {"perturbation": None, "kind": None}


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def judge(name: str, consistency: float | None, fairness: float | None) -> list[dict[str, Any]]:
    return [
        OVERALL
        | {
            "judge": name,
            "statistic": "position_consistency",
            "estimate": consistency,
            "low": None,
            "high": None,
        },
        OVERALL
        | {
            "judge": name,
            "statistic": "preference_fairness",
            "estimate": fairness,
            "low": None,
            "high": None,
        },
    ]


def test_the_first_slot_is_above_as_in_the_position_gap(make_estimates: Make) -> None:
    # As published, preference fairness is above 0 for the second slot.
    rows = [*judge("first", 0.5, -0.4), *judge("second", 0.5, 0.4), *judge("even", 0.9, 0.0)]
    (panel,) = position_plane(estimates=make_estimates(rows))
    shown = texts(panel)
    names = {"first", "even", "second"}
    assert [t for t in shown if t in names] == ["first", "even", "second"]
    above, below = (next(t for t in shown if t.startswith(arrow)) for arrow in "\u2191\u2193")
    assert (above[2:], below[2:]) == ("first slot wins", "second slot wins")
    (row,) = (row for row in panel["data"]["values"] if row["who"] == "first")
    assert row["y"] == 0.4


@pytest.mark.parametrize(("fairness", "reach"), [(-0.9, 0.95), (0.1, 0.3)])
def test_impossible_is_a_slot_that_wins_more_often_than_verdicts_differ(
    make_estimates: Make, fairness: float, reach: float
) -> None:
    (panel,) = position_plane(estimates=make_estimates(judge("a", 0.05, fairness)))
    corners = [
        [(row["x"], row["y0"]) for row in layer["data"]["values"]]
        for layer in panel["layer"]
        if layer["mark"]["type"] == "area"
    ]
    # |first - second| <= 1 - consistency
    assert [[at for point in c for at in point] for c in corners] == [
        pytest.approx([1 - reach, side, 1, 0]) for side in (reach, -reach)
    ]


def test_a_judge_that_cannot_be_placed_is_named_below(make_estimates: Make) -> None:
    rows = [*judge("a", None, None), *judge("b", 0.9, 0.0), *judge("c", 0.9, None)]
    (panel,) = position_plane(estimates=make_estimates(rows))
    assert "Not estimable, so not shown: a and c" in texts(panel)


def test_without_a_judge_that_can_be_placed_there_is_no_plane(make_estimates: Make) -> None:
    rows = [r for name in "abcd" for r in judge(name, None, None)]
    assert position_plane(estimates=make_estimates(rows)) == []


@pytest.mark.parametrize("judges", [1, 12])
def test_many_judges_on_one_spot_keep_their_names_apart(make_estimates: Make, judges: int) -> None:
    rows = [r for j in range(judges) for r in judge(f"{j} \U0001f600 $", 1.0, 0.0)]
    (panel,) = position_plane(estimates=make_estimates(rows))
    assert sum(t.endswith(" \U0001f600 $") for t in texts(panel)) == judges


def test_perturbed_arms_are_left_out(make_estimates: Make) -> None:
    rows = [{"judge": "a", "statistic": "position_consistency"}]
    assert position_plane(estimates=make_estimates(rows)) == []


def test_spread_by_hand() -> None:
    # 50 and 48 wish for places 2 apart; with a gap of 10 they end 5 to each side of 49.
    assert spread([50, 48], 10, 0, 100) == [54, 44]


@given(st.lists(st.floats(0, 100), max_size=10).map(lambda w: sorted(w, reverse=True)))
def test_spread_keeps_gap_limits_and_order(wanted: list[float]) -> None:
    heights = spread(wanted, 10, 0, 100)
    assert all(a - b >= 10 - 1e-9 for a, b in pairwise(heights))
    assert all(-1e-9 <= h <= 100 + 1e-9 for h in heights)
