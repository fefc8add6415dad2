import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student

from schemas.results import Drifts, Estimates, Findings
from tasks.aggregate import count_votes
from tasks.conclude import conclude
from tasks.conclusions.summary_scores import _shares, acceptability, least_margins
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.drift.alerts import watch
from tasks.gates.scorecard import scorecard
from tasks.reporting.rows import scorecard_rows
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
WHOLE = {"perturbation": None, "kind": None, "mode": "any", "clusters": 10}
FEW = "fewer than 10 independent questions"


def findings(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "dataset": "demo",
        "judge": "ada",
        "prompt": "plain",
        "wave": "",
        "mode": "balanced",
        "perturbation": "boast",
        "kind": "promote",
        "statistic": "mps",
        "estimate": 0.1,
        "low": 0.07,
        "high": 0.13,
        "minimum": 0.05,
        "finding": "biased",
        "simulated": False,
    }
    return Findings.of(pl.DataFrame([plain | row for row in rows], infer_schema_length=None))


def verdict(estimates: pl.DataFrame, gate: str) -> tuple[str, float | None]:
    rows = scorecard(estimates, Findings.empty()).filter(gate=gate)
    return rows.select("verdict", "margin").row(0)


POSITION = {
    "kind": "position",
    "perturbation": None,
    "mode": "any",
    "statistic": "position_gap",
    "finding": "biased",
    "estimate": 0.1,
    "low": 0.07,
    "high": 0.13,
    "minimum": 0.05,
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("fail", 1 - 0.13 / 0.05)),
        (
            {"finding": "no relevant bias", "estimate": 0.0, "low": -0.03, "high": 0.04},
            ("pass", 1 - 0.04 / 0.05),
        ),
        (
            {"finding": "inconclusive", "estimate": 0.03, "low": -0.02, "high": 0.08},
            ("inconclusive", 1 - 0.08 / 0.05),
        ),
        ({"finding": None, "reason": "few", "low": None, "high": None}, ("inconclusive", None)),
        # One order: in logits.
        (
            {
                "statistic": "position_kappa",
                "estimate": -1.0,
                "low": -1.5,
                "high": -0.5,
                "minimum": 0.25,
            },
            ("fail", 1 - 1.5 / 0.25),
        ),
    ],
)
def test_position_by_its_finding(
    changes: dict[str, Any], expected: tuple[str, float | None]
) -> None:
    found = scorecard(Estimates.empty(), findings({**POSITION, **changes}))
    reported, margin = found.filter(gate="position").select("verdict", "margin").row(0)
    assert reported == expected[0]
    assert margin == (None if expected[1] is None else pytest.approx(expected[1]))


FLAW = {"kind": "detract", "detects_at": 0.5}


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        # The lower bound of one kind of flaw is above .2.
        ([("detects", 0.4, 0.8), ("overlooks", -0.1, 0.1)], "pass"),
        ([("detects some", 0.21, 0.6)], "pass"),
        ([("overlooks", -0.1, 0.1), ("overlooks", -0.2, 0.2)], "fail"),
        # Means 0 and .05: .025 + sqrt(.1^2 + .25^2) / 2 = .16; with 0 and .15: .21.
        ([("overlooks", -0.1, 0.1), ("inconclusive", -0.2, 0.3)], "fail"),
        ([("overlooks", -0.1, 0.1), ("inconclusive", -0.1, 0.4)], "inconclusive"),
        # Too few questions: no finding, so not enough data.
        ([(None, 0.4, 0.8)], "inconclusive"),
        ([], "inconclusive"),
    ],
)
def test_discernment(rows: list[tuple[str | None, float, float]], verdict: str) -> None:
    flaws = [
        {
            **FLAW,
            "perturbation": f"p{i}",
            "finding": finding,
            "detected": (low + high) / 2,
            "detected_low": low,
            "detected_high": high,
        }
        for i, (finding, low, high) in enumerate(rows)
    ]
    found = scorecard(Estimates.empty(), findings({}, *flaws)).filter(gate="discernment")
    assert found["verdict"].to_list() == [verdict]
    reason = None if rows else "no flawed answer was shown"
    if verdict == "fail" and max(high for *_, high in rows) > 0.2:
        # The number shown is the one that decides.
        reason = "mean over the kinds of flaws"
        assert found.select("value", "low", "high").row(0) == pytest.approx(
            (0.025, -0.1096, 0.1596), abs=1e-4
        )
    assert found["reason"].to_list() == [reason]


def test_a_rewarded_flaw_shows_the_shift_that_it_rests_on() -> None:
    shares = {"detected": -0.07, "detected_low": -0.14, "detected_high": 0.01}
    shift = {"estimate": 0.21, "low": 0.16, "high": 0.25}
    flaw = findings({**FLAW, **shares, **shift, "finding": "rewards"})
    gate = scorecard(Estimates.empty(), flaw).filter(gate="bias")
    shown = gate.select("verdict", "value", "low", "high", "tolerance", "margin").row(0)
    # The end of the interval is five times the limit.
    assert shown == ("fail", 0.21, 0.16, 0.25, 0.05, pytest.approx(-4))


