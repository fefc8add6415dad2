from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl

from tasks.charts import CHARTS
from tasks.drawing.render import inline_svg

kappa_matrix = CHARTS["kappa_matrix"]
Make = Callable[..., pl.DataFrame]
CELL = {"perturbation": None, "kind": None, "simulated": None, "prompt": "none"}


def texts(panel: dict[str, Any]) -> list[str]:
    return [e.text or "" for e in ET.fromstring(inline_svg(panel)).iter("text")]


def pair(one: str, other: str, kappa: float | None, share: float, **more: Any) -> list[Any]:
    cell = {**CELL, "judge": one, "subgroup": other, **more}
    return [
        {"statistic": "cohen_kappa", "estimate": kappa, **cell},
        {"statistic": "agreement", "estimate": share, **cell},
    ]


def ceiling(judge: str, **more: Any) -> list[Any]:
    return [{**CELL, "statistic": "noise_ceiling", "judge": judge, "subgroup": "humans", **more}]


def study() -> list[Any]:
    return [
        *ceiling("ada"),
        *ceiling("bee"),
        *pair("ada", "Ann", 0.61, 0.71),
        *pair("ada", "Bob", None, 1.0),
        *pair("bee", "Ann", -0.22, 0.3),
        *pair("Ann", "Bob", 0.55, 0.65),
        *pair("ada", "bee", 0.99, 0.98),
    ]


def test_judges_first_then_people(make_estimates: Make) -> None:
    (panel,) = kappa_matrix(agreement=make_estimates(study()))
    shown = texts(panel)
    assert panel["title"]["text"] == "Cohen's kappa"
    assert [t for t in shown if t in {"ada", "bee", "Ann", "Bob"}] == [
        "Ann",
        "Bob",
        "ada",
        "bee",
        "Ann",
        "Bob",
    ]
    assert {".61", ".71", "none", "1.00", "\N{MINUS SIGN}.22", ".30"} <= set(shown)
    # of two people both halves, of each with itself a dot; bee and Bob share no item
    assert shown.count(".55") == 2
    assert shown.count("\N{MIDDLE DOT}") == 3
    # judges with each other are not in it
    assert ".99" not in shown


def test_a_judge_beside_a_formula_is_none(make_estimates: Make) -> None:
    rows = [
        *ceiling("ada", simulated=False),
        *ceiling("toy", simulated=True),
        *pair("ada", "Ann", 0.6, 0.7),
        *pair("toy", "Ann", 0.6, 0.7, simulated=True),
        *pair("ada", "toy", 0.9, 0.9, simulated=True),
    ]
    shown = texts(kappa_matrix(agreement=make_estimates(rows))[0])
    assert shown.count("(simulated)") == 1
    assert shown[shown.index("toy") + 1] == "(simulated)"


def test_the_kappa_is_that_of_the_labels(make_estimates: Make) -> None:
    weighted = [
        {**row, "statistic": "cohen_kappa_quadratic", "estimate": 0.77}
        for row in study()
        if row["statistic"] == "cohen_kappa"
    ]
    sets = [{**row, "statistic": "label_kappa", "estimate": 0.33} for row in weighted]
    ties = [{**row, "statistic": "agreement_decided", "estimate": 0.5} for row in weighted]
    for more, head, value in (
        (weighted, "Cohen's kappa, quadratic weights", ".77"),
        ([*weighted, *ties], "Cohen's kappa", ".61"),
        (sets, "mean over labels of Cohen's kappa", ".33"),
    ):
        (panel,) = kappa_matrix(agreement=make_estimates([*study(), *more]))
        assert panel["title"]["text"] == head
        assert value in texts(panel)


def test_a_judge_asked_in_two_ways_has_two_rows(make_estimates: Make) -> None:
    rows = [
        row
        for prompt in ("one", "two")
        for row in (*ceiling("ada", prompt=prompt), *pair("ada", "Ann", 0.5, 0.6, prompt=prompt))
    ]
    (panel,) = kappa_matrix(agreement=make_estimates([*rows, *pair("Ann", "Bob", 0.4, 0.5)]))
    assert {"ada / one", "ada / two", "Ann", "Bob"} <= set(texts(panel))


def test_five_people_fit_beside_each_other(make_estimates: Make) -> None:
    rows = [*ceiling("ada"), *(r for p in range(12) for r in pair("ada", f"P{p:02}", 0.5, 0.6))]
    panels = kappa_matrix(agreement=make_estimates(rows))
    assert [texts(panel).count(".60") for panel in panels] == [5, 5, 2]


def test_hostile_names_are_texts(make_estimates: Make) -> None:
    name = "<script>$x$\u202e" + "y" * 200
    rows = [*ceiling(name), *pair(name, name + "z", 0.5, 0.6)]
    (panel,) = kappa_matrix(agreement=make_estimates(rows))
    assert "<script" not in inline_svg(panel)
    assert "\u202e" not in inline_svg(panel)


def test_nobody_to_agree_with_draws_nothing(make_estimates: Make) -> None:
    assert kappa_matrix(agreement=make_estimates(ceiling("ada"))) == []
    assert kappa_matrix(agreement=make_estimates(ceiling("ada")).clear()) == []
