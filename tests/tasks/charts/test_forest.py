from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from schemas.results import Estimates
from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg

forest = CHARTS["forest"]
Make = Callable[[list[dict[str, Any]]], pl.DataFrame]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def marks(panel: dict[str, Any]) -> int:
    """Count squares, dots and diamonds: they are closed paths, whose size is drawn."""
    svg = ET.fromstring(inline_svg(panel))
    groups = [g for g in svg.iter("g") if "role-mark" in g.get("class", "")]
    symbols = [g for g in groups if "mark-symbol" in g.get("class", "")]
    return sum(len(list(g.iter("path"))) for g in symbols)


def drawn(findings: pl.DataFrame) -> list[dict[str, Any]]:
    return forest(findings=findings, estimates=Estimates.empty())


def test_rows_stand_in_the_order_of_the_effect(make_findings: Make) -> None:
    rows: list[dict[str, Any]] = [
        {"judge": "b", "estimate": 0.3, "low": 0.2, "high": 0.4},
        {"judge": "a", "estimate": -0.2, "low": -0.3, "high": -0.1},
        {
            "judge": "c",
            "estimate": None,
            "low": None,
            "high": None,
            "p_value": None,
            "p_adjusted": None,
            "finding": None,
        },
    ]
    (panel,) = drawn(make_findings(rows))
    shown = texts(panel)
    assert [t for t in shown if t in {"a", "b", "c"}] == ["b", "a", "c"]
    assert {".30", "\N{MINUS SIGN}.20", "not estimable", "padding"} <= set(shown)


def test_each_kind_says_where_a_good_judge_lies(make_findings: Make) -> None:
    rows = [
        {"judge": "a", "perturbation": "error", "kind": "detract", "finding": "detects"},
        {"judge": "a"},
        {"judge": "b", "finding": "no relevant bias"},
        {"judge": "c", "finding": None, "reason": "too few"},
    ]
    promote, detract = drawn(make_findings(rows))
    assert "promote: a fair judge lies inside the band" in texts(promote)
    assert "detract: a good judge moves away from the target, left of the band" in texts(detract)
    assert {"biased", "no relevant bias", "no finding"} <= set(texts(promote))
    assert "detects" in texts(detract)


def test_a_shift_over_the_sham_has_that_over_the_control_below_it(make_findings: Make) -> None:
    beside = {"control": 0.4, "control_low": 0.3, "control_high": 0.7}
    over_sham, over_control = (
        drawn(make_findings([{"judge": "a", "statistic": name, **beside}]))[0]
        for name in ("mps_sham", "mps")
    )
    # Where the control is the endpoint, its mark would be the same one twice.
    assert [row["control"] for row in over_sham["data"]["values"]] == [0.4]
    assert [row["control"] for row in over_control["data"]["values"]] == [None]
    assert marks(over_sham) == marks(over_control) + 1
    # Both scales reach as far as the interval over the control, and no mark needs an interval.
    assert {".6", "a"} <= set(texts(over_sham))
    bare = beside | {"control_low": None, "control_high": None}
    marked, unmarked = (
        drawn(make_findings([{"judge": "a", "statistic": name, **bare}]))[0]
        for name in ("mps_sham", "mps")
    )
    assert marks(marked) == marks(unmarked) + 1
    assert "over the control" in forest.reading


def test_panels_share_their_scale(make_findings: Make) -> None:
    rows = [
        {"judge": "a", "estimate": 0.8, "low": 0.7, "high": 0.9},
        {"judge": "a", "perturbation": "other", "estimate": 0.0, "low": -0.04, "high": 0.04},
    ]
    ticks = [
        [t for t in texts(panel) if t in {"0", ".2", ".4", ".6", ".8"}]
        for panel in drawn(make_findings(rows))
    ]
    assert ticks == [["0", ".2", ".4", ".6", ".8"]] * 2


def test_a_simulated_judge_is_marked(make_findings: Make) -> None:
    (panel,) = drawn(make_findings([{"judge": "a", "simulated": True}]))
    assert "(simulated)" in texts(panel)
    (panel,) = drawn(make_findings([{"judge": "a", "simulated": None}]))
    assert "(simulated)" not in texts(panel)


@pytest.mark.parametrize("judges", [1, 12])
@pytest.mark.parametrize("perturbations", [1, 8])
def test_any_number_of_cells_can_be_drawn(
    make_findings: Make, judges: int, perturbations: int
) -> None:
    rows = [
        {
            "judge": f"judge {j} \U0001f600" + "x" * 200,
            "perturbation": f"p{p} $x$",
            "estimate": 0.12,
        }
        for j in range(judges)
        for p in range(perturbations)
    ]
    panels = drawn(make_findings(rows))
    assert len(panels) == perturbations
    assert all(texts(panel).count(".12") == judges for panel in panels)


def test_no_findings_give_no_panel(make_findings: Make) -> None:
    assert drawn(make_findings([{"judge": "a"}]).clear()) == []
