from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg

advantages = CHARTS["advantages"]
Make = Callable[..., pl.DataFrame]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def test_the_highest_stands_first_beside_people(
    make_alt_tests: Make, make_advantages: Make
) -> None:
    tests = make_alt_tests(
        [
            {"judge": "low", "advantage_probability": 0.6, "human_advantage_probability": 0.9},
            {"judge": "high"},
            {"judge": "none", "advantage_probability": None, "low": None, "high": None},
            {"judge": "high", "epsilon": 0.2, "asked": False},
        ]
    )
    each = make_advantages([{"judge": "high", "annotator": who} for who in ("Ann", "Bob")])
    (panel,) = advantages(alt_tests=tests, advantages=each)
    shown = texts(panel)
    assert [t for t in shown if t in {"low", "high", "none"}] == ["high", "low", "none"]
    assert {".90", "human .85", ".60", "human .90", "not estimable"} <= set(shown)
    assert "metric accuracy; diamond: AP of people against the judge; grey: each person" in shown
    people = [v for layer in panel["layer"] for v in layer.get("data", {}).get("values", ())]
    assert [(v["who"], v["single"]) for v in people if "single" in v] == [("high", 0.9)] * 2


@pytest.mark.parametrize("judges", [1, 50])
def test_any_number_of_judges_and_hostile_names(
    make_alt_tests: Make, make_advantages: Make, judges: int
) -> None:
    tests = make_alt_tests([{"judge": f"{j} <b>$x$ \u202e" + "y" * 200} for j in range(judges)])
    (panel,) = advantages(alt_tests=tests, advantages=make_advantages([]))
    assert texts(panel).count(".90") == judges
    assert "<b>" not in inline_svg(panel)
    assert "\u202e" not in inline_svg(panel)


def test_no_judges_draw_nothing(make_alt_tests: Make, make_advantages: Make) -> None:
    assert advantages(alt_tests=make_alt_tests([]), advantages=make_advantages([])) == []
