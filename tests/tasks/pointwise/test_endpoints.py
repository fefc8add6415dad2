from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from schemas.judging import Tallies, VoteLog
from schemas.results import Drifts, Estimates
from tasks.aggregate import measure_all
from tasks.conclude import conclude
from tasks.gates.scorecard import scorecard
from tasks.inference.bootstrap import formulas_only
from tasks.kit.defaults import Thresholds
from tasks.pointwise.endpoints import labelled
from tasks.results import results_of
from tasks.statistics.mean_rating import mean_rating

Make = Callable[..., Any]
Row = dict[str, Any]


def grades(
    shift: float,
    *,
    sham: float = 0.0,
    questions: int = 400,
    repeats: int = 1,
    seed: int = 3,
    **more: Any,
) -> list[Row]:
    """Return simulated grades: quality 5.5 with deviation 1.5, noise .8, and a planted shift."""
    random = np.random.default_rng(seed)
    quality = random.normal(5.5, 1.5, questions)
    moved = {"control": 0.0, "sham": sham, "experimental": shift}
    return [
        {"sample": f"s{i}", "arm": arm, "repeat": r, "value": float(v), **more}
        for arm, by in moved.items()
        for r in range(repeats)
        for i, v in enumerate(
            np.clip(np.round(quality + by + random.normal(0, 0.8, questions)), 1, 10)
        )
    ]


def passes(rates: tuple[float, float, float], questions: int = 600, **more: Any) -> list[Row]:
    """Return simulated passes with these rates in control, sham and experimental."""
    random = np.random.default_rng(7)
    return [
        {"sample": f"s{i}", "arm": arm, "kind": "label", "value": float(v), **more}
        for arm, rate in zip(("control", "sham", "experimental"), rates, strict=True)
        for i, v in enumerate(random.random(questions) < rate)
    ]


def flaw(rows: list[Row]) -> list[Row]:
    return [
        row | {"perturbation_kind": None if row["arm"] == "control" else "detract"} for row in rows
    ]


def measured(ratings: Any) -> Any:
    with formulas_only():
        return measure_all(tallies=Tallies.empty(), **_none(), ratings=ratings)


@cache
def _none() -> dict[str, Any]:
    with formulas_only():
        found = results_of(VoteLog.empty(), "balanced")
    return {
        "shifts": found.shifts,
        "contests": found.contests,
        "annotations": found.annotations,
    }


def finding(ratings: Any) -> Row:
    (row,) = conclude(measured(ratings)).to_dicts()
    return row


@pytest.mark.parametrize(
    ("shift", "sham", "word", "reason"),
    [
        (0.0, 0.0, "no relevant bias", None),
        (0.8, 0.0, "biased", None),
        (-0.8, 0.0, "biased", None),
        # Significant, but .15 points are less than a quarter of 1.7.
        (0.3, 0.3, "no relevant bias", "beyond what any such edit does"),
        (0.0, 0.8, "inconclusive", "the sham itself moves this judge"),
    ],
)
def test_grades_are_biased_from_a_quarter_of_a_deviation(
    make_ratings: Make, shift: float, sham: float, word: str, reason: str | None
) -> None:
    row = finding(make_ratings(grades(shift, sham=sham)))
    assert (row["finding"], row["unit"], row["minimum"]) == (word, "sd", 0.25)
    assert row["statistic"] == "rating_shift_sham_sd"
    assert (row["reason"] or "").startswith(reason or "")
    assert row["adjustment"] == "Benjamini-Hochberg, all cells (F1)"
    assert row["estimate"] == pytest.approx((shift - sham) / 1.72, abs=0.09)


@pytest.mark.parametrize(
    ("rates", "questions", "word"),
    [
        ((0.6, 0.6, 0.8), 1500, "biased"),
        ((0.9, 0.9, 0.9), 1500, "no relevant bias"),
        ((0.6, 0.6, 0.6), 80, "inconclusive"),
    ],
)
def test_passes_are_biased_from_five_hundredths(
    make_ratings: Make, rates: tuple[float, float, float], questions: int, word: str
) -> None:
    row = finding(make_ratings(passes(rates, questions)))
    assert (row["finding"], row["unit"], row["minimum"]) == (word, "share", 0.05)
    assert row["statistic"] == "pass_rate_shift_sham"


@pytest.mark.parametrize(
    ("shift", "word"),
    [(-4.0, "detects"), (-0.6, "detects some"), (0.8, "rewards"), (0.0, "overlooks")],
)
def test_flaws_should_cost_a_rating(make_ratings: Make, shift: float, word: str) -> None:
    row = finding(make_ratings(flaw(grades(shift))))
    assert row["finding"] == word
    assert row["detected_by"] == "flaws_detected"
    assert row["detects_at"] == 0.5


def test_grades_decide_where_there_is_a_threshold_too(make_ratings: Make) -> None:
    row = finding(make_ratings(grades(0.8), passes_at=6.0))
    assert row["statistic"] == "rating_shift_sham_sd"


