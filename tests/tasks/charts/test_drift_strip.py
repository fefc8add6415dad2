import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl

from schemas.results import Gates
from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg

drift_strip = CHARTS["drift_strip"]
Make = Callable[[list[dict[str, Any]]], pl.DataFrame]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


WHOLE = {"mode": "any", "perturbation": None}


def layers(panel: dict[str, Any], mark: str) -> list[list[dict[str, Any]]]:
    """Return the data that layers of a mark have of their own."""
    found = [layer for layer in panel["layer"] if layer["mark"]["type"] == mark]
    return [layer["data"]["values"] for layer in found if "data" in layer]


def test_the_budget_of_false_alerts_is_reported_as_the_study_s() -> None:
    assert "cells of this study share a budget of false alerts, by default one in 90" in (
        drift_strip.reading
    )


def test_a_row_per_measure_and_the_last_change_beside_it(make_drifts: Make) -> None:
    rows = [
        {"wave": "n1"},
        {"wave": "n2", "estimate": 0.3, "state": "suspect"},
        {"wave": "n3", "estimate": 0.31, "low": 0.1, "high": 0.5, "state": "alert"},
        {
            "wave": "n3",
            "measure": "verdict_drift",
            "estimate": None,
            "state": "not measured",
            **WHOLE,
        },
        {"wave": "n1", "measure": "position_drift", "estimate": -0.02, **WHOLE},
    ]
    (panel,) = drift_strip(drifts=make_drifts(rows), gates=Gates.empty())
    shown, last = texts(panel), ".31 [.10,\N{NO-BREAK SPACE}.50]"
    assert {last, "alert", "not measured", "not asked", "n1", "n3"} <= set(shown)
    assert {"shift", "padding", "position gap", "verdicts"} <= set(shown)
    names = [row["row"].strip() for row in panel["data"]["values"]]
    assert names == ["shift padding", "position gap", "verdicts"]
    assert "n3 is compared with n0; waves compared: 3; significance level .011 per wave" in shown
    (marks,) = layers(panel, "point")
    assert [(m["row"].strip(), m["at"], m["state"]) for m in marks] == [
        ("shift padding", 0, "quiet"),
        ("shift padding", 1, "suspect"),
        ("shift padding", 2, "alert"),
        ("position gap", 0, "quiet"),
        ("verdicts", 2, "not measured"),
    ]
    assert f"change {last}\nn 60 samples, 60 questions\nalert" in marks[2]["tip"]


def test_a_panel_per_judge_whose_simulation_is_marked(make_drifts: Make) -> None:
    rows = [{"wave": "n1"}, {"wave": "n1", "judge": "b", "simulated": True}]
    titles = [texts(panel) for panel in drift_strip(drifts=make_drifts(rows), gates=Gates.empty())]
    assert "a" in titles[0]
    assert "b (simulated)" in titles[1]
    # A single wave is named once, below its mark.
    assert [text for text in titles[0] if text.endswith("n1")] == ["wave n1"]


def test_names_of_waves_do_not_run_into_each_other_on_a_phone(make_drifts: Make) -> None:
    def ends(*waves: str) -> tuple[list[int], int]:
        rows = make_drifts([{"wave": wave} for wave in waves])
        (panel,) = drift_strip(drifts=rows, gates=Gates.empty())
        named = [
            layer["mark"]
            for layer in panel["layer"]
            if layer.get("data", {}).get("values", [{}])[:1] in [[{"note": wave}] for wave in waves]
        ]
        titles = re.findall(r'"titlePadding": (\d+)', json.dumps(panel))
        return [mark["dy"] for mark in named], max(map(int, titles))

    assert ends("n1", "n2") == ([16, 16], 20)
    assert ends("2026-11-26", "2026-11-28") == ([16, 30], 34)


def test_waves_of_one_day_are_told_apart(make_drifts: Make) -> None:
    # What {minute} in the name of a wave gives.
    waves = [f"2026-11-27T22:{minute}+00:00" for minute in ("06", "08", "10")]
    rows = make_drifts([{"wave": wave, "base": waves[0]} for wave in waves[1:]])
    (panel,) = drift_strip(drifts=rows, gates=Gates.empty())
    drawn = " ".join(texts(panel))
    for minute in ("2026-11-27 22:08", "2026-11-27 22:10 is compared with 2026-11-27 22:06"):
        assert minute in drawn


def test_only_the_last_thirty_waves_are_drawn(make_drifts: Make) -> None:
    rows = [{"wave": f"n{n:02}"} for n in range(45)]
    (panel,) = drift_strip(drifts=make_drifts(rows), gates=Gates.empty())
    assert (
        "n44 is compared with n0; the last 30 of 45 waves; significance level .011 per wave"
        in texts(panel)
    )
    assert {"n15", "n44"} <= set(texts(panel))
    assert "n14" not in texts(panel)


def test_a_new_baseline_is_drawn_at_each_alert_also_in_the_last_wave(make_drifts: Make) -> None:
    def lines(*states: str) -> list[list[dict[str, Any]]]:
        rows = [{"wave": f"n{n}", "state": state} for n, state in enumerate(states)]
        (panel,) = drift_strip(drifts=make_drifts(rows), gates=Gates.empty())
        return layers(panel, "rule")

    assert lines("quiet", "suspect", "quiet") == [[]]
    assert lines("suspect", "alert", "quiet") == [[{"at": 1}]]
    assert lines("alert", "suspect", "alert") == [[{"at": 0}, {"at": 2}]]


def test_hostile_names_are_drawn_as_texts(make_drifts: Make) -> None:
    name = "<script>$x$" + "y" * 80
    (panel,) = drift_strip(
        drifts=make_drifts([{"judge": name, "wave": "n1", "perturbation": name}]),
        gates=Gates.empty(),
    )
    assert "<script" not in inline_svg(panel)
    assert any(t.startswith("<script>$x$") for t in texts(panel))


def test_nothing_watched_draws_nothing(make_drifts: Make) -> None:
    assert drift_strip(drifts=make_drifts([{"wave": "n1"}]).clear(), gates=Gates.empty()) == []


def test_the_gate_s_verdict_stands_above_the_changes(make_drifts: Make) -> None:
    row = {"dataset": "demo", "judge": "a", "prompt": "plain", "wave": "n2", "mode": "any"}
    numbers = {"value": 0.02, "low": -0.1, "high": 0.14, "tolerance": 0.05}
    last = row | numbers | {"gate": "drift", "verdict": "inconclusive"}
    # The last wave that has a verdict: another study may have asked in later ones.
    earlier = last | {"wave": "n1", "verdict": "pass"}
    gates = Gates.draft(pl.DataFrame([earlier, last, last | {"gate": "validity"}]))
    changes = [row | {"estimate": 0.02, "low": -0.1, "high": 0.14}, row | {"wave": "n3"}]
    (panel,) = drift_strip(drifts=make_drifts(changes), gates=gates)
    assert panel["title"]["subtitle"][0] == (
        "no change shown, none excluded: gate of n2: inconclusive "
        "(shift padding .02 [\N{MINUS SIGN}.10,\N{NO-BREAK SPACE}.14]; limit .05)"
    )