@pytest.mark.parametrize(
    ("scored", "verdict"),
    [
        # Means 0 and .05 of D: .025 + sqrt(.1^2 + .25^2) / 2 = .16, though DP is anywhere.
        ([(-0.1, 0.1), (-0.2, 0.3)], "fail"),
        ([(-0.1, 0.1), (-0.1, 0.4)], "inconclusive"),
        # Of one kind D is not known.
        ([(-0.1, 0.1)], "inconclusive"),
        # One kind is seen: the other averages to .2 with it, -.6 and .3.
        ([(-0.7, -0.5), (0.25, 0.35)], "inconclusive"),
    ],
)
def test_no_discernment_by_mean_scores(
    make_estimates: Make, scored: list[tuple[float, float]], verdict: str
) -> None:
    flaw = {
        **FLAW,
        "finding": "inconclusive",
        "detected": 0.2,
        "detected_low": -0.4,
        "detected_high": 0.8,
    }
    shares = make_estimates(
        [
            {
                **WHOLE,
                "statistic": "detection_share",
                "perturbation": f"p{i}",
                "kind": "detract",
                "mode": "balanced",
                "estimate": (low + high) / 2,
                "low": low,
                "high": high,
            }
            for i, (low, high) in enumerate(scored)
        ]
    )
    flaws = findings({**flaw, "perturbation": "p0"}, {**flaw, "perturbation": "p1"})
    found = scorecard(shares, flaws).filter(gate="discernment")
    assert found["verdict"].to_list() == [verdict]
    if verdict == "fail":
        # The mean of the D, which are not the DP that stand beside it.
        assert found["measure"].item() == "mean share detected in mean scores (D)"
        assert found["reason"].item() == "mean over the kinds of flaws; D of p0 .00, p1 .05"
        assert "(mean share detected in mean scores (D) .02 [-.11, .16]" in found["words"].item()


@pytest.mark.parametrize(
    ("high", "verdict", "reason"),
    [(0.14, "fail", "D, the share in mean scores"), (0.3, "inconclusive", None)],
)
def test_of_one_kind_of_flaw_there_is_no_mean(
    make_estimates: Make, high: float, verdict: str, reason: str | None
) -> None:
    seen = {"detected": 0.1, "detected_low": -0.1, "detected_high": 0.38}
    share = {**WHOLE, "statistic": "detection_share", "perturbation": "p0", "kind": "detract"}
    share |= {"mode": "balanced", "estimate": -0.2, "low": -0.53, "high": high}
    flaws = findings({**FLAW, "finding": "inconclusive", **seen, "perturbation": "p0"})
    found = scorecard(make_estimates([share]), flaws).filter(gate="discernment")
    value, which = (-0.2, " in mean scores (D)") if verdict == "fail" else (0.1, "")
    shown = ("verdict", "measure", "value", "reason")
    assert found.select(shown).row(0) == (verdict, f"share detected{which}", value, reason)
    assert "on average" not in found["words"].item()


@pytest.mark.parametrize(
    ("by", "which"), [("detection_power", ""), ("detection_share", " in mean scores (D)")]
)
def test_a_share_detected_says_if_it_is_one_of_mean_scores(by: str, which: str) -> None:
    """The table beside it shows DP or D, which are different numbers."""
    known = {**FLAW, "detected_by": by, "finding": "detects some"}
    seen = [
        known
        | {"perturbation": name, "detected": best - 0.3, "detected_low": best - 0.5}
        | {"detected_high": best}
        for name, best in (("p0", 0.6), ("p1", 0.4))
    ]
    several = f"best share detected{which} over kinds of flaws"
    for flaws, measure in ((seen, several), (seen[:1], f"share detected{which}")):
        found = scorecard(Estimates.empty(), findings(*flaws))
        best = found.filter(gate="discernment")
        assert best["measure"].item() == measure
        assert f" ({measure} .30 [.10, .60], " in best["words"].item()
    reported = found.filter(gate="bias")["words"].item()
    assert f"perhaps too few (share detected{which} .30 [.10, .60], limits" in reported


@pytest.mark.parametrize("seed", range(4))
def test_a_judge_at_random_does_not_discern(make_vote_log: Make, seed: int) -> None:
    draw = random.Random(seed)
    arms = [("control", None), *product(("experimental", "sham"), ("factual_error", "gender_bias"))]
    log = make_vote_log(
        [
            {
                "sample": f"s{sample}",
                "arm": arm,
                "perturbation": name,
                "kind": name and "detract",
                "shown_first": side,
                "repeat": repeat,
                "choice": draw.choice(["first", "second", "tie"]),
            }
            for sample in range(60)
            for arm, name in arms
            for repeat in range(3)
            for side in ("anchor", "target")
        ]
    )
    shifts = match_groups(tally_votes(count_votes(log), "balanced"))
    read = ("mps", "mps_sham", "detection_power")
    estimates = Estimates.of(pl.concat([STATISTICS[name](shifts=shifts) for name in read]))
    gates = scorecard(estimates, conclude(estimates))
    assert gates.filter(gate="discernment")["verdict"].to_list() == ["fail"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.11, 0.3, "fail"), (0.0, 0.1, "pass"), (0.05, 0.2, "inconclusive")],
)
def test_validity(make_estimates: Make, low: float, high: float, expected: str) -> None:
    row = {**WHOLE, "statistic": "invalid_rate", "estimate": low, "low": low, "high": high}
    assert verdict(make_estimates([row]), "validity")[0] == expected


@pytest.mark.parametrize(
    ("low", "high", "missing", "expected"),
    [
        # .03 + .05 and .03 + .08 of the ballots may have an invalid reply.
        (0.0, 0.03, 0.05, ("pass", None)),
        (0.0, 0.03, 0.08, ("inconclusive", ".08 of the ballots have no reply")),
        (0.0, 0.0, 1.0, ("inconclusive", "1.00 of the ballots have no reply")),
        (0.11, 0.3, 0.5, ("fail", None)),
        (0.0, 0.11, 1.0, ("inconclusive", "1.00 of the ballots have no reply")),
        (0.05, 0.2, 0.5, ("inconclusive", ".50 of the ballots have no reply")),
        # More questions would decide.
        (0.0, 0.11, 0.02, ("inconclusive", None)),
    ],
)
def test_validity_counts_ballots_without_a_reply(
    make_estimates: Make, low: float, high: float, missing: float, expected: tuple[str, Any]
) -> None:
    rates = {"invalid_rate": (low, low, high), "missing_rate": (missing, missing, missing)}
    rows = [
        {**WHOLE, "statistic": name, **dict(zip(("estimate", "low", "high"), ends, strict=True))}
        for name, ends in rates.items()
    ]
    [gate] = scorecard(make_estimates(rows), Findings.empty()).filter(gate="validity").to_dicts()
    assert (gate["verdict"], gate["reason"]) == expected
    assert (gate["value"] is None) == (missing == 1)


