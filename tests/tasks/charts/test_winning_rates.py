from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg
from tasks.kit.defaults import CalibrationThresholds, calibrated_by

winning_rates = CHARTS["winning_rates"]
Make = Callable[..., pl.DataFrame]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def curve(judge: str, rates: list[float | None], **more: Any) -> list[dict[str, Any]]:
    return [
        {"judge": judge, "epsilon": at / 10, "asked": at == 1, "winning_rate": rate, **more}
        for at, rate in enumerate(rates)
    ]


def test_judges_stand_with_their_advantage_and_that_of_people(make_alt_tests: Make) -> None:
    rows = [
        *curve("low", [0, 0.1, 0.2], advantage_probability=0.7, human_advantage_probability=0.9),
        *curve("high", [0.5, 0.8, 1.0], advantage_probability=0.95),
    ]
    (panel,) = winning_rates(alt_tests=make_alt_tests(rows))
    shown = texts(panel)
    assert [t for t in shown if t in {"low", "high"}] == ["high", "low"]
    assert {"AP .70, human .90", "AP .95, human .85", "additive epsilon"} <= set(shown)
    assert {"0", ".25", ".50", ".75", "1.00"} <= set(shown)


def test_a_simulated_judge_is_marked(make_alt_tests: Make) -> None:
    (panel,) = winning_rates(alt_tests=make_alt_tests(curve("a", [0, 1], simulated=True)))
    assert "AP .90, human .85, simulated" in texts(panel)


def test_the_limit_is_that_of_the_calibration(make_alt_tests: Make) -> None:
    tests = make_alt_tests(curve("a", [0, 0.5, 1]))
    with calibrated_by(CalibrationThresholds(least_winning_rate=0.6)):
        (panel,) = winning_rates(alt_tests=tests)
    assert "passes at .60; dotted: chosen epsilon" in texts(panel)


def test_six_judges_fit_into_a_panel(make_alt_tests: Make) -> None:
    rows = [row for j in range(13) for row in curve(f"j{j:02}", [0, 0.5, 1])]
    panels = winning_rates(alt_tests=make_alt_tests(rows))
    assert [sum(t.startswith("j") for t in texts(panel)) for panel in panels] == [6, 6, 1]


def test_the_scale_holds_the_epsilon_asked_for(make_alt_tests: Make) -> None:
    rows = [*curve("a", [0, 0.5, 1]), {"judge": "a", "epsilon": 0.75, "asked": False}]
    (panel,) = winning_rates(alt_tests=make_alt_tests(rows))
    assert {".2", ".4", ".6"} <= set(texts(panel))


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "$\\frac{x", "\u202eevil", "x" * 300, "=1+1", "裁判 😀"]
)
def test_hostile_names_are_texts(make_alt_tests: Make, name: str) -> None:
    (panel,) = winning_rates(alt_tests=make_alt_tests(curve(name, [0, 1])))
    assert "<script" not in inline_svg(panel)
    assert "\u202e" not in inline_svg(panel)
    assert len(max(texts(panel), key=len)) < 40


def test_a_judge_that_cannot_be_known_has_no_line(make_alt_tests: Make) -> None:
    assert winning_rates(alt_tests=make_alt_tests(curve("a", [None, None]))) == []
