from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg

advantage_plane = CHARTS["advantage_plane"]
Make = Callable[..., pl.DataFrame]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def test_a_panel_per_judge_says_how_many_may_be_replaced(make_advantages: Make) -> None:
    rows = [
        {"judge": "low", "annotator": "Ann", "advantage_probability": 0.6, "rejected": False},
        {"judge": "high", "annotator": "Ann"},
        {"judge": "high", "annotator": "Bob", "rejected": False, "p_value": 0.5},
        {"judge": "high", "annotator": "Cid", "rejected": None, "p_value": None},
        {"judge": "high", "annotator": "Ann", "epsilon": 0.2, "asked": False},
    ]
    high, low = (texts(p) for p in advantage_plane(advantages=make_advantages(rows)))
    assert {"high", "filled: 1 of 2 may be replaced; additive epsilon .10", "Ann", "Bob"} <= set(
        high
    )
    assert {"low", "filled: 0 of 1 may be replaced; additive epsilon .10"} <= set(low)
    assert {"replaceable", "not replaceable"} <= set(high)
    assert "Cid" not in high


@pytest.mark.parametrize(
    ("kind", "edge"),
    [
        ("additive", [(0.7, 0.5), (1, 0.8)]),  # parallel to the diagonal, .2 below
        ("multiplicative", [(0.625, 0.5), (1, 0.8)]),  # a ray through 0: .8 times
    ],
)
def test_the_boundary_is_that_of_epsilon(
    make_advantages: Make, kind: str, edge: list[tuple[float, float]]
) -> None:
    row: dict[str, Any] = {"epsilon": 0.2, "epsilon_kind": kind, "low": 0.55}
    (panel,) = advantage_plane(advantages=make_advantages([row]))
    boundary, diagonal = (
        layer["data"]["values"] for layer in panel["layer"] if layer["mark"]["type"] == "line"
    )
    assert [(end["x"], end["y"]) for end in boundary] == [pytest.approx(end) for end in edge]
    assert [end["y"] for end in diagonal] == [0.5, 1]
    assert panel["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0.5, 1]


def test_only_the_best_judges_are_drawn_and_crowds_have_no_names(make_advantages: Make) -> None:
    rows = [
        {"judge": f"j{j:02}", "annotator": f"A{a:03}", "advantage_probability": 0.5 + j / 100}
        for j in range(20)
        for a in range(40)
    ]
    panels = advantage_plane(advantages=make_advantages(rows))
    assert len(panels) == 12
    assert "j19" in texts(panels[0])
    assert not any(t.startswith("A0") for t in texts(panels[0]))


def test_hostile_names_are_texts(make_advantages: Make) -> None:
    name = "<script>$x$\u202e" + "y" * 200
    (panel,) = advantage_plane(advantages=make_advantages([{"judge": name, "annotator": name}]))
    assert "<script" not in inline_svg(panel)
    assert "\u202e" not in inline_svg(panel)


def test_nobody_tested_draws_nothing(make_advantages: Make) -> None:
    untested = make_advantages([{"p_value": None, "rejected": None}])
    assert advantage_plane(advantages=untested) == []
