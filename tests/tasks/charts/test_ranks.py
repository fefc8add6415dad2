from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg
from tasks.panels.rankings import rankings

chart = CHARTS["ranks"]
Make = Callable[[list[dict[str, Any]]], pl.DataFrame]


def ranks(estimates: pl.DataFrame) -> list[dict[str, Any]]:
    return chart(rankings=rankings(estimates))  # type: ignore[arg-type]


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def ranked(judge: str, rank: float | None, low: Any, high: Any, tiers: str, **more: Any) -> Any:
    """Return a judge's rank, and a row for each letter of its tier."""
    row = {"judge": judge, "statistic": "rank", "estimate": rank, "low": low, "high": high} | more
    letters = [
        {
            **row,
            "statistic": "tier",
            "subgroup": letter,
            "estimate": float(place),
            "low": None,
            "high": None,
        }
        for place, letter in enumerate(tiers, 1)
    ]
    return [row, *letters]


def test_no_rank_stands_bare(make_estimates: Make) -> None:
    rows = [
        *ranked("b", 2.5, 1.0, 3.0, "ab"),
        *ranked("a", 1.0, 1.0, 1.975, "a"),
        *ranked("c", None, None, None, ""),
    ]
    (panel,) = ranks(make_estimates(rows))
    shown = texts(panel)
    assert [t for t in shown if t in {"a", "b", "c"}] == ["a", "b", "c"]
    assert {"1, tier a", "1 to 2", "2.5, tier ab", "1 to 3", "not estimable"} <= set(shown)


def test_letters_are_those_of_the_same_perturbation(make_estimates: Make) -> None:
    rows = [
        *ranked("a", 1.0, 1.0, 2.0, "a"),
        *ranked("b", 2.0, 1.0, 2.0, "b"),
        *ranked("a", 2.0, 1.0, 2.0, "a", perturbation="error", kind="detract"),
        *ranked("b", 1.0, 1.0, 2.0, "a", perturbation="error", kind="detract"),
    ]
    promote, detract = ranks(make_estimates(rows))
    assert {"1, tier a", "2, tier b"} <= set(texts(promote))
    assert {"1, tier a", "2, tier a"} <= set(texts(detract))
    assert "promote: rank 1 is the judge moved least, in either direction" in texts(promote)


def test_rankings_of_different_quantities_stand_apart(make_estimates: Make) -> None:
    rows = [
        *ranked("a", 1.0, 1.0, 2.0, "a"),
        *ranked("b", 2.0, 1.0, 2.0, "a"),
        *ranked("c", 1.0, 1.0, 1.0, "a"),
    ]
    quantity = pl.when(pl.col("judge") == "c").then(pl.lit("pairs"))
    found = rankings(make_estimates(rows)).with_columns(
        quantity=quantity.otherwise(pl.lit("pass or fail"))
    )
    pairs, passes = chart(rankings=found)  # type: ignore[arg-type]
    assert [t for t in texts(pairs) if t in {"a", "b", "c"}] == ["c"]
    assert [t for t in texts(passes) if t in {"a", "b", "c"}] == ["a", "b"]
    assert any(t.endswith(", pairs") for t in texts(pairs))
    assert any(t.endswith(", pass or fail") for t in texts(passes))


def test_a_rank_without_interval_is_not_shown(make_estimates: Make) -> None:
    rows = [*ranked("a", 1.0, 1.0, 2.0, "a"), *ranked("b", 1.0, None, None, "", simulated=True)]
    (panel,) = ranks(make_estimates(rows))
    assert {"1 to 2", "not estimable", "(simulated)"} <= set(texts(panel))


@pytest.mark.parametrize("judges", [2, 20])
def test_any_number_of_judges_can_be_ranked(make_estimates: Make, judges: int) -> None:
    rows = [r for j in range(judges) for r in ranked(f"j{j}", j + 1.0, 1.0, judges, "abcdefghijk")]
    (panel,) = ranks(make_estimates(rows))
    ticks = [t for t in texts(panel) if t.isdecimal()]
    assert ticks[0] == "1"
    assert len(ticks) <= 8


def test_nothing_ranked_draws_nothing(make_estimates: Make) -> None:
    alone = ranked("a", None, None, None, "")
    assert ranks(make_estimates(alone)) == []
    assert ranks(make_estimates(alone).clear()) == []


def test_the_axis_ends_with_the_judges_ranked_together(make_estimates: Make) -> None:
    rows = [
        row
        for wave in ("n1", "n2")
        for at, judge in enumerate("abc", 1)
        for row in ranked(judge, float(at), 1.0, 3.0, "a", wave=wave)
    ]
    rows += ranked("d", None, None, None, "", wave="n1")
    (panel,) = ranks(make_estimates(rows))
    assert [t for t in texts(panel) if t.isdecimal()] == ["1", "2", "3"]


def test_the_axis_holds_all_ranks_shown(make_estimates: Make) -> None:
    twin = {"reason": "equal to another judge in every draw: no interval"}
    rows = [
        *ranked("a", 1.5, None, None, "a", **twin),
        *ranked("b", 1.5, None, None, "a", **twin),
        *ranked("c", 3.0, 2.0, 4.6, "a"),
        *ranked("d", 4.0, 1.0, 5.0, "a"),
        *ranked("e", 5.0, 3.0, 5.0, "a"),
    ]
    (panel,) = ranks(make_estimates(rows))
    assert [t for t in texts(panel) if t.isdecimal()] == ["1", "2", "3", "4", "5"]
    frame = panel["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert frame[0] < 1.0
    assert frame[1] > 5.0


def test_a_judge_without_rank_has_the_reason_beside_it(make_estimates: Make) -> None:
    why = "no valid ratings in the arms that are compared, or all alike: nothing could move them"
    twin = {"reason": "equal to another judge in every draw: no interval"}
    rows = [
        *ranked("a", 1.5, None, None, "a", **twin),
        *ranked("b", None, None, None, "", reason=why),
        *ranked("c", 3.0, 1.0, 3.0, "a"),
    ]
    (panel,) = ranks(make_estimates(rows))
    shown = texts(panel)
    assert "equal to another judge in every draw" in shown
    assert any(t.startswith("no valid ratings in the arms") for t in shown)
    tips = [row["tip"] for row in panel["data"]["values"]]
    assert sum(f"rank not estimable: {why}" in tip for tip in tips) == 1


def test_a_panel_without_any_rank_stands_beside_one_with_ranks(make_estimates: Make) -> None:
    rows = [
        *ranked("a", 1.0, 1.0, 2.0, "a"),
        *ranked("b", 2.0, 1.0, 2.0, "a"),
        *ranked("a", None, None, None, "", perturbation="error", kind="detract"),
    ]
    _, detract = ranks(make_estimates(rows))
    assert "not estimable" in texts(detract)
