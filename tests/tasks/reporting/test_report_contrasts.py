from collections.abc import Callable
from typing import Any

import pytest

from tasks.conclusions.comparisons import contrasts
from tasks.reporting.comparison_rows import contrast_groups
from tasks.reporting.rows import Group

MINUS, GAP = "\N{MINUS SIGN}", "\N{NO-BREAK SPACE}"
PAIR = {"judge": "ada", "subgroup": "bea", "perturbation": "boast", "n": 20, "clusters": 20}
Make = Callable[..., Any]


def row(statistic: str, estimate: float | None, **changes: Any) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if estimate is not None:
        bounds = {"low": estimate - 0.04, "high": estimate + 0.04, "standard_error": 0.02}
    return {**PAIR, "statistic": statistic, "estimate": estimate, **bounds, **changes}


def groups(estimates: Any, most: int = 100) -> list[Group]:
    return contrast_groups(contrasts(estimates), estimates, most)


def test_three_words_with_what_they_rest_on(make_estimates: Make) -> None:
    found = groups(
        make_estimates(
            [
                row("mps_sham_contrast", 0.2, p_value=0.001, n=25),
                row("mps_sham_contrast", 0.0, p_value=0.9, subgroup="cleo"),
                row("mps_sham_contrast", 0.06, p_value=0.04, judge="bea", subgroup="cleo"),
                row("los_contrast", 0.5, p_value=0.004),
                row("asr_contrast", 0.3, p_value=0.002),
                row("mcnemar", 0.1, p_value=0.0625),
                row("mps_contrast", 0.9, p_value=0.0001),
                row("mps_sham", 0.25, judge="ada", subgroup=""),
                row("mps_sham", 0.05, judge="bea", subgroup=""),
            ]
        )
    )
    (group,) = found
    assert group.perturbation == "boast"
    assert group.summary == "a difference in 1 of 3 comparisons, no relevant difference in 1"
    first, second, third = group.rows
    # Holm of .001, .04, .9: .003, .08, .9.
    assert (first.judge, first.other.judge, first.finding) == (
        "ada",
        "bea",
        ("biased", "ada is moved further toward the target"),
    )
    assert [tuple(text) for text in first.texts] == [
        (".20", f"[.16,{GAP}.24]"),
        (".003", "raw .001"),
        (".50", f"[.46,{GAP}.54]; biased, p .004"),
        (".30", f"[.26,{GAP}.34]; biased, p .002"),
        (".063", "raw .063"),
        ("20", "25 samples, MPS .25 and .05"),
    ]
    assert (second.other.judge, second.finding.text) == ("cleo", "no relevant bias")
    assert (third.judge, third.finding.text) == ("bea", "inconclusive")
    assert [text.text for text in third.texts[2:5]] == ["not measured"] * 3


def test_nine_questions_give_no_finding_and_a_null_its_reason(make_estimates: Make) -> None:
    few = row("mps_contrast", 0.2, p_value=0.001, clusters=9)
    null = row("mps_contrast", None, subgroup="cleo", reason="no sample that both judged")
    (group,) = groups(make_estimates([few, null]))
    assert [tuple(r.finding) for r in group.rows] == [
        ("no finding", "fewer than 10 independent questions"),
        ("no finding", "no sample that both judged"),
    ]
    assert group.rows[1].texts[0].text == "not estimable"
    assert group.summary == "a difference in 0 of 2 comparisons, no relevant difference in 0"


@pytest.mark.parametrize("wave", ["", "n2"])
def test_waves_stay_apart(make_estimates: Make, wave: str) -> None:
    rows = [
        row("mps_contrast", 0.2, p_value=0.001),
        row("mps_contrast", 0.1, p_value=0.5, wave=wave),
    ]
    (group,) = groups(make_estimates(rows[: 2 if wave else 1]))
    assert [r.judge for r in group.rows] == (["ada / ", "ada / n2"] if wave else ["ada"])


def test_each_of_a_pair_has_its_own_mark(make_estimates: Make) -> None:
    pair = {"p_value": 0.001, "subgroup": "toy", "simulated": True}
    rows = [
        row("mps_contrast", -0.3, **pair),
        row("mps_contrast", 0.2, judge="doll", **pair),
        row("mps_contrast", 0.1, p_value=0.001, simulated=False),
        *(
            row("mps", 0.1, judge=judge, subgroup="", simulated=judge in {"toy", "doll"})
            for judge in ("ada", "bea", "toy", "doll")
        ),
    ]
    (group,) = groups(make_estimates(rows))
    assert [(r[:2], r.other[:2], r.finding.note.split(" is ")[0]) for r in group.rows] == [
        (("ada", False), ("toy", True), "toy (simulated)"),
        (("doll", True), ("toy", True), "doll (simulated)"),
        (("ada", False), ("bea", False), "ada"),
    ]


def test_of_many_pairs_those_that_differ_are_listed_and_all_are_counted(
    make_estimates: Make,
) -> None:
    rows = [
        row(
            "mps_contrast",
            0.01 * place if place % 2 else 0.0,
            p_value=1e-6 if place % 2 else 0.9,
            subgroup=f"judge{place:02}",
            perturbation=name,
        )
        for place in range(30)
        for name in ("boast", "padding")
    ]
    for most, listed in ((24, 12), (1, 10)):
        found = groups(make_estimates(rows), most)
        assert [(group.perturbation, len(group.rows), group.pairs) for group in found] == [
            ("boast", listed, 30),
            ("padding", listed, 30),
        ]
        assert [each.other.judge for each in found[0].rows] == [
            f"judge{place:02}" for place in range(29, 29 - 2 * listed, -2)
        ]
        assert "a difference in 13 of 30 comparisons" in found[0].summary


def test_nothing_to_compare(make_estimates: Make) -> None:
    assert groups(make_estimates([row("mps", 0.2, subgroup="")])) == []


def test_prompts_of_a_judge_are_named(make_estimates: Make) -> None:
    rows = [
        row("mps_contrast", -0.2, p_value=0.001, prompt="mild", subgroup="ada / stern"),
        row("los_contrast", -0.5, p_value=0.001, prompt="mild", subgroup="ada / stern"),
        row("mps_contrast", 0.1, p_value=0.2, prompt="mild"),
        row("mps_contrast", 0.0, p_value=0.9, prompt="stern"),
        row("mps", 0.1, prompt="mild", subgroup=""),
        row("mps", 0.3, prompt="stern", subgroup=""),
    ]
    (group,) = groups(make_estimates(rows))
    assert group.summary == "a difference in 1 of 3 comparisons, no relevant difference in 1"
    names = [(each.judge, each.other.judge) for each in group.rows]
    assert names == [
        ("ada / mild", "ada / stern"),
        ("ada / stern", "bea"),
        ("ada / mild", "bea"),
    ]
    first = group.rows[0]
    assert first.finding == ("biased", "ada / stern is moved further toward the target")
    assert first.texts[2].text == f"{MINUS}.50"
    assert first.texts[5].note == "MPS .10 and .30"
