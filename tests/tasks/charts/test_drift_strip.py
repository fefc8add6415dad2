from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl

from tasks.charts import CHARTS

drift_strip = CHARTS["drift_strip"]
Make = Callable[[list[dict[str, Any]]], pl.DataFrame]


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


WHOLE = {"mode": "any", "perturbation": None}


def marks(svg: str) -> int:
    """Count drawn markers: matplotlib uses one of its ``defs`` for each."""
    return len(list(ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}use")))


def test_the_budget_of_false_alerts_is_told_as_the_study_s() -> None:
    assert "cells of this study share a budget of false alerts, by default one in 90" in (
        drift_strip.reading
    )


def test_a_row_per_measure_and_the_last_change_beside_it(make_drifts: Make) -> None:
    rows = [
        {"wave": "n1"},
        {"wave": "n2", "estimate": 0.3, "state": "suspect"},
        {"wave": "n3", "estimate": 0.31, "state": "alert"},
        {
            "wave": "n3",
            "measure": "verdict_drift",
            "estimate": None,
            "state": "not measured",
            **WHOLE,
        },
        {"wave": "n1", "measure": "position_drift", "estimate": -0.02, **WHOLE},
    ]
    (panel,) = drift_strip(drifts=make_drifts(rows))
    shown = texts(panel)
    assert {"+.31", "alert", "none", "not measured", "not asked", "n1", "n3"} <= set(shown)
    assert [t for t in shown if t in {"shift", "padding", "position gap", "verdicts"}] == [
        "shift",
        "padding",
        "position gap",
        "verdicts",
    ]
    assert "waves compared: 3; significance level .011 per wave" in shown


def test_a_panel_per_judge_whose_simulation_is_marked(make_drifts: Make) -> None:
    rows = [{"wave": "n1"}, {"wave": "n1", "judge": "b", "simulated": True}]
    titles = [texts(panel) for panel in drift_strip(drifts=make_drifts(rows))]
    assert "a" in titles[0]
    assert "b (simulated)" in titles[1]


def test_only_the_last_thirty_waves_are_drawn(make_drifts: Make) -> None:
    rows = [{"wave": f"n{n:02}"} for n in range(45)]
    (panel,) = drift_strip(drifts=make_drifts(rows))
    assert "the last 30 of 45 waves; significance level .011 per wave" in texts(panel)
    assert {"n15", "n44"} <= set(texts(panel))
    assert "n14" not in texts(panel)


def test_a_new_baseline_is_drawn(make_drifts: Make) -> None:
    rows = [{"wave": f"n{n}"} for n in (1, 2)]
    later = [{"wave": "n3", "epoch": 2, "base": "n2"}]
    (plain,) = drift_strip(drifts=make_drifts([*rows, {"wave": "n3"}]))
    (marked,) = drift_strip(drifts=make_drifts([*rows, *later]))
    assert marked.count("<path") == plain.count("<path") + 1
    assert marks(marked) == marks(plain)


def test_hostile_names_are_drawn_as_texts(make_drifts: Make) -> None:
    name = "<script>$x$" + "y" * 80
    (panel,) = drift_strip(
        drifts=make_drifts([{"judge": name, "wave": "n1", "perturbation": name}])
    )
    assert "<script>" not in panel
    assert any(t.startswith("<script>$x$") for t in texts(panel))


def test_nothing_watched_draws_nothing(make_drifts: Make) -> None:
    assert drift_strip(drifts=make_drifts([{"wave": "n1"}]).clear()) == []