def test_a_bias_by_its_finding() -> None:
    rows = findings(
        {},
        {"perturbation": "calm", "finding": "no relevant bias", "low": -0.02, "high": 0.03},
        {
            "perturbation": "error",
            "kind": "detract",
            "finding": "detects",
            "detected": 0.8,
            "detected_low": 0.7,
            "detected_high": 0.9,
            "detects_at": 0.5,
        },
        {"perturbation": "few", "finding": None, "reason": "too few", "low": None, "high": None},
        {"perturbation": "open", "finding": "inconclusive", "low": -0.1, "high": 0.1},
    )
    found = scorecard(Estimates.empty(), rows).filter(gate="bias")
    assert found["verdict"].to_list() == ["fail", "pass", "pass", "inconclusive", "inconclusive"]
    # 1 - .13/.05; 1 - .03/.05; .7/.5 - 1: two fifths beyond what detecting takes
    assert found["margin"].to_list() == [
        pytest.approx(-1.6),
        pytest.approx(0.4),
        pytest.approx(0.4),
        None,
        pytest.approx(-1.0),
    ]
    columns, (row,), _ = scorecard_rows(found)
    assert columns == ["boast", "calm", "error", "few", "open"]
    assert [text.text for text in row.texts] == found["verdict"].to_list()
    assert row.texts[3].note == "too few"


APART = "no margin: the adjusted p-value or the effect in logits decides, not this interval"


@pytest.mark.parametrize("clusters", [10, 11, 40, 400])
def test_the_margin_of_a_bias_goes_by_the_interval_of_its_finding(
    make_estimates: Make, clusters: int
) -> None:
    error, clear = 0.02, "no relevant bias"
    half, wide = (error * student.ppf(q, clusters - 1) for q in (0.95, 0.975))
    # .001 inside the minimum by the 90 % interval, and beyond it by the 95 % one
    at = 0.049 - half
    row = {"estimate": at, "low": at - wide, "high": at + wide}
    cell = {"statistic": "mps", "perturbation": "boast", "kind": "promote", "mode": "balanced"}
    estimate = {**cell, **row, "standard_error": error, "clusters": clusters}
    found = scorecard(make_estimates([estimate]), findings({**row, "finding": clear}))
    found = found.filter(gate="bias")
    assert found.select("verdict", "reason").row(0) == ("pass", None)
    # Of the expansion of Student's quantile: .0001 * .02 / .05
    assert found["margin"].item() == pytest.approx(0.001 / 0.05, abs=4e-5)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        # By log-odds; by the estimate and the adjusted p; by the adjusted p alone
        ({"low": 0.01, "high": 0.04, "estimate": 0.025}, "fail"),
        (
            {
                "kind": "detract",
                "finding": "inconclusive",
                "detected": 0.8,
                "detected_low": 0.6,
                "detected_high": 0.9,
                "detects_at": 0.5,
            },
            "inconclusive",
        ),
    ],
)
def test_a_margin_that_contradicts_its_finding_is_none(row: dict[str, Any], verdict: str) -> None:
    found = scorecard(Estimates.empty(), findings(row)).filter(gate="bias")
    assert found.select("verdict", "margin", "reason").row(0) == (verdict, None, APART)
    noted = scorecard(Estimates.empty(), findings({**row, "reason": "over the control"}))
    assert noted.filter(gate="bias")["reason"].item() == f"over the control; {APART}"


LOGITS = {"effect_logits": 0.6, "effect_logits_low": 0.2, "effect_logits_high": 1.0}
SHAM = {"sham_shift": 0.12, "sham_shift_low": 0.07, "sham_shift_high": 0.17}
SMALL = {"estimate": 0.03, "low": 0.01, "high": 0.05, **LOGITS, "statistic": "mps_sham"}
CLEAR = {"finding": "no relevant bias", "estimate": 0.0, "low": -0.02, "high": 0.02, **SHAM}


def test_a_gate_of_easy_pairs_shows_the_effect_that_decides(make_estimates: Make) -> None:
    easy = {**LOGITS, "by_logits": True, "statistic": "mps_sham"}
    cell = {"perturbation": "boast", "kind": "promote", "estimate": 0.6, "clusters": 30}
    # The half width of the 90 % interval: 1.699 (t, 29) times .2.
    rows = make_estimates(
        [
            {"statistic": "mps_sham", **cell, "standard_error": 0.01},
            {"statistic": "los_sham", **cell, "standard_error": 0.2, "low": 0.2, "high": 1.0},
        ]
    )
    gates = scorecard(rows, findings(easy)).filter(gate="bias")
    numbers = ("measure", "value", "low", "high", "tolerance", "verdict")
    assert gates.select(numbers).row(0) == ("effect in logits", 0.6, 0.2, 1.0, 0.25, "fail")
    assert gates["margin"].item() == pytest.approx(1 - (0.6 + 1.699127 * 0.2) / 0.25, abs=1e-6)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (LOGITS, ("biased", "shift", None, None, "forbids")),
        # The shift is below its minimum of .05, so that the effect in logits decides too.
        (SMALL, ("biased", "shift", 0.6, None, "forbids")),
        # Pairs are too easy to move the mean.
        (LOGITS | {"by_logits": True}, ("biased", "effect in logits", None, None, "forbids")),
        (CLEAR | {"statistic": "mps_sham"}, ("no relevant bias", "shift", None, 0.12, "stated")),
        (CLEAR, ("no relevant bias", "shift", None, None, "passed")),
        (
            CLEAR | {"statistic": "mps_sham", "sham_shift": 0.02, "sham_shift_low": -0.01},
            ("no relevant bias", "shift", None, None, "passed"),
        ),
        (
            {**FLAW, "finding": "overlooks", "detected": 0.0, "detected_low": -0.1}
            | {"detected_high": 0.1},
            ("overlooks", "share detected", None, None, "forbids"),
        ),
        ({**FLAW, "finding": "rewards"}, ("rewards", "shift", None, None, "forbids")),
        (
            {**POSITION, **SMALL, "statistic": "position_gap"},
            ("biased", "gap", 0.6, None, "forbids"),
        ),
        (
            {**POSITION, "statistic": "position_kappa", "minimum": 0.25, "estimate": 0.6, **LOGITS},
            ("biased", "effect in logits", None, None, "forbids"),
        ),
    ],
)
def test_a_gate_says_what_it_tests_and_on_what_it_rests(
    row: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    gates = scorecard(Estimates.empty(), findings(row)).filter(pl.col("gate") != "discernment")
    shown = ("finding", "measure", "effect_logits", "sham_shift", "consequence")
    assert gates.select(shown).rows() == [expected]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        # Of the tenth that may be lost, .04 at worst; .15 and more; .05 to .12; more than people.
        (0.96, 1.02, ("pass", 0.6)),
        (0.7, 0.85, ("fail", -2.0)),
        (0.88, 0.95, ("inconclusive", -0.2)),
        (1.05, 1.2, ("pass", 1.5)),
        (None, None, ("inconclusive", None)),
    ],
)
def test_agreement(make_estimates: Make, low: Any, high: Any, expected: tuple[str, Any]) -> None:
    row = {
        **WHOLE,
        "statistic": "ceiling_ratio",
        "subgroup": "humans",
        "estimate": low,
        "low": low,
        "high": high,
    }
    reported, margin = verdict(make_estimates([row]), "agreement")
    assert reported == expected[0]
    assert margin == (None if expected[1] is None else pytest.approx(expected[1]))


