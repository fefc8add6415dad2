from collections.abc import Callable
from typing import Any

from tasks.panels.jury_findings import jury_findings
from tasks.reporting.juries_and_models import jury_sentence

Make = Callable[..., Any]
ROW = {
    "judge": "jury/all",
    "statistic": "jury_mps",
    "perturbation": "boast",
    "estimate": 0.3,
    "low": 0.2,
    "high": 0.4,
    "standard_error": 0.05,
    "p_value": 0.001,
    "clusters": 40,
    "n": 40,
}


def sentence(estimates: Any) -> str:
    return jury_sentence(jury_findings(estimates), estimates)


def test_findings_of_the_jury_are_reported(make_estimates: Make) -> None:
    few = {**ROW, "perturbation": "error", "kind": "detract", "clusters": 9}
    text = sentence(make_estimates([ROW, few])).replace("\N{NO-BREAK SPACE}", " ")
    # Two tests: .001 is the smaller of equals, so it stays.
    assert text.startswith(
        "All judges as one jury: boast biased (MPS .30 [.20, .40], p .001) and "
        "error no finding (fewer than 10 independent questions). p is adjusted"
    )


def test_waves_are_named_where_there_are_two(make_estimates: Make) -> None:
    text = sentence(make_estimates([{**ROW, "wave": wave} for wave in ("n1", "n2")]))
    assert "boast / n1 biased" in text
    assert "boast / n2 biased" in text


def test_the_accuracy_of_members_is_reported_where_there_are_labels(make_estimates: Make) -> None:
    size = {
        **ROW,
        "statistic": "jury_error_size",
        "perturbation": None,
        "kind": None,
        "mode": "any",
        "estimate": 1.32,
        "low": 1.25,
        "high": 1.45,
    }
    said = " Judged by their errors where the correct verdict is known, its members are worth"
    text = sentence(make_estimates([ROW, size])).replace("\N{NO-BREAK SPACE}", " ")
    assert text.endswith(f"{said} 1.32 [1.25, 1.45] independent judges.")
    bare = {**size, "low": None, "high": None}
    assert sentence(make_estimates([ROW, bare])).endswith(f"{said} 1.32 independent judges.")
    assert said not in sentence(make_estimates([ROW, {**size, "estimate": None}]))


def test_no_jury_says_nothing(make_estimates: Make) -> None:
    assert sentence(make_estimates([{**ROW, "judge": "a", "statistic": "mps"}])) == ""
