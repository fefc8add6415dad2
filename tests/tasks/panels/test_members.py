from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.results import Exclusions
from tasks.conclusions.exclusions import exclude
from tasks.panels.members import panel_members

Make = Callable[..., Any]
NOBODY = pl.DataFrame(schema={"dataset": pl.String, "judge": pl.String})
CELL = {"perturbation": "boast", "kind": "promote", "n": 20, "clusters": 20}


def rows(judges: dict[str, bool | None], **changes: Any) -> list[dict[str, Any]]:
    return [
        {**CELL, "judge": judge, "statistic": statistic, "simulated": simulated, **changes}
        for judge, simulated in judges.items()
        for statistic in ("mps", "asr")
    ]


@pytest.mark.parametrize(
    ("judges", "members"),
    [
        ({"ada": False, "bea": None, "toy": True}, {"ada", "bea"}),
        ({"toy": True, "trinket": True}, {"toy", "trinket"}),
    ],
)
def test_simulated_judges_are_members_only_if_all_judges_are(
    make_estimates: Make, judges: dict[str, bool | None], members: set[str]
) -> None:
    found = panel_members(make_estimates(rows(judges)), Exclusions.empty(), NOBODY)
    for column in ("juror", "averaged", "kept"):
        assert set(found.filter(column)["judge"]) == members
    assert set(found["judge"]) == {*judges}


def test_people_are_never_members(make_estimates: Make) -> None:
    estimates = make_estimates(rows({"ada": False, "ann": None}))
    people = estimates.filter(judge="ann").select("dataset", "judge").unique()
    assert set(panel_members(estimates, Exclusions.empty(), people)["judge"]) == {"ada"}


def test_a_juror_has_a_shift_and_an_excluded_judge_is_not_kept(make_estimates: Make) -> None:
    whole = {"perturbation": None, "kind": None, "mode": "any", "n": 20, "clusters": 20}
    ties = {**whole, "judge": "bea", "statistic": "tie_rate", "estimate": 0.95, "low": 0.9}
    silent = {**CELL, "judge": "cy", "statistic": "mps", "n": 0, "clusters": 0}
    estimates = make_estimates([*rows({"ada": False, "bea": False}), ties, silent])
    found = panel_members(estimates, exclude(estimates), NOBODY)
    assert found.select("judge", "juror", "averaged", "kept").rows() == [
        ("ada", True, True, True),
        ("bea", True, True, False),
        ("cy", False, False, False),
    ]