@pytest.mark.parametrize(
    ("criteria", "worst", "reported"),
    [
        # (criterion, low, high, clusters): both pass, the smaller margin is worse
        ([("tone", 0.95, 1.1, 20), ("style", 0.92, 1.2, 20)], "style", "pass"),
        # the interval of style reaches farther, but only tone fails
        ([("style", 0.3, 1.2, 20), ("tone", 0.6, 0.8, 20)], "tone", "fail"),
        ([("style", 0.95, 1.1, 20), ("tone", 0.8, 1.2, 20)], "tone", "inconclusive"),
        # one person alone labelled style: there is no ratio, so the gate does not pass
        ([("tone", 0.95, 1.1, 20), ("style", None, None, 20)], "style", "inconclusive"),
        ([("tone", 0.8, 1.2, 20), ("style", None, None, 20)], "tone", "inconclusive"),
        # nine items do not fail, as bad as they look
        ([("tone", 0.95, 1.1, 20), ("style", 0.1, 0.2, 9)], "style", "inconclusive"),
    ],
)
def test_agreement_is_about_the_worst_criterion(
    make_estimates: Make, criteria: list[tuple[Any, ...]], worst: str, reported: str
) -> None:
    rows = [
        {
            **WHOLE,
            "statistic": "ceiling_ratio",
            "subgroup": f"{name}: humans",
            "estimate": low,
            "low": low,
            "high": high,
            "clusters": clusters,
            "reason": None,
        }
        for name, low, high, clusters in criteria
    ]
    [gate] = scorecard(make_estimates(rows), Findings.empty()).to_dicts()
    assert gate["verdict"] == reported
    assert gate["reason"].endswith(f"the worst of 2 criteria: {worst}")
    assert gate["reason"].startswith(FEW) == (criteria[1][3] == 9)


@pytest.mark.parametrize(
    ("part", "alpha", "kappas", "why"),
    [
        ("", (0.1, 0.3), [(0.05, 0.2), (-0.1, 0.1)], None),
        ("", None, [], None),
        ("", (-0.25, 0.05), [(0.1, 0.3)], "people agree with each other hardly better"),
        ("", (0.1, 0.3), [(-0.3, -0.1), (0.0, 0.2)], "it agrees with people hardly better"),
        ("tone", (-0.25, 0.05), [(0.1, 0.3)], "people agree with each other hardly better"),
        ("tone", (0.1, 0.3), [(0.0, 0.2)], "it agrees with people hardly better"),
        # What is said of another criterion, or of another judge, is no matter of this one.
        ("tone", (0.1, 0.3), [(0.1, 0.2)], None),
    ],
)
def test_who_agrees_by_chance_loses_no_agreement_and_passes_nothing(
    make_estimates: Make, part: str, alpha: Any, kappas: list[Any], why: str | None
) -> None:
    def of(who: str, part: str = part) -> str:
        return f"{part}: {who}" if part else who

    def row(statistic: str, subgroup: str, ends: Any, **more: Any) -> dict[str, Any]:
        numbers = {"estimate": sum(ends) / 2, "low": ends[0], "high": ends[1], "reason": None}
        return {**WHOLE, "statistic": statistic, "subgroup": subgroup, **numbers, **more}

    rows = [row("ceiling_ratio", of("humans"), (0.96, 1.1))]
    if alpha:
        of_people = {"judge": "humans", "prompt": "none"}
        rows.append(row("krippendorff_alpha_nominal", part, alpha, **of_people))
        rows.append(row("krippendorff_alpha_nominal", "style", (-0.9, -0.5), **of_people))
    rows += [row("cohen_kappa", of(f"p{n}"), ends) for n, ends in enumerate(kappas)]
    if part:
        rows.append(row("cohen_kappa", "style: p0", (0.4, 0.6)))
    rows.append(row("cohen_kappa", of("p0"), (0.4, 0.6), judge="bea"))
    # Nor what it has in common with another judge.
    rows.append(row("ceiling_ratio", of("humans"), (0.96, 1.1), judge="bea"))
    rows.append(row("cohen_kappa", of("bea"), (0.8, 0.9)))
    [gate] = scorecard(make_estimates(rows), Findings.empty()).filter(judge="ada").to_dicts()
    assert gate["verdict"] == ("inconclusive" if why else "pass")
    assert (gate["reason"] or "").startswith(why or "")
    assert (gate["reason"] is None) == (why is None)
    # The recommendation says so too, as no number of questions would decide it.
    wide = [row("ceiling_ratio", of("humans"), (0.85, 1.25), clusters=40), *rows[1:]]
    [undecided] = scorecard(make_estimates(wide), Findings.empty()).filter(judge="ada").to_dicts()
    assert (undecided["more_questions"] is None) == (why is not None)
    assert gate["words"] is None if why is None else why in gate["words"]
    # A judge that loses too much fails beside any people.
    rows = [row("ceiling_ratio", of("humans"), (0.5, 0.7)), *rows[1:]]
    own = [each for each in rows if each.get("judge") != "bea"]
    assert verdict(make_estimates(own), "agreement")[0] == "fail"


