"""Limits of a study decide, and are kept with what they decided."""

from collections.abc import Callable
from typing import Any

import polars as pl

from schemas.results import Drifts
from tasks.conclude import conclude
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