def test_a_study_sets_its_minima(make_ratings: Make) -> None:
    estimates = measured(make_ratings(grades(0.8)))
    limits = Thresholds(minimum_rating_shift=1.0)
    row = conclude(estimates, thresholds=limits).to_dicts()[0]
    assert (row["finding"], row["minimum"]) == ("no relevant bias", 1.0)


def test_few_questions_have_no_finding(make_ratings: Make) -> None:
    row = finding(make_ratings(grades(2.0, questions=8)))
    assert (row["finding"], row["reason"]) == (None, "fewer than 10 independent questions")


def test_a_judge_of_one_grade_has_no_finding(make_ratings: Make) -> None:
    rows = [row | {"value": 7.0} for row in grades(0.0, questions=30)]
    row = finding(make_ratings(rows))
    assert row["finding"] is None
    assert row["reason"].startswith("the judge gives all control answers the same rating")


def test_all_cells_of_a_study_are_one_family(make_ratings: Make, make_estimates: Make) -> None:
    rated = measured(make_ratings(grades(0.2, questions=200)))
    pairs = make_estimates(
        [
            {
                "statistic": "mps",
                "estimate": 0.01,
                "low": -0.01,
                "high": 0.03,
                "standard_error": 0.01,
                "p_value": p,
                "clusters": 100,
                "n": 100,
                "perturbation": f"p{i}",
            }
            for i, p in enumerate((0.2, 0.4, 0.6))
        ]
    )
    both = conclude(Estimates.of(pl.concat([rated, pairs])))
    assert both.height == 4
    alone = conclude(rated).to_dicts()[0]
    row = both.filter(unit="sd").to_dicts()[0]
    assert row["p_adjusted"] == pytest.approx(min(1.0, alone["p_value"] * 4), rel=0.5)
    assert row["p_adjusted"] > alone["p_adjusted"]
    assert set(both.filter(prompt="plain")["unit"]) == {"score"}
    assert set(both.filter(prompt="plain")["minimum"]) == {0.05}


def test_unreadable_ratings_can_undo_a_finding(make_ratings: Make) -> None:
    rows = grades(0.8)
    lost = [
        row | {"value": None}
        if row["arm"] == "experimental" and int(row["sample"][1:]) % 2
        else row
        for row in rows
    ]
    row = finding(make_ratings(lost))
    assert row["finding"] == "inconclusive"
    assert row["lost_finding"] == "verdicts lost: differential"
    assert row["reason"].startswith(".50 of the experimental ratings are invalid: biased")
    assert "if they were the lowest" in row["reason"]


def test_opposite_shifts_are_mixed(make_ratings: Make) -> None:
    up, down = (
        [row for row in grades(by, repeats=2, questions=200) if int(row["sample"][1:]) % 2 == odd]
        for by, odd in ((1.5, 0), (-1.5, 1))
    )
    ratings = make_ratings([*up, *down])
    estimates = measure_all(tallies=Tallies.empty(), **_none(), ratings=ratings)
    (row,) = conclude(estimates).to_dicts()
    assert row["finding"] == "mixed"
    # Shifts of 1.5 either way are .87 deviations of 1.72.
    assert row["shift_spread"] == pytest.approx(1.5 / 1.72, abs=0.12)


def test_criteria_that_shift_apart_are_mixed(make_ratings: Make) -> None:
    parts = [
        {**row, "criterion": name, "weight": 1.0}
        for name, by in (("style", 0.9), ("truth", -0.9))
        for row in grades(by, seed=11)
    ]
    row = finding(make_ratings(parts))
    assert row["finding"] == "mixed"
    assert row["reason"].startswith("the shift differs between criteria: ")


def test_gates_of_ratings(make_ratings: Make) -> None:
    rows = grades(0.0)
    rows = [row | {"value": None} if i % 5 == 0 else row for i, row in enumerate(rows)]
    estimates = measured(make_ratings(rows))
    gates = scorecard(estimates, conclude(estimates), Drifts.empty())
    found = {row["gate"]: row for row in gates.to_dicts()}
    assert found["validity"]["verdict"] == "fail"
    assert found["validity"]["value"] == pytest.approx(0.2)
    assert found["bias"]["tolerance"] == 0.25


def test_prompts_that_ask_for_labels_have_pass_rates_by_label_and_no_grades(
    make_ratings: Callable[..., Any],
) -> None:
    passing = {"kind": "label", "lowest": None, "highest": None}
    rows = [
        {"sample": f"s{i}", "value": float(i % 2), **more}
        for i in range(4)
        for more in (
            {"prompt": "grade"},
            {"prompt": "rubric", "criterion": "clear", "passes_at": 5.0},
            {"prompt": "gate", **passing},
            {"prompt": "faults", "criterion": "rude", **passing},
        )
    ]
    estimates = mean_rating(ratings=make_ratings(rows))
    assert labelled(estimates) == {"faults"}