@pytest.mark.parametrize("statistic", ["rating_kappa", "rating_correlation"])
@pytest.mark.parametrize(
    ("ends", "clusters", "expected"),
    [
        # The limit is .2: a margin of .3 / .2 - 1; at most the limit; around it.
        ((0.3, 0.6), 40, ("pass", 0.5)),
        ((-0.1, 0.2), 40, ("fail", -1.5)),
        ((0.2, 0.6), 40, ("inconclusive", 0.0)),
        ((-0.25, 0.35), 44, ("inconclusive", -2.25)),
        ((-0.1, 0.1), 9, ("inconclusive", -1.5)),
        ((None, None), 40, ("inconclusive", None)),
    ],
)
def test_agreement_with_one_label_per_answer_must_exceed_chance(
    make_estimates: Make, statistic: str, ends: Any, clusters: int, expected: Any
) -> None:
    low, high = ends
    row = {**WHOLE, "statistic": statistic, "estimate": low, "low": low, "high": high}
    estimates = make_estimates([row | {"clusters": clusters, "reason": None}])
    reported, margin = verdict(estimates, "agreement")
    assert reported == expected[0]
    assert margin == (None if expected[1] is None else pytest.approx(expected[1]))
    [gate] = scorecard(estimates, Findings.empty()).to_dicts()
    assert gate["tolerance"] == 0.2
    by = {"rating_kappa": "kappa", "rating_correlation": "rank correlation"}
    named = by.get(statistic, "Bennett's S")
    assert gate["measure"] == f"agreement beyond chance, {named}"
    assert gate["reason"].startswith("one label per item does not tell how well people agree")


def test_one_label_per_answer_counts_only_where_people_are_not_compared_with_each_other(
    make_estimates: Make,
) -> None:
    among = {**WHOLE, "statistic": "ceiling_ratio", "subgroup": "humans", "low": 0.96, "high": 1.1}
    alone = {**WHOLE, "statistic": "rating_kappa", "estimate": 0.0, "low": -0.1, "high": 0.1}
    both = make_estimates([among | {"estimate": 1.0}, alone])
    assert verdict(both, "agreement")[0] == "pass"
    criteria = [
        alone | {"subgroup": "tone", "estimate": 0.5, "low": 0.3, "high": 0.7},
        alone | {"subgroup": "style"},
    ]
    [gate] = scorecard(make_estimates(criteria), Findings.empty()).to_dicts()
    assert gate["verdict"] == "fail"
    assert (gate["criterion"], gate["measure"]) == ("style", "agreement beyond chance, kappa")
    assert gate["reason"].endswith("the worst of 2 criteria: style")


@pytest.mark.parametrize(
    ("statistic", "gate", "bounds", "reported"),
    [
        ("invalid_rate", "validity", (0.2, 0.4), "fail"),
        ("invalid_rate", "validity", (0.0, 0.05), "pass"),
        ("ceiling_ratio", "agreement", (0.5, 0.7), "fail"),
        ("ceiling_ratio", "agreement", (0.95, 1.0), "pass"),
    ],
)
def test_nothing_is_reported_with_nine_questions(
    make_estimates: Make, statistic: str, gate: str, bounds: tuple[float, float], reported: str
) -> None:
    low, high = bounds
    row = {**WHOLE, "statistic": statistic, "estimate": low, "low": low, "high": high}
    for clusters, expected in ((9, ("inconclusive", FEW)), (10, (reported, None))):
        found = scorecard(make_estimates([{**row, "clusters": clusters}]), Findings.empty())
        assert found.select("gate", "verdict", "reason").row(0) == (gate, *expected)
        assert found["margin"].item() is not None
        text = scorecard_rows(found)[1][0].texts[0]
        assert text.note.endswith(FEW if clusters < 10 else "]")
        # Words say how many more decide or else how many there are.
        words = found["words"].item() or ""
        said = ("(9 of at least 10 independent questions)", "(about 1 more question)")
        assert words.endswith(said) == (clusters < 10)


def drifts(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "dataset": "demo",
        "judge": "ada",
        "prompt": "plain",
        "wave": "n2",
        "mode": "balanced",
        "perturbation": "boast",
        "measure": "mps_drift",
        "epoch": 1,
        "base": "n1",
        "estimate": 0.0,
        "low": -0.02,
        "high": 0.03,
        "p_value": 0.5,
        "level": 0.01,
        "minimum": 0.05,
        "n": 40,
        "clusters": 40,
        "state": "quiet",
        "simulated": False,
    }
    return Drifts.of(pl.DataFrame([plain | row for row in rows], infer_schema_length=None))


CANARY = {
    "measure": "verdict_drift",
    "mode": "any",
    "perturbation": None,
    "low": None,
    "high": None,
    "minimum": 0.0,
}
UNASKED = {**CANARY, "estimate": None, "p_value": None, "state": "not measured", "reason": "once"}

NINE = {"clusters": 9, "state": "not measured", "reason": FEW}
"""As ``watch`` leaves a change of nine questions."""


