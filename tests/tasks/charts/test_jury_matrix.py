from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl

from schemas.results import Exclusions
from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg
from tasks.panels.jury_findings import jury_findings
from tasks.panels.members import panel_members

chart = CHARTS["jury_matrix"]
Make = Callable[[list[dict[str, Any]]], pl.DataFrame]


PEOPLE = pl.DataFrame({"dataset": ["bloom"], "judge": ["Ann"]})


def jury_matrix(estimates: pl.DataFrame) -> list[dict[str, Any]]:
    members = panel_members(estimates, Exclusions.empty(), PEOPLE)  # type: ignore[arg-type]
    return chart(
        estimates=estimates,
        jury_findings=jury_findings(estimates),  # type: ignore[arg-type]
        panel_members=members,
    )


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def member(judge: str, shift: float | None, without: float | None, **more: Any) -> Any:
    """Return a member's own shift, and that of the jury without it."""
    own = {"judge": judge, "statistic": "mps_sham", "estimate": shift} | more
    jury = {
        "judge": "jury/all",
        "statistic": "jury_mps_sham",
        "subgroup": judge,
        "estimate": without,
    }
    return [own, {**own, "statistic": "mps", "estimate": 0.99}, {**more, **jury}]


def whole(shift: float, **more: Any) -> Any:
    return [{"judge": "jury/all", "statistic": "jury_mps_sham", "estimate": shift} | more]


def test_each_member_stands_beside_the_jury_without_it(make_estimates: Make) -> None:
    rows = [
        *member("b", 0.2, -0.05),
        *member("a", -0.1, 0.1),
        *member("c", None, 0.05),
        *whole(0.033),
    ]
    (panel,) = jury_matrix(make_estimates(rows))
    shown = texts(panel)
    assert [t for t in shown if t in {"a", "b", "c", "all, as one jury"}] == [
        "a",
        "b",
        "c",
        "all, as one jury",
    ]
    assert {".20", "(\N{MINUS SIGN}.05)", "\N{MINUS SIGN}.10", "(.10)", "none", ".03"} <= set(shown)
    assert ".99" not in shown  # over the control, where there is a shift over the sham


def test_a_formula_is_a_member_only_where_all_are(make_estimates: Make) -> None:
    mixed = [
        *member("a", 0.2, 0.1),
        *member("b", 0.1, 0.2),
        *whole(0.15),
        *member("f", 0.7, 0.15, simulated=True)[:2],
    ]
    (panel,) = jury_matrix(make_estimates(mixed))
    assert "f" not in texts(panel)
    assert "(simulated)" not in texts(panel)
    formulas = [row | {"simulated": True} for row in [*mixed, member("f", 0.7, 0.15)[2]]]
    (panel,) = jury_matrix(make_estimates(formulas))
    assert texts(panel).count("(simulated)") == 4  # three members and their jury


def test_four_perturbations_fit_beside_each_other_promote_first(make_estimates: Make) -> None:
    kinds = {f"p{n} <&>" + "x" * 40: "detract" if n < 2 else "promote" for n in range(6)}
    rows = [
        row
        for perturbation, kind in kinds.items()
        for row in [
            *member("a", 0.2, 0.1, perturbation=perturbation, kind=kind),
            *member("b", 0.2, 0.1, perturbation=perturbation, kind=kind),
            *whole(0.2, perturbation=perturbation, kind=kind),
        ]
    ]
    first, second = (texts(p) for p in jury_matrix(make_estimates(rows)))
    assert first.count("promote") == 4
    assert (second.count("promote"), second.count("detract")) == (0, 2)


def test_two_members_have_no_jury_without_one(make_estimates: Make) -> None:
    rows = [*member("a", 0.2, None)[:2], *member("b", 0.0, None)[:2], *whole(0.1)]
    (panel,) = jury_matrix(make_estimates(rows))
    assert not [t for t in texts(panel) if t.startswith("(")]


def test_no_jury_draws_nothing(make_estimates: Make) -> None:
    assert jury_matrix(make_estimates(member("a", 0.2, 0.1)[:2])) == []


def test_juries_of_two_waves_say_which(make_estimates: Make) -> None:
    rows = [
        row
        for wave in ("n1", "n2")
        for row in (*member("a", 0.2, 0.1, wave=wave), *whole(0.1, wave=wave))
    ]
    titles = [
        next(text for text in texts(panel) if text.startswith("member x"))
        for panel in jury_matrix(make_estimates(rows))
    ]
    assert titles == ["member x perturbation, MPS, n1", "member x perturbation, MPS, n2"]


def test_a_person_is_no_member(make_estimates: Make) -> None:
    rows = [
        *member("a", 0.2, 0.1),
        *member("b", 0.1, 0.2),
        *member("c", 0.1, 0.2),
        *whole(0.15),
        *member("Ann", 0.7, None)[:2],
    ]
    (panel,) = jury_matrix(make_estimates(rows))
    assert "Ann" not in texts(panel)
