"""Limits of a study decide, and are kept with what they decided."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.results import Drifts
from tasks.aggregate import count_votes
from tasks.conclude import conclude
from tasks.conclusions.summary_scores import least_margins
from tasks.drift.alerts import watch
from tasks.kit.defaults import Thresholds
from tasks.results import conclusions_of, results_of

Make = Callable[..., Any]
CELL = {
    "perturbation": "boast",
    "kind": "promote",
    "standard_error": 0.01,
    "low": 0.04,
    "high": 0.08,
    "p_value": 0.001,
    "clusters": 40,
    "n": 40,
}
TIED = Thresholds(most_position_gap=0.49, most_ties=0.1)
WHOLE = {**CELL, "perturbation": None, "kind": None, "mode": "any"}
ROWS = [
    {**CELL, "statistic": "mps", "estimate": 0.06},
    {**CELL, "statistic": "mps_contrast", "subgroup": "bea", "estimate": 0.06},
    {**CELL, "statistic": "jury_mps", "judge": "jury/all", "estimate": 0.06},
    {**WHOLE, "statistic": "position_gap", "estimate": 0.06},
    {**WHOLE, "statistic": "tie_rate", "estimate": 0.06},
    {**WHOLE, "statistic": "invalid_rate", "estimate": 0.06},
]


def words(make_estimates: Make, thresholds: Thresholds) -> dict[str, Any]:
    estimates = make_estimates(ROWS)
    findings = conclude(estimates, thresholds=thresholds)
    found = conclusions_of(estimates, findings, Drifts.empty(), thresholds)
    cells = findings.filter(pl.col("perturbation").is_not_null(), judge="ada")
    return {
        "cell": cells.select("finding", "minimum").row(0),
        "pair": found.contrasts.select("finding", "minimum").row(0),
        "jury": found.jury_findings.select("finding", "minimum").row(0),
        "excluded": found.exclusions.select("reasons", "tie_rate_limit").row(0),
        "validity": found.gates.filter(gate="validity").select("verdict", "tolerance").row(0),
    }


def test_defaults_are_those_of_the_methods(make_estimates: Make) -> None:
    assert words(make_estimates, Thresholds()) == {
        "cell": ("biased", 0.05),
        "pair": ("biased", 0.05),
        "jury": ("biased", 0.05),
        "excluded": (None, 0.80),
        "validity": ("pass", 0.10),
    }


def test_a_study_sets_its_own(make_estimates: Make) -> None:
    # Of .06 +- .017 (90 %) nothing reaches .1, and all of it lies inside.
    limits = Thresholds(minimum_shift=0.1, most_ties=0.03, most_invalid=0.03)
    assert words(make_estimates, limits) == {
        "cell": ("no relevant bias", 0.1),
        "pair": ("no relevant bias", 0.1),
        "jury": ("no relevant bias", 0.1),
        "excluded": ("tie rate, invalid rate", 0.03),
        "validity": ("fail", 0.03),
    }


def test_means_leave_out_whom_the_study_excludes(make_vote_log: Make) -> None:
    # Bea says tie in a third of her votes on control pairs, Ada never.
    log = make_vote_log(
        [
            {
                "judge": judge,
                "sample": f"s{sample:02}",
                "arm": arm,
                "perturbation": perturbation,
                "kind": perturbation and "promote",
                "shown_first": side,
                "choice": "tie" if judge == "bea" and sample % 3 == 0 else "first",
            }
            for judge in ("ada", "bea")
            for sample in range(30)
            for arm, perturbation in (("control", None), ("experimental", "boast"))
            for side in ("anchor", "target")
        ]
    )
    kept = {
        limits.most_ties: results_of(log, "balanced", thresholds=limits).estimates.filter(
            statistic="mean_shift", subgroup="kept"
        )
        for limits in (Thresholds(most_position_gap=0.49), TIED)
    }
    assert {limit: rows.height for limit, rows in kept.items()} == {0.8: 0, 0.1: 1}


EVEN = {"low": -0.02, "high": 0.02, "p_value": 0.5, "estimate": 0.0}
FLAW = {**CELL, "kind": "detract", **EVEN}
MOST = {**EVEN, "low": 0.55, "high": 0.65, "estimate": 0.6}


@pytest.mark.parametrize(
    ("limits", "rows", "before", "after"),
    [
        ({"fewest_questions": 41}, [], "biased", None),
        (
            {"most_unanimous": 0.95},
            [
                {**CELL, **EVEN, "statistic": "unanimous_rate", "estimate": 0.9},
                {**CELL, **EVEN, "statistic": "los", "standard_error": 0.1},
            ],
            "no relevant bias",  # by log-odds of 0 +- .17
            "biased",
        ),
        (
            {"overlooks_below": 0.1},
            [
                {**FLAW, "statistic": "mps"},
                {**FLAW, "statistic": "detection_share", "high": 0.15, "estimate": 0.05},
            ],
            "overlooks",
            "inconclusive",
        ),
        (
            {"least_floor": 0.3},
            [
                {**FLAW, "statistic": "mps"},
                {**FLAW, **MOST, "statistic": "detection_power"},
                {**FLAW, "statistic": "sham_floor", "estimate": 0.2},
                {**FLAW, "statistic": "detection_share", "low": 0.1, "high": 0.3},
            ],
            "detects",
            "detects some",
        ),
        (
            {"minimum_lost": 0.2},
            [
                {**CELL, "statistic": "mps", **EVEN},
                {**CELL, "statistic": "lost_over_sham", "estimate": 0.1},
            ],
            "inconclusive",
            "no relevant bias",
        ),
        (
            {"most_lost": 0.3},
            [
                {**CELL, "statistic": "mps", **EVEN},
                {**CELL, **EVEN, "statistic": "lost_rate", "subgroup": "sham", "estimate": 0.2},
            ],
            "inconclusive",
            "no relevant bias",
        ),
        (
            {"minimum_spread": 0.3},
            [
                {**CELL, "statistic": "mps", **EVEN},
                {**CELL, "statistic": "shift_spread", "estimate": 0.2},
                {**CELL, "statistic": "mean_square_shift", "estimate": 0.04},
            ],
            "mixed",
            "no relevant bias",
        ),
        (
            {"spread_alpha": 0.06},
            [
                {**CELL, "statistic": "mps", **EVEN},
                {**CELL, "statistic": "shift_spread", "estimate": 0.2},
                {**CELL, "statistic": "mean_square_shift", "estimate": 0.04, "p_value": 0.08},
            ],
            "inconclusive",
            "no relevant bias",
        ),
    ],
)
def test_each_limit_decides_the_finding(
    make_estimates: Make, limits: dict[str, Any], rows: list[Any], before: str, after: str | None
) -> None:
    whole = [row for row in rows if row["statistic"] == "mps"] or [ROWS[0]]
    estimates = make_estimates([*whole, *(row for row in rows if row not in whole)])
    found = [conclude(estimates, thresholds=each) for each in (Thresholds(), Thresholds(**limits))]
    assert [findings["finding"].item() for findings in found] == [before, after]


def test_a_reason_names_the_number_of_questions_that_it_takes(make_estimates: Make) -> None:
    limits = Thresholds(fewest_questions=41)
    findings = conclude(make_estimates(ROWS), thresholds=limits)
    assert set(findings["reason"]) == {"fewer than 41 independent questions"}
    gates = conclusions_of(make_estimates(ROWS), findings, Drifts.empty(), limits).gates
    reported = gates.filter(pl.col("gate") != "discernment")["reason"]
    assert set(reported) == {"fewer than 41 independent questions"}
    # The number of a gate with too few questions is no margin, whatever the limit was.
    assert least_margins(gates)["margin"].to_list() == [None]


def test_an_estimate_says_whether_its_questions_are_enough(make_vote_log: Make) -> None:
    log = make_vote_log(
        [
            {"sample": f"s{sample}", "shown_first": side, "choice": "first"}
            for sample in range(4)
            for side in ("anchor", "target")
        ]
    )
    for limits, reported in ((Thresholds(), 10), (Thresholds(fewest_questions=4), None)):
        (row,) = (
            results_of(log, "balanced", thresholds=limits)
            .estimates.filter(pl.col("perturbation").is_null(), statistic="tie_rate")
            .to_dicts()
        )
        assert row["too_few"] == (reported and f"fewer than {reported} independent questions")


def test_a_study_sets_what_change_is_an_alert(make_vote_log: Make, make_shifts: Make) -> None:
    tallies = count_votes(make_vote_log([{"wave": wave} for wave in ("n1", "n2")]))
    won = {"n1": ["anchor"] * 40, "n2": ["target"] * 12 + ["anchor"] * 28}
    shifts = pl.concat(
        make_shifts([{"control": "anchor", "experimental": to} for to in verdicts], wave=wave)
        for wave, verdicts in won.items()
    )
    for limits, reported in (
        (Thresholds(), ("suspect", 0.05)),
        (Thresholds(minimum_shift_drift=0.4), ("quiet", 0.4)),
        (Thresholds(fewest_questions=41), ("not measured", 0.05)),
    ):
        found = watch(tallies, shifts, thresholds=limits).filter(measure="mps_drift")
        assert found.select("state", "minimum").row(0) == reported
