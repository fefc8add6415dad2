from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg

several_metrics = CHARTS["several_metrics"]
Make = Callable[..., pl.DataFrame]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def both(judge: str, metric: str, additive: float, relative: float, **more: Any) -> list[Any]:
    return [
        {
            "judge": judge,
            "metric": metric,
            "epsilon_kind": kind,
            "winning_rate": rate,
            "passed": rate >= 0.5,
            **more,
        }
        for kind, rate in (("additive", additive), ("multiplicative", relative))
    ]


def test_a_block_for_each_metric_and_both_kinds_of_epsilon(make_alt_tests: Make) -> None:
    rows = [
        *both("low", "jaccard", 0.2, 0.1, advantage_probability=0.6),
        *both("high", "jaccard", 1.0, 0.7, advantage_probability=0.9, simulated=True),
        *both("low", "hamming", 0.4, 0.3, advantage_probability=0.7),
        *both("high", "hamming", 0.6, 0.55, advantage_probability=0.8, simulated=True),
    ]
    (panel,) = several_metrics(metric_tests=make_alt_tests(rows))
    shown = [
        row.get("metric") or (row["name"], row["additive"], row["multiplicative"])
        for row in panel["data"]["values"]
    ]
    assert shown == [
        *("hamming", ("high *", ".60", ".55"), ("low", ".40", ".30")),
        *("jaccard", ("high *", "1.00", ".70"), ("low", ".20", ".10")),
    ]
    assert {"hamming", "high *", ".60", ".55", "low", ".40", ".30"} <= {*texts(panel)}
    assert {"additive", "multiplicative"} <= {*texts(panel)}
    assert any("simulated" in text for text in texts(panel))


def test_a_judge_that_was_not_tested_says_so(make_alt_tests: Make) -> None:
    null = dict.fromkeys(("winning_rate", "passed", "advantage_probability", "low", "high"))
    (panel,) = several_metrics(metric_tests=make_alt_tests([{"judge": "mute", **null}]))
    assert {"mute", "not tested", "-"} <= {*texts(panel)}


def test_many_judges_take_several_panels(make_alt_tests: Make) -> None:
    rows = [row for m in "abc" for j in range(25) for row in both(f"j{j:02}", m, 1.0, 1.0)]
    panels = several_metrics(metric_tests=make_alt_tests(rows))
    assert [sum(text.startswith("j") for text in texts(panel)) for panel in panels] == [25] * 3


def test_without_several_metrics_there_is_no_chart(make_alt_tests: Make) -> None:
    assert several_metrics(metric_tests=make_alt_tests([])) == []


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\u202eevil", "x" * 300])
def test_hostile_names_are_texts(make_alt_tests: Make, name: str) -> None:
    (panel,) = several_metrics(metric_tests=make_alt_tests(both(name, "jaccard", 1.0, 1.0)))
    assert "<script" not in inline_svg(panel)
    assert "\u202e" not in inline_svg(panel)
