from collections.abc import Callable
from typing import Any

import pytest

from schemas.results import KeptFindings
from tasks.conclusions.exclusions import exclude
from tasks.reporting.juries_and_models import ExclusionTexts, rule, without

Make = Callable[..., Any]
WHOLE = {"perturbation": None, "kind": None, "mode": "any"}
ENDS = {
    "position_gap": (0.01, -0.04, 0.06),
    "tie_rate": (0.1, 0.05, 0.15),
    "invalid_rate": (0.01, 0.0, 0.1),
}


@pytest.fixture
def measures(make_estimates: Make) -> Make:
    """Make what a judge is left out by, from changes of it."""

    def make(clusters: int = 57, **changes: tuple[float, float, float]) -> Any:
        return make_estimates(
            (
                {"statistic": name, "estimate": at, "low": low, "high": high}
                for name, (at, low, high) in (ENDS | changes).items()
            ),
            **WHOLE,
            clusters=clusters,
        )

    return make


def test_nobody_left_out_is_said_too(measures: Make) -> None:
    exclusions = exclude(measures())
    limits = "position gap .15, tie rate .80 and invalid rate .10"
    assert rule(exclusions) == ExclusionTexts(limits, "", "")
    assert without(exclusions, KeptFindings.empty()).reasons == {}


def test_judges_undecided_with_few_questions_are_reported(measures: Make) -> None:
    assert rule(exclude(measures(clusters=9))).undecided == "ada"


def test_a_reason_tells_value_interval_and_limit(measures: Make) -> None:
    gap = {"position_gap": (-0.31, -0.36, -0.26), "tie_rate": (0.9, 0.85, 0.95)}
    minus, space = "\N{MINUS SIGN}", "\N{NO-BREAK SPACE}"
    why = (
        f"position gap {minus}.31 [{minus}.36,{space}{minus}.26], beyond \N{PLUS-MINUS SIGN}.15"
        f" and tie rate .90 [.85,{space}.95], above .80"
    )
    found = measures(**gap)
    assert rule(exclude(found)).left_out == f"ada: {why}"
    assert without(exclude(found), KeptFindings.empty()).reasons == {
        ("demo", "ada", "plain", ""): why
    }


def test_without_measures_there_is_no_rule(make_estimates: Make) -> None:
    assert rule(exclude(make_estimates([]))) == ExclusionTexts()