@pytest.mark.parametrize(
    ("rows", "reported", "margin", "reason"),
    [
        ([{}], "pass", 0.4, None),
        ([{}, CANARY], "pass", 0.4, None),
        ([{}, UNASKED], "pass", 0.4, None),
        ([{}, {"perturbation": "calm", "high": 0.06}], "inconclusive", -0.2, None),
        (
            [{}, {**CANARY, "state": "suspect"}],
            "inconclusive",
            0.4,
            "suspect, which the next wave must confirm: verdicts",
        ),
        ([{}, {**CANARY, "state": "alert"}], "fail", 0.0, "alert: verdicts"),
        (
            [{"estimate": 0.2, "low": 0.1, "high": 0.3, "state": "alert"}],
            "fail",
            -5.0,
            "alert: shift under boast",
        ),
        (
            [{"p_value": None, "state": "not measured", "reason": "cached"}],
            "inconclusive",
            None,
            "cached",
        ),
        (
            [{}, {"perturbation": "calm", "p_value": None, "state": "not measured"}],
            "inconclusive",
            0.4,
            None,
        ),
        ([{}, {"perturbation": "calm", **NINE}], "inconclusive", 0.4, FEW),
        ([NINE], "inconclusive", 0.4, FEW),
        ([{"clusters": 10}], "pass", 0.4, None),
        ([{}, {**CANARY, **NINE}], "pass", 0.4, None),
    ],
)
def test_drift(
    make_estimates: Make, rows: list[Any], reported: str, margin: float | None, reason: str | None
) -> None:
    # What stands in an earlier wave that is no baseline is no matter of this one.
    frame = drifts(*rows, {"wave": "m1", "base": "m0", "state": "alert"})
    estimates = make_estimates([{**WHOLE, "statistic": "valid_rate", "wave": "n2"}])
    (row,) = scorecard(estimates, Findings.empty(), frame).to_dicts()
    assert (row["gate"], row["mode"], row["wave"], row["verdict"]) == (
        "drift",
        "any",
        "n2",
        reported,
    )
    assert row["margin"] == (None if margin is None else pytest.approx(margin))
    assert row["reason"] == reason


def test_an_alert_is_shown_rather_than_a_change_that_reaches_farther(make_estimates: Make) -> None:
    estimates = make_estimates([{**WHOLE, "statistic": "valid_rate", "wave": "n2"}])
    ratings = {"measure": "rating_drift", "mode": "any", "perturbation": None}
    quiet = {**ratings, "estimate": -0.35, "low": -0.64, "high": -0.06}
    words = {**CANARY, "measure": "text_drift", "estimate": 2.0, "state": "alert"}
    (row,) = scorecard(estimates, Findings.empty(), drifts(quiet, words)).to_dicts()
    shown = ("verdict", "value", "low", "high", "tolerance", "reason")
    assert [row[name] for name in shown] == [
        "fail",
        2.0,
        None,
        None,
        None,
        "alert: texts of replies",
    ]
    # Of three alerts the one that reaches farthest.
    calm = {"perturbation": "calm", "estimate": 0.2, "low": 0.1, "high": 0.3, "state": "alert"}
    rows = drifts(quiet, calm, calm | {"perturbation": "boast", "high": 0.4}, words)
    (row,) = scorecard(estimates, Findings.empty(), rows).to_dicts()
    named = "alert: shift under boast, and 2 other changes"
    assert [row[name] for name in shown[2:]] == [0.1, 0.4, 0.05, named]


def test_the_gate_says_which_row_of_drifts_its_change_is(make_estimates: Make) -> None:
    """Two changes may have the same numbers, and one without an interval has no numbers alike."""
    estimates = make_estimates([{**WHOLE, "statistic": "valid_rate", "wave": "n2"}])
    key = ("measure", "drift_mode", "drift_perturbation")

    def shown(*rows: dict[str, Any]) -> list[Any]:
        (row,) = scorecard(estimates, Findings.empty(), drifts(*rows)).to_dicts()
        return [row[name] for name in key]

    same = {"measure": "dasr_drift", "perturbation": "calm"}
    assert shown({}, same | {"state": "suspect"}) == ["dasr_drift", "balanced", "calm"]
    assert shown({"state": "suspect"}, same) == ["mps_drift", "balanced", "boast"]
    words = {**CANARY, "measure": "text_drift", "estimate": 2.0, "state": "alert"}
    assert shown({}, words) == ["text_drift", "any", None]
    assert shown(UNASKED) == [None, None, None]


@pytest.mark.parametrize(
    ("suspect", "since"),
    [
        ({}, " since wave n1"),
        ({"wave": "n;1"}, " since wave n,1"),
        # A suspicion of another epoch, in the other direction, or of another measure.
        ({"epoch": 2}, ""),
        ({"estimate": -0.2}, ""),
        ({"perturbation": "calm"}, ""),
        (None, ""),
    ],
)
def test_an_alert_says_in_which_wave_the_change_was_first_seen(
    make_estimates: Make, suspect: dict[str, Any] | None, since: str
) -> None:
    estimates = make_estimates([{**WHOLE, "statistic": "valid_rate", "wave": "n2"}])
    change = {"estimate": 0.2, "low": 0.1, "high": 0.3}
    first = change | {"wave": "n1", "base": "n0", "state": "suspect"}
    # Two suspects, of which the first may have been cleared: the wave is not known.
    before = [first, first | {"wave": "n0"}] if suspect is None else [first | suspect]
    frame = drifts(change | {"state": "alert"}, *before)
    (row,) = scorecard(estimates, Findings.empty(), frame).to_dicts()
    assert row["reason"] == f"alert: shift under boast{since}"


