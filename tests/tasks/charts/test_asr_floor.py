from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg

asr_floor = CHARTS["asr_floor"]
Make = Callable[[list[dict[str, Any]]], pl.DataFrame]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def test_floor_and_asr_stand_beside_each_other(make_estimates: Make) -> None:
    rows = [
        {"judge": "a", "estimate": 0.48},
        {"judge": "a", "statistic": "sham_floor", "estimate": 0.24},
        {"judge": "a", "statistic": "random_baseline", "estimate": 0.3333},
        {"judge": "b", "estimate": 0.61},
    ]
    (panel,) = asr_floor(estimates=make_estimates(rows))
    shown = texts(panel)
    assert {".48", "floor .24", ".61", "no floor"} <= set(shown)
    assert shown.index("b") < shown.index("a")


def test_a_judge_stands_once_beside_its_own_floor(make_estimates: Make) -> None:
    floor = {"judge": "a", "statistic": "sham_floor"}
    rows = [
        {"judge": "a", "estimate": 0.48},
        {**floor, "estimate": 0.24},
        # of a worst case
        {**floor, "estimate": 0.31, "subgroup": "invalid votes for the anchor"},
    ]
    (panel,) = asr_floor(estimates=make_estimates(rows))
    assert (texts(panel).count("a"), texts(panel).count("floor .24")) == (1, 1)
    assert "floor .31" not in texts(panel)


def test_words_say_that_a_good_judge_moves_away_from_a_worse_answer(
    make_estimates: Make,
) -> None:
    (panel,) = asr_floor(estimates=make_estimates([{"judge": "a", "kind": "detract"}]))
    assert any("moves away from the target, left of its floor" in t for t in texts(panel))


def test_nothing_estimable_is_said_so(make_estimates: Make) -> None:
    null = {"estimate": None, "low": None, "high": None, "reason": "nothing qualifies"}
    rows = [
        {"judge": "a", "statistic": s, **null} for s in ("asr", "sham_floor", "random_baseline")
    ]
    (panel,) = asr_floor(estimates=make_estimates(rows))
    assert "not estimable" in texts(panel)


@pytest.mark.parametrize("judges", [1, 12])
def test_any_number_of_judges_can_be_drawn(make_estimates: Make, judges: int) -> None:
    rows = [{"judge": f"{j} \U0001f600 $\\frac{{", "estimate": j / 12} for j in range(judges)]
    (panel,) = asr_floor(estimates=make_estimates(rows))
    assert texts(panel).count("no floor") == judges


def test_a_study_without_perturbations_has_no_panel(make_estimates: Make) -> None:
    only_position = [{"judge": "a", "statistic": "primacy", "perturbation": None, "kind": None}]
    assert asr_floor(estimates=make_estimates(only_position)) == []