@pytest.mark.parametrize(
    ("half", "reason"),
    # The interval of the named change alone leaves the gate open; or it is the other that does.
    [(0.3, None), (0.03, FEW)],
)
def test_drift_gives_the_reason_of_the_change_that_it_names(
    make_estimates: Make, half: float, reason: str | None
) -> None:
    estimates = make_estimates([{**WHOLE, "statistic": "valid_rate", "wave": "n2"}])
    named = {"low": -half, "high": half}
    few = {"measure": "dasr_drift", "state": "not measured", "reason": FEW, "clusters": 8}
    frame = drifts(named, few | {"low": -0.01, "high": 0.01, "minimum": 0.1})
    (row,) = scorecard(estimates, Findings.empty(), frame).to_dicts()
    assert (row["verdict"], row["high"]) == ("inconclusive", half)
    assert (row["reason"], row["too_few"]) == (reason, reason is not None)


@pytest.mark.parametrize(
    ("alert", "said"),
    [
        ({}, "a change since wave n1, confirmed in wave n2"),
        ({"wave": "n;2"}, None),
        ({"judge": "bea"}, None),
        ({"state": "quiet"}, None),
    ],
)
def test_the_wave_after_an_alert_says_what_its_baseline_follows(
    make_estimates: Make, alert: dict[str, Any], said: str | None
) -> None:
    estimates = make_estimates([{**WHOLE, "statistic": "valid_rate", "wave": "n3"}])
    change = {"estimate": 0.2, "low": 0.1, "high": 0.3, "base": "n0"}
    suspect = change | {"wave": "n1", "state": "suspect"}
    confirmed = change | {"wave": "n2", "state": "alert"}
    now = {"wave": "n3", "base": "n2", "estimate": 0.0, "low": -0.2, "high": 0.2, "epoch": 2}
    frame = drifts(suspect, confirmed | alert, now | {"state": "quiet"})
    (row,) = scorecard(estimates, Findings.empty(), frame).to_dicts()
    assert (row["verdict"], row["earlier_change"]) == ("inconclusive", said)
    assert row["reason"] == (f"its baseline follows {said}" if said else None)
    assert row["words"].startswith("drift is inconclusive (")
    assert row["words"].endswith(f") and its baseline follows {said}" if said else ")")


def test_a_judge_that_repeats_itself_passes_the_gate(
    make_vote_log: Make, make_shifts: Make, make_estimates: Make
) -> None:
    # Temperature 0: 200 questions, the same replies in both waves, each order two times.
    log = [
        {
            "wave": wave,
            "sample": f"s{n:03}",
            "shown_first": side,
            "repeat": repeat,
            "choice": "first" if n % 2 else "second",
            "label": "tie",
        }
        for wave in ("n1", "n2")
        for n in range(200)
        for side in ("anchor", "target")
        for repeat in range(2)
    ]
    rows = [{"control": "tie", "sham": "tie", "experimental": "target"}] * 200
    shifts = pl.concat([make_shifts(rows, wave=wave) for wave in ("n1", "n2")])
    found = watch(count_votes(make_vote_log(log)), shifts)
    assert set(found["state"]) == {"quiet"}
    estimates = make_estimates([{**WHOLE, "statistic": "valid_rate", "wave": "n2"}])
    (row,) = scorecard(estimates, Findings.empty(), found).to_dicts()
    assert (row["gate"], row["verdict"], row["value"]) == ("drift", "pass", 0.0)
    # Shifts come closest: 2 z^2 / (200 + z^2) of .05.
    assert row["margin"] == pytest.approx(1 - 2 * 1.959964**2 / 203.841459 / 0.05, abs=1e-6)


def test_least_margin_is_that_of_the_worst_gate(make_estimates: Make) -> None:
    valid = {**WHOLE, "statistic": "invalid_rate", "estimate": 0.0, "low": 0.0, "high": 0.05}
    gates = scorecard(
        make_estimates([valid, {**valid, "judge": "bea"}]),
        findings({}, {"judge": "bea", "low": None, "high": None, "finding": None}),
    )
    # ada: .5 of validity, 1 - .13/.05 of the bias; bea's bias is unknown.
    assert least_margins(gates).select("judge", "margin", "gate", "gates").rows() == [
        ("ada", pytest.approx(-1.6), "boast", 2),
        ("bea", None, "boast", 2),
    ]
    assert least_margins(gates)["reason"].to_list() == [None, "no interval"]
    assert least_margins(gates.clear()).is_empty()


@pytest.mark.parametrize(
    ("clusters", "expected"), [(9, (None, "validity", FEW)), (10, (0.5, "validity", None))]
)
def test_nine_questions_have_no_least_margin(
    make_estimates: Make, clusters: int, expected: tuple[Any, ...]
) -> None:
    valid = {**WHOLE, "statistic": "invalid_rate", "estimate": 0.0, "low": 0.0, "high": 0.05}
    gates = scorecard(make_estimates([{**valid, "clusters": clusters}]), Findings.empty())
    assert least_margins(gates).select("margin", "gate", "reason").row(0) == expected


def test_nothing_gives_nothing() -> None:
    found = scorecard(Estimates.empty(), Findings.empty())
    assert found.is_empty()
    assert scorecard_rows(found) == ([], [], [])


def shifts(make_shifts: Make, judges: dict[str, tuple[float | None, float | None]]) -> pl.DataFrame:
    random = np.random.default_rng(1)
    return make_shifts(
        [
            {
                "judge": judge,
                "sample": f"s{n:02}",
                "perturbation": name,
                "kind": kind,
                "control_score": 0.5,
                "experimental_score": float(np.clip(random.normal(0.5 + mean, 0.03), 0, 1)),
            }
            for judge, means in judges.items()
            for name, kind, mean in zip(
                ("boast", "error"), ("promote", "detract"), means, strict=True
            )
            if mean is not None
            for n in range(30)
        ]
    )


def test_a_judge_that_is_best_in_everything_is_always_first(make_shifts: Make) -> None:
    frame = shifts(make_shifts, {"a": (0.2, 0.0), "b": (0.0, -0.4), "c": (-0.2, -0.1)})
    found = acceptability(frame)
    assert found.select("judge", "first", "criteria").rows() == [
        ("a", 0.0, 2),
        ("b", 1.0, 2),
        ("c", 0.0, 2),
    ]
    other = frame.sample(fraction=1, shuffle=True, seed=2).with_columns(
        pl.col("judge", "cluster", "perturbation", "kind").cast(pl.Categorical)
    )
    assert acceptability(other).equals(found)


def test_weights_decide_between_two_strengths(make_shifts: Make) -> None:
    # Losses w .3 - (1 - w) .4 and w 0 - (1 - w) .1: equal at w = .5, which half the weights exceed.
    found = acceptability(shifts(make_shifts, {"a": (0.3, -0.4), "b": (0.0, -0.1)}))
    assert found["first"].to_list() == pytest.approx([0.5, 0.5], abs=0.06)
    assert found["first"].sum() == pytest.approx(1)


def test_equals_share_and_who_lacks_a_perturbation_is_left_out(make_shifts: Make) -> None:
    same = shifts(make_shifts, {"a": (0.1, -0.1), "c": (0.0, None)})
    twin = same.filter(judge="a").with_columns(judge=pl.lit("b"))
    found = acceptability(pl.concat([same, twin]))
    assert found.select("judge", "first").rows() == [("a", 0.5), ("b", 0.5), ("c", None)]
    assert acceptability(make_shifts([])).is_empty()


def test_judges_that_share_no_perturbation_have_no_chance(make_shifts: Make) -> None:
    found = acceptability(shifts(make_shifts, {"a": (0.1, None), "b": (None, -0.1)}))
    assert found.select("judge", "first", "criteria").rows() == [("a", None, 2), ("b", None, 2)]
    assert found["reason"].to_list() == ["no shift under error", "no shift under boast"]


def scores(make_shifts: Make, judges: dict[str, list[float | None]], **more: Any) -> pl.DataFrame:
    return make_shifts(
        [
            {
                "judge": judge,
                "sample": f"s{n:02}",
                "control_score": 0.5,
                "experimental_score": None if shift is None else 0.5 + shift,
            }
            for judge, shifts in judges.items()
            for n, shift in enumerate(shifts)
        ],
        **more,
    )


UNSHARED = "shares too few questions with the other judges: fewer than 10"


@pytest.mark.parametrize(
    ("judges", "first", "reason"),
    [
        # Alike on what both have: the half that b did not read must not decide.
        (
            {"a": [0.0, 0.3] * 10 + [0.5] * 10, "b": [0.0, 0.3] * 10 + [None] * 10},
            [0.5, 0.5],
            [None, None],
        ),
        # b has one question of twenty, so in a third of the draws none: that is not a shift of 0.
        (
            {"a": [0.5] * 10 + [0.0] * 10, "b": [0.5] + [None] * 19},
            [None, None],
            ["a single judge: nothing to rank", f"{FEW} under boast"],
        ),
        ({"a": [0.0] * 9, "b": [0.3] * 9}, [None, None], [f"{FEW} under boast"] * 2),
        ({"a": [0.0] * 10, "b": [0.3] * 10}, [1.0, 0.0], [None, None]),
        (
            {"a": [0.0] * 10 + [None] * 10, "b": [None] * 10 + [0.3] * 10},
            [None, None],
            [UNSHARED] * 2,
        ),
        (
            {"a": [0.0] * 20, "b": [0.3] * 20, "c": [None] * 11 + [0.0] * 9 + [0.1]},
            [1.0, 0.0, None],
            [None, None, UNSHARED],
        ),
    ],
)
def test_chances_rest_on_ten_questions_that_all_judges_saw(
    make_shifts: Make, judges: dict[str, list[float | None]], first: list[Any], reason: list[Any]
) -> None:
    found = acceptability(scores(make_shifts, judges))
    assert found.select("first", "reason").rows() == list(zip(first, reason, strict=True))


def test_each_perturbation_needs_its_ten_questions(make_shifts: Make) -> None:
    # Of boast 20 questions are shared, of error 9: without c they are 20.
    whole: list[float | None] = [0.0] * 20
    boast = scores(make_shifts, {"a": whole, "b": [0.2] * 20, "c": whole})
    error = scores(
        make_shifts,
        {"a": whole, "b": [0.2] * 20, "c": [0.0] * 9 + [None] * 11 + [0.0]},
        perturbation="error",
        kind="detract",
    )
    found = acceptability(pl.concat([boast, error]))
    assert found.select("first", "reason").rows() == [(1.0, None), (0.0, None), (None, UNSHARED)]


def test_a_draw_without_a_perturbation_is_dropped() -> None:
    # Of two questions one has samples, so a quarter of the draws have none, and would be a tie.
    num = np.array([[[0.1], [0.2]], [[0.0], [0.0]]])
    den = np.array([[[1.0]], [[0.0]]])
    assert _shares(num, den, np.array([True])).tolist() == [1.0, 0.0]


def test_people_have_no_gates(make_estimates: Make) -> None:
    rows = [
        {
            **WHOLE,
            "statistic": "invalid_rate",
            "judge": who,
            "estimate": 0.0,
            "low": 0,
            "high": 0.05,
        }
        for who in ("ada", "ben")
    ]
    people = pl.DataFrame({"dataset": ["demo"], "judge": ["ben"]})
    biased = findings({}, {"judge": "ben"})
    assert {*scorecard(make_estimates(rows), biased)["judge"]} == {"ada", "ben"}
    assert {*scorecard(make_estimates(rows), biased, None, people)["judge"]} == {"ada"}


def test_a_shift_of_grades_has_its_unit(make_estimates: Make) -> None:
    graded = {"statistic": "rating_shift_sd", "unit": "sd", "minimum": 0.25, "finding": "biased"}
    found = findings(graded | {"estimate": 1.05, "low": 0.74, "high": 1.36})
    gates = scorecard(make_estimates([]), found).filter(gate="bias")
    assert gates["measure"].to_list() == ["shift in SD"]
    assert gates["words"].item().endswith(" (1.05 [.74, 1.36] SD, limit .25)")
