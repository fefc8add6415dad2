"""Whether to use a judge, from its gates; expected words and numbers are worked out by hand."""

import re
from collections.abc import Callable
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.results import (
    BEST_DETECTED,
    BEYOND_CHANCE,
    DETECTED,
    GATES,
    IN_LOGITS,
    MEAN_DETECTED,
    Findings,
    Gates,
)
from tasks.gates.more_questions import more_questions
from tasks.gates.recommendations import recommend
from tasks.gates.scorecard import explained
from tasks.kit.defaults import DEFAULTS, Thresholds, limited_by

Make = Callable[..., Any]
Row = dict[str, Any]
ADA = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": ""}
WHOLE = {"mode": "any", "perturbation": None}
UNKNOWN = (
    *("control", "shift_spread", "spread_p", "odds", "most_lost"),
    *("no_reply", "p_value", "p_adjusted"),
)
TEXTS = dict.fromkeys(("lost_finding", "measure"), pl.lit(None, pl.String))
FACTS = {
    **Gates.dtypes(),
    **Findings.dtypes(),
    **dict.fromkeys(("few", "why"), pl.String),
    **dict.fromkeys(("clusters", "criteria", "questions", "base_questions"), pl.Int64),
    **dict.fromkeys(("odds", "standard_error"), pl.Float64),
    **dict.fromkeys(("sham_shift_low", "sham_shift_high"), pl.Float64),
    "contradicted": pl.Boolean,
}
"""Columns that a gate has before its texts are written."""
NARROWER = NormalDist().inv_cdf(0.95) / NormalDist().inv_cdf(0.975)


MEASURES = {"bias": "shift", "position": "gap", "discernment": DETECTED}


def gate(name: str, verdict: str = "pass", **changes: Any) -> Row:
    about = {"mode": "balanced", "perturbation": "boast"} if name == "bias" else WHOLE
    numbers = {"value": 0.01, "low": -0.01, "high": 0.03, "tolerance": 0.05, "margin": 0.4}
    plain = {**ADA, **about, "gate": name, "simulated": False, **numbers, "verdict": verdict}
    return {**plain, "measure": MEASURES.get(name), **changes}


def finding(word: str | None, **changes: Any) -> Row:
    plain = {"mode": "balanced", "perturbation": "boast", "kind": "promote", "statistic": "mps"}
    return {**ADA, **plain, "minimum": 0.05, "finding": word, **changes}


@pytest.fixture(scope="session")
def recommended(make_estimates: Make) -> Callable[..., list[Row]]:
    def rows(
        *gates: Row,
        findings: list[Row] | None = None,
        clusters: int = 40,
        beside: list[Row] | None = None,
    ) -> list[Row]:
        said = [finding(None)] if findings is None else findings
        facts = [
            {"clusters": clusters, "questions": clusters} | row | _followed(row, said)
            for row in gates
        ]
        known = explained(pl.DataFrame(facts, schema=FACTS, strict=False))
        whole = {**ADA, **WHOLE, "kind": None, "clusters": clusters, "subgroup": ""}
        sized = [{**whole, **row} for row in beside or [{"statistic": "invalid_rate"}]]
        return recommend(Gates.of(known), make_estimates(sized)).to_dicts()

    return rows


def _followed(gate: Row, findings: list[Row]) -> Row:
    """Return what a gate has of the finding that it follows."""
    about = "position" if gate["gate"] == "position" else gate["perturbation"]
    for row in findings:
        if about == ("position" if row["kind"] == "position" else row["perturbation"]):
            flaw = row["kind"] == "detract" and row["finding"] != "rewards"
            measure = {"measure": DETECTED} if flaw else {}
            said = {name: value for name, value in row.items() if name not in gate}
            return {"standard_error": 0.1, "odds": row.get("effect_logits"), **said, **measure}
    return {}


EVERY = ("position", "validity", "bias", "discernment", "agreement", "drift")


def test_a_judge_that_passes_all_gates_is_recommended(recommended: Any) -> None:
    [row] = recommended(*map(gate, EVERY))
    assert row["recommendation"] == "use"
    assert (row["passed"], row["failed"], row["inconclusive"]) == (6, 0, 0)
    assert (
        row["reasons"] is row["undecided"] is row["more_questions"] is row["not_measured"] is None
    )


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        ("position", "prefers the first slot"),
        ("drift", "has changed since its baseline"),
        ("validity", "invalid replies"),
        ("discernment", "does not detect flaws"),
        ("agreement", "agrees less with people than people with each other"),
    ],
)
def test_a_failed_gate_forbids_the_use(recommended: Any, failed: str, reason: str) -> None:
    wrong = gate(failed, "fail", value=0.3, low=0.2, high=0.404, tolerance=0.1, margin=-3.0)
    [row] = recommended(gate("bias"), wrong)
    assert row["recommendation"] == "do not use"
    share = "share detected " if failed == "discernment" else ""
    assert row["reasons"] == f"{reason} ({share}.30 [.20, .40], limit .10)"


def test_shares_of_flaws_detected_say_whether_they_are_of_one_kind_or_a_mean(
    recommended: Any,
) -> None:
    """One number per kind of flaw, and another of all: neither contradicts the other."""
    all_kinds = {"value": -0.37, "low": -0.85, "high": 0.12, "tolerance": 0.2, "margin": -5.25}
    one = {"value": -0.09, "low": -0.67, "high": 0.49, "tolerance": 0.5, "margin": -2.34}
    kinds = [
        finding("inconclusive", kind="detract", perturbation=name, detects_at=0.5)
        for name in ("factual_error", "gender_bias")
    ]
    rows = [
        gate("bias", "inconclusive", perturbation="factual_error", **one),
        gate("validity"),
    ]
    failed = gate("discernment", "fail", measure=MEAN_DETECTED, **all_kinds)
    [row] = recommended(*rows, failed, findings=kinds, clusters=1)
    assert row["reasons"].startswith(
        "does not detect flaws on average (mean share detected -.37 [-.85, .12], limit .20); "
        "factual error is inconclusive ("
    )
    [row] = recommended(*rows, failed | {"measure": BEST_DETECTED}, findings=kinds)
    best = "best share detected over kinds of flaws -.37 [-.85, .12], limit .20"
    assert row["reasons"].startswith(f"does not detect flaws ({best}); ")
    # No number of questions up to ten times those asked decides a share that lies at its limit.
    at_limit = rows[0] | {"value": 0.5, "low": -0.1, "high": 1.1}
    [row] = recommended(at_limit, gate("validity"), findings=kinds)
    assert row["reasons"] == (
        "factual error is inconclusive (share detected .50 [-.10, 1.10], limits .20 and .50)"
    )


def test_an_alert_says_what_has_changed(recommended: Any) -> None:
    texts = {"changed": "texts of replies", "margin": None}
    [row] = recommended(gate("bias"), gate("drift", "fail", value=2.0, tolerance=None, **texts))
    assert row["reasons"] == "has changed since its baseline: texts of replies"
    seen = "ratings since wave n6"
    ratings = {"value": -0.35, "low": -0.64, "high": -0.06, "tolerance": 0.05, "margin": -11.8}
    [row] = recommended(gate("bias"), gate("drift", "fail", changed=seen, **ratings))
    said = "has changed since its baseline: ratings since wave n6 (-.35 [-.64, -.06], limit .05)"
    assert row["reasons"] == said


@pytest.mark.parametrize(
    ("word", "kind", "reason"),
    [
        ("biased", "promote", "biased by boast"),
        ("overlooks", "detract", "overlooks boast"),
        ("rewards", "detract", "rewards boast"),
        ("mixed", "promote", "mixed under boast"),
        ("detects some", "detract", "detects some of boast, perhaps too few"),
    ],
)
def test_a_finding_against_a_judge_forbids_or_limits_its_use(
    recommended: Any, word: str, kind: str, reason: str
) -> None:
    partly = word in {"mixed", "detects some"}
    verdict = "inconclusive" if partly else "fail"
    [row] = recommended(gate("bias", verdict), findings=[finding(word, kind=kind)])
    assert row["recommendation"] == ("use with care" if partly else "do not use")
    limit = "limits .20 and .05" if word == "detects some" else "limit .05"
    share = "share detected " if word in {"overlooks", "detects some"} else ""
    assert row["reasons"] == f"{reason} ({share}.01 [-.01, .03], {limit})"


def test_a_slot_preferred_by_its_effect_in_logits_says_what_is_significant(
    recommended: Any,
) -> None:
    """The interval of the effect contains 0: the p-value is that of the gap (methods, 16)."""
    gap = {"value": -0.04, "low": -0.07, "high": -0.01, "margin": None}
    position = {"kind": "position", "statistic": "position_gap", **WHOLE, "p_adjusted": 0.0213}
    position |= {"effect_logits": -0.44, "effect_logits_low": -0.96, "effect_logits_high": 0.09}
    rest = gate("position", "fail", **gap), gate("validity")
    [row] = recommended(*rest, findings=[finding("biased", **position)])
    assert row["reasons"] == (
        "prefers the second slot (gap -.04 [-.07, -.01], adjusted p .021, and effect in logits "
        "-.44, limit .25)"
    )


def test_a_bias_whose_size_is_in_logits_shows_the_effect_beside_the_shift(
    recommended: Any,
) -> None:
    shift = {"value": 0.03, "low": 0.0, "high": 0.06, "margin": None}
    [row] = recommended(
        gate("bias", "fail", **shift),
        findings=[finding("biased", p_adjusted=0.0001, effect_logits=0.69)],
    )
    assert row["reasons"] == (
        "biased by boast (shift .03 [.00, .06], adjusted p <.001, and effect in logits .69, "
        "limit .25)"
    )


EASY = {"measure": IN_LOGITS, "tolerance": 0.25, "margin": None}
"""A gate of pairs that are too easy to move the mean."""


def test_a_bias_of_easy_pairs_shows_the_effect_that_decides(recommended: Any) -> None:
    failed = gate("bias", "fail", **EASY, value=0.6, low=0.2, high=1.0)
    [row] = recommended(failed, findings=[finding("biased")])
    assert row["reasons"] == "biased by boast (effect in logits .60 [.20, 1.00], limit .25)"


@pytest.mark.parametrize(
    ("half", "more"),
    [
        # 90 % of the values expected after N questions in all must lie within .25 less the half
        # width then: with +-.5 from 40 questions none of up to 400 suffices (half width .13 then,
        # .12 left, and the estimate may have moved by .24 in either direction).
        (0.5, False),
        (0.3, True),
    ],
)
def test_questions_about_easy_pairs_are_those_that_the_effect_needs(
    recommended: Any, half: float, *, more: bool
) -> None:
    wide = gate("bias", "inconclusive", **EASY, value=0.0, low=-half, high=half)
    [row] = recommended(gate("validity"), wide, findings=[finding("inconclusive")], clusters=40)
    assert (row["more_questions"] is not None) == more


@pytest.mark.parametrize(
    ("moved_p", "unit", "spread"),
    [
        (0.01, "score", "shifts differ between questions: spread of true shifts .23 [.15, .30]"),
        (0.2, "score", "the shift differs between categories: -.20 in math"),
        (None, "sd", "the shift differs between criteria: -.20 in math"),
    ],
)
@pytest.mark.parametrize("by_logits", [False, True])
def test_a_mixed_bias_names_the_spread_that_it_rests_on(
    recommended: Any, moved_p: float | None, unit: str, spread: str, *, by_logits: bool
) -> None:
    numbers = {"shift_spread": 0.23, "shift_spread_low": 0.15, "shift_spread_high": 0.3}
    parts = {"category": "math", "category_shift": -0.2, "moved_p": moved_p, "unit": unit}
    odds = {"effect_logits": 0.1 if by_logits else None, "by_logits": by_logits}
    known = finding("mixed", **numbers, **parts, **odds)
    [row] = recommended(gate("bias", "inconclusive"), findings=[known])
    assert row["reasons"] == f"mixed under boast ({spread})"


def test_the_most_serious_reason_comes_first(recommended: Any) -> None:
    [row] = recommended(
        gate("position", "fail", margin=-9.0),
        gate("bias", "fail", margin=-1.0),
        gate("bias", "fail", margin=-4.0, perturbation="padding_words"),
        gate("validity", "fail", margin=-0.1),
        gate("agreement", "fail", margin=-0.2),
        findings=[finding("biased"), finding("biased", perturbation="padding_words")],
    )
    assert row["recommendation"] == "do not use"
    assert [reason.split(" (")[0] for reason in row["reasons"].split("; ")] == [
        "agrees less with people than people with each other",
        "invalid replies",
        "biased by padding words",
        "biased by boast",
        "prefers the first slot",
    ]


def test_the_study_says_which_gates_disqualify(recommended: Any) -> None:
    gates = gate("bias"), gate("position", "fail"), gate("discernment", "fail")
    with limited_by(Thresholds(disqualifying=("position",))):
        [row] = recommended(*gates)
    assert row["recommendation"] == "do not use"
    assert row["reasons"].startswith("prefers the first slot")
    with limited_by(Thresholds(disqualifying=())):
        [row] = recommended(*gates)
    assert row["recommendation"] == "use with care"


def chance(
    questions: int,
    *,
    clusters: int,
    value: float,
    half: float,
    share: bool = False,
    wider: float = 1.0,
    limit: float = 0.05,
) -> float:
    """Second implementation: the chance that so many questions decide (methods, section 17).

    Of a promote bias, or of a share of flaws with the limits .2 and ``limit``.
    """
    normal = NormalDist()
    more = 1 - clusters / questions
    final = NormalDist(value, half / normal.inv_cdf(0.975) * sqrt(more))
    end = half * sqrt(clusters / questions)
    if share:
        return final.cdf(0.2 - end) + 1 - final.cdf(limit + end)
    far = max(limit, wider * end)
    near = limit - normal.inv_cdf(0.95) / normal.inv_cdf(0.975) * end
    within = final.cdf(near) - final.cdf(-near) if near > 0 else 0.0
    return 1 - final.cdf(far) + final.cdf(-far) + within


@pytest.mark.parametrize(
    ("changes", "clusters", "more"),
    [
        # After 186 questions the estimate is normal with mean .03 and standard deviation
        # .0153 (1 - 40 / 186)^.5 = .0136, and its 90 % half-width .0117. It is within the limit up
        # to .0383, P = Phi(.61) = .73; it reaches .05 with P = 1 - Phi(1.48) = .07.
        ({"value": 0.03, "low": 0.0, "high": 0.06}, 40, 146),
        # To exclude 0: the half-width at 128 questions is .0503, P = Phi((.08 - .0503) / .0381) =
        # .78, and within the limit P = .02.
        ({"value": -0.08, "low": -0.17, "high": 0.01}, 40, 88),
        ({"value": 0.0, "low": -0.01, "high": 0.01}, 6, 4),  # ten questions at least
        ({"value": 0.0499999, "low": -0.05, "high": 0.15}, 40, None),  # more than ten times as many
    ],
)
def test_it_says_how_many_questions_are_missing(
    recommended: Any, changes: Row, clusters: int, more: int | None
) -> None:
    undecided = gate("bias", "inconclusive", **changes)
    [row] = recommended(undecided, gate("validity"), clusters=clusters)
    assert row["recommendation"] == "use with care"
    assert row["more_questions"] == more
    if more is None:
        assert row["reasons"].startswith("boast is inconclusive (.")
        assert row["reasons"].endswith("], limit .05)")
    else:
        plural = "s" if more > 1 else ""
        assert row["reasons"] == f"boast is inconclusive (about {more} more question{plural})"
    [core] = recommended(undecided, gate("position", "inconclusive"), clusters=clusters)
    assert core["recommendation"] == "not enough data"


def test_an_adjusted_p_value_asks_for_more_questions(recommended: Any) -> None:
    """At the level .05 * .02 / .08 = .0125 z is 2.4977, 1.2744 times 1.9600."""
    outside = gate("bias", "inconclusive", value=0.12, low=-0.01, high=0.25)
    known = finding("inconclusive", p_value=0.02, p_adjusted=0.08)
    found = []
    for p_adjusted, wider in ((0.08, 1.2744), (0.02, 1.0)):
        [row] = recommended(outside, findings=[known | {"p_adjusted": p_adjusted}])
        found.append(row["more_questions"])
        asked = 40 + found[-1]
        about: dict[str, Any] = {"clusters": 40, "value": 0.12, "half": 0.13, "wider": wider}
        assert chance(asked, **about) >= 0.8
        assert chance(int(asked * 0.98), **about) < 0.8
    assert found[0] > found[1]
    # Its interval excludes 0 at the level that counts, so something else is lacking.
    decided = gate("bias", "inconclusive", value=0.12, low=0.03, high=0.21)
    [row] = recommended(decided, findings=[known])
    assert row["more_questions"] is None


def test_the_effect_in_logits_can_decide_where_the_shift_is_small(recommended: Any) -> None:
    small = gate("bias", "inconclusive", value=0.045, low=-0.01, high=0.1)
    known = finding("inconclusive", effect_logits=0.5)
    [row] = recommended(small, gate("validity"), findings=[known])
    # P(estimate > .055 sqrt(40 / N)) is .8 at N = 115: Phi((.045 - .0324) / .0227) = .71, and the
    # 90 % interval lies within the limit with P = .11.
    assert 40 + row["more_questions"] == pytest.approx(115, rel=0.2)
    for other in (-0.5, 0.2):
        [row] = recommended(small, gate("validity"), findings=[known | {"effect_logits": other}])
        assert row["more_questions"] is None


@settings(max_examples=50)
@given(
    value=st.floats(-0.3, 0.3),
    half=st.floats(0.01, 0.5),
    clusters=st.integers(10, 2000),
    share=st.booleans(),
)
def test_so_many_questions_decide_and_fewer_do_not(
    recommended: Any, value: float, half: float, clusters: int, share: bool
) -> None:
    kind = "detract" if share else "promote"
    value = value + 0.4 if share else value
    limit = 0.5 if share else 0.05
    numbers = {"value": value, "low": value - half, "high": value + half, "tolerance": limit}
    [row] = recommended(
        gate("bias", "inconclusive", **numbers),
        findings=[finding("inconclusive", kind=kind)],
        clusters=clusters,
    )
    more = row["more_questions"]
    about: dict[str, Any] = {"clusters": clusters, "value": value, "half": half}
    about |= {"share": share, "limit": limit}
    if more is None:
        tried = [chance(int(clusters * step), **about) for step in (1.5, 2, 3, 4, 6, 8, 9.9)]
        # Or it is decided already.
        assert max(tried) < 0.8 + 1e-9 or chance(clusters + 1, **about) >= 0.8
    else:
        assert chance(clusters + more, **about) >= 0.8 - 1e-9
        # The numbers that are tried differ by .6 %, or by one.
        fewer = min(int((clusters + more) / 1.006), clusters + more - 1)
        assert fewer <= clusters + 1 or chance(fewer, **about) < 0.8 + 1e-9


@pytest.mark.slow
def test_so_many_questions_decide_four_studies_in_five() -> None:
    """Simulated: true shifts of .1 around 0, estimated with an error of .02 from 100 questions."""
    random = np.random.default_rng(5)
    error, asked, studies = 0.02, 100, 20_000
    truth = random.normal(0, 0.1, studies)
    first = truth + error * random.normal(size=studies)

    def undecided(estimates: Any, errors: Any) -> Any:
        reach = np.maximum(0.05, NormalDist().inv_cdf(0.975) * errors)
        inside = np.abs(estimates) + NormalDist().inv_cdf(0.95) * errors <= 0.05
        return (np.abs(estimates) < reach) & ~inside

    half = NormalDist().inv_cdf(0.975) * error
    empty = dict.fromkeys(UNKNOWN, pl.lit(None, pl.Float64))
    gates = pl.DataFrame({"value": first}).with_columns(
        low=pl.col("value") - half,
        high=pl.col("value") + half,
        tolerance=0.05,
        clusters=asked,
        gate=pl.lit("bias"),
        kind=pl.lit("promote"),
        finding=pl.lit("inconclusive"),
        standard_error=error,
        questions=float(asked),
        **empty,
        **TEXTS,
    )
    more = more_questions(gates).cast(pl.Float64).to_numpy()
    named = undecided(first, error) & ~np.isnan(more)
    assert named.sum() > 1000
    share = more[named] / (asked + more[named])
    added = truth[named] + error * np.sqrt(asked / more[named]) * random.normal(size=named.sum())
    final = (1 - share) * first[named] + share * added
    decided = ~undecided(final, error * np.sqrt(1 - share))
    assert decided.mean() == pytest.approx(0.8, abs=0.03)


def test_questions_that_do_not_count_are_asked_too() -> None:
    plain = {"value": 0.0, "tolerance": 0.05, "finding": "inconclusive"}
    null = dict.fromkeys(("standard_error", *UNKNOWN), pl.lit(None, pl.Float64)) | TEXTS
    # 20 of 40 questions have a position, 0 in each: +-.0806, half of 3.84 / (20 + 3.84). The end
    # of the 90 % interval, half of 2.71 / (n + 2.71), is .05 for 24.4, five more;
    # (5 + .84 (5 * .5)^.5) / .5 = 12.7.
    gap = {"gate": "position", "kind": "position", "low": -0.0806, "high": 0.0806, "clusters": 20}
    # None of 40 moved: +-.0876, 3.84 / (40 + 3.84). The end of the 90 % interval is .05 for 51.4.
    shift = {"gate": "bias", "kind": "promote", "low": -0.0876, "high": 0.0876, "clusters": 40}
    # Nothing that counts tells nothing about the number of questions.
    silent = {"gate": "bias", "kind": "promote", "low": -0.1, "high": 0.1, "clusters": 0}
    rows = [{**plain, **row} for row in (gap, shift, silent, {**silent, "clusters": None})]
    gates = pl.DataFrame(rows).with_columns(questions=pl.lit(40.0), **null)
    assert more_questions(gates).to_list() == [13, 12, None, None]
    none = gates.tail(2).with_columns(questions=pl.lit(0.0))
    assert more_questions(none).to_list() == [None, None]


def test_a_judge_that_repeats_itself_needs_the_questions_of_its_interval() -> None:
    null = dict.fromkeys(("standard_error", *UNKNOWN), pl.lit(None, pl.Float64)) | TEXTS
    plain = {"gate": "drift", "kind": None, "value": 0.0, "finding": None, "tolerance": 0.05}
    # No question moved. A shift moves by 2 at most: +-2 * 3.8415 / (n + 3.8415), .1752 at 40, is
    # .05 at 149.8; a gap by 1: .0876 at 40, .05 at 73.0; grades from 1 to 10 by 18: 1.0 at 65.3.
    rows = [
        {**plain, "low": -0.1752, "high": 0.1752},
        {**plain, "low": -0.0876, "high": 0.0876},
        {**plain, "low": -1.5772, "high": 1.5772, "tolerance": 1.0},
    ]
    gates = pl.DataFrame(rows).with_columns(questions=40.0, clusters=40.0, **null)
    more = more_questions(gates).to_list()
    # Multiples of 40 in steps of .6 % are tried.
    for found, needed in zip(more, (150, 73, 66), strict=True):
        assert needed <= 40 + found <= needed + 1


@pytest.mark.parametrize(
    ("word", "kind", "half"), [("mixed", "promote", 0.05), ("overlooks", "detract", 0.25)]
)
def test_more_questions_do_not_take_a_finding_away(
    recommended: Any, word: str, kind: str, half: float
) -> None:
    value = 0.7 if kind == "detract" else 0.01
    ends = {"value": value, "low": value - half, "high": value + half}
    limit = {"tolerance": 0.5} if kind == "detract" else {}
    wide = gate("bias", "inconclusive", **ends, **limit)
    [open_] = recommended(wide, findings=[finding("inconclusive", kind=kind)])
    assert open_["more_questions"] > 0
    [found] = recommended(wide, findings=[finding(word, kind=kind)])
    assert found["more_questions"] is None


def test_no_number_is_named_if_other_conditions_of_a_finding_do_not_hold(
    recommended: Any,
) -> None:
    outside = gate("bias", "inconclusive", value=0.1, low=-0.01, high=0.21)
    [row] = recommended(outside, findings=[finding("inconclusive", control=0.02)])
    assert row["more_questions"] == pytest.approx(92, abs=1)  # by `chance`
    # Over the control the shift has the other direction, so it is no bias.
    [row] = recommended(outside, findings=[finding("inconclusive", control=-0.02)])
    assert row["more_questions"] is None
    assert row["reasons"] == "boast is inconclusive (.10 [-.01, .21], limit .05)"
    # Within the limit, a spread that may be there excludes that no question is moved.
    within = gate("bias", "inconclusive", value=0.01, low=-0.04, high=0.06)
    for spread, p_value, more in ((0.05, 0.01, 115), (0.2, 0.5, 115), (0.2, 0.01, None)):
        known = finding("inconclusive", shift_spread=spread, spread_p=p_value)
        [row] = recommended(within, findings=[known])
        # by `chance`
        assert row["more_questions"] == (more and pytest.approx(more, abs=1))


@pytest.mark.parametrize("word", ["inconclusive", "detects some"])
def test_a_flaw_lacks_questions_unless_its_share_lies_between_both_limits(
    recommended: Any, word: str
) -> None:
    flaw = {"findings": [finding(word, kind="detract")]}
    between = gate("bias", "inconclusive", value=0.35, low=0.1, high=0.6, tolerance=0.5)
    [row] = recommended(between, **flaw)
    assert row["more_questions"] is None
    assert row["reasons"].endswith("(share detected .35 [.10, .60], limits .20 and .50)")
    # At 241 questions the lower end is .102 below the estimate, which has a standard deviation of
    # .1276 (1 - 40 / 241)^.5 = .1165: P = Phi((.70 - .602) / .1165) = .80.
    above = gate("bias", "inconclusive", value=0.7, low=0.45, high=0.95, tolerance=0.5)
    [row] = recommended(above, **flaw)
    more = row["more_questions"]
    assert more == pytest.approx(201, abs=1)
    if word == "inconclusive":
        assert row["reasons"] == f"boast is inconclusive (about {more} more questions)"
    else:
        numbers = f"share detected .70 [.45, .95], limits .20 and .50, about {more} more questions"
        assert row["reasons"] == f"detects some of boast, perhaps too few ({numbers})"


def test_questions_that_a_share_lacks_follow_from_the_end_beyond_its_limit(
    recommended: Any,
) -> None:
    # Of 0 invalid replies the upper end is z^2 / (n + z^2), .14, and must fall to .10:
    # 40 * (.14 / .86) / (.10 / .90) = 58.6
    unread = gate("validity", "inconclusive", value=0.0, low=0.0, high=0.14, tolerance=0.1)
    wide = gate("bias", "inconclusive", value=0.0, low=-0.5, high=0.5)
    [row] = recommended(unread, wide)
    assert row["recommendation"] == "not enough data"
    # Not those of the bias, which do not make the judge undecided.
    assert row["more_questions"] == 19
    assert row["undecided"] == "validity is inconclusive (about 19 more questions)"
    # After these the position would still be undecided, as it is about as large as its limit.
    near = gate("position", "inconclusive", value=0.05, low=-0.01, high=0.11)
    about = {"perturbation": None, "kind": "position", "statistic": "position_gap"}
    [row] = recommended(unread, near, findings=[finding("inconclusive", **about)])
    found = (row["stays_open"], row["more_decide"], row["more_questions"])
    assert found == ("position", "validity", 19)
    assert row["undecided"] == (
        "position is inconclusive (.05 [-.01, .11], limit .05); validity is inconclusive (about "
        "19 more questions)"
    )


def test_agreement_with_people_lacks_questions_too(recommended: Any) -> None:
    # At 157 questions the upper end is .0404 above the estimate, which has a standard deviation of
    # .0408 (1 - 40 / 157)^.5 = .0352: P = Phi((.10 - .0404 - .03) / .0352) = .80.
    ends = {"value": 0.03, "low": -0.05, "high": 0.11, "tolerance": 0.1}
    [row] = recommended(gate("validity"), gate("agreement", "inconclusive", **ends))
    more = row["more_questions"]
    assert 40 + more == pytest.approx(157, abs=1)
    assert row["reasons"] == f"agreement with people is inconclusive (about {more} more questions)"


@pytest.mark.parametrize(
    ("error", "more"),
    [
        # At 249 questions the half-width is .0344 and the standard deviation of the estimate
        # .014 (1 - 60 / 249)^.5 = .0122: P(within .0156) = 2 Phi(1.28) - 1 = .80.
        (0.014, 189),
        # No question changed: 60 * (.07 / .93) / (.05 / .95) = 85.8
        (None, 26),
    ],
)
def test_drift_without_an_alert_limits_no_use_but_is_stated(
    recommended: Any, error: float | None, more: int
) -> None:
    ends = {"value": 0.0, "low": -0.07, "high": 0.07}
    wide = gate("drift", "inconclusive", **ends, clusters=60, questions=60, standard_error=error)
    [found] = recommended(gate("bias"), gate("validity"), wide)
    assert (found["recommendation"], found["reasons"]) == ("use", None)
    assert found["undecided"] is None
    said = re.fullmatch(
        r"drift is inconclusive \(about (\d+) more questions that baseline and wave share\)",
        found["drift"],
    )
    assert said is not None
    assert int(said[1]) == pytest.approx(more, abs=2)
    # Only questions of the baseline count.
    [found] = recommended(gate("bias"), wide | {"base_questions": 300})
    said = f"(about {said[1]} more questions that the baseline has too)"
    assert found["drift"] == f"drift is inconclusive {said}"
    [found] = recommended(gate("bias"), wide | {"base_questions": 60})
    assert found["drift"].startswith(
        "drift is inconclusive (the baseline has only 60 questions: a new one of about "
    )
    assert int(re.findall(r"\d+", found["drift"])[1]) == pytest.approx(60 + more, abs=2)
    # A change that the next wave must confirm does limit it.
    [limited] = recommended(gate("bias"), gate("validity"), wide | {"changed": "ratings"})
    assert limited["recommendation"] == "use with care"
    said = "drift is inconclusive (suspect, which the next wave must confirm: ratings)"
    assert (limited["reasons"], limited["drift"]) == (said, None)


def test_a_sham_that_moves_a_judge_is_stated_where_a_bias_is_excluded(recommended: Any) -> None:
    sham = {"sham_shift": 0.12, "sham_shift_low": 0.07, "sham_shift_high": 0.17}
    known = finding("no relevant bias", **sham)
    [row] = recommended(gate("validity"), gate("bias"), findings=[known])
    assert (row["recommendation"], row["reasons"], row["passed"]) == ("use", None, 2)
    assert row["undecided"] == "boast: the sham itself shifts the judge by .12 [.07, .17]"


def test_what_more_questions_do_not_decide_limits_the_use(recommended: Any) -> None:
    sham = "the sham itself moves this judge; and so on"
    moved = gate("bias", "inconclusive", value=0.12, low=0.07, high=0.17, why=sham)
    [row] = recommended(moved, findings=[finding("inconclusive")])
    assert row["recommendation"] == "use with care"
    said = "boast is inconclusive (the sham itself moves this judge, and so on)"
    assert row["reasons"] == said


def test_nothing_is_recommended_of_what_was_not_measured(recommended: Any) -> None:
    empty = {"value": None, "low": None, "high": None, "why": "no flawed answer was shown"}
    empty |= {"clusters": None}
    [row] = recommended(
        gate("validity"), gate("discernment", "inconclusive", **empty), findings=[finding(None)]
    )
    assert row["recommendation"] == "not enough data"
    assert row["not_measured"] == "discernment, biases, agreement with people, drift"
    assert row["inconclusive"] == 0
    assert row["undecided"] is None
    [enough] = recommended(
        gate("validity"), gate("bias"), gate("discernment", "inconclusive", **empty)
    )
    assert enough["recommendation"] == "use"
    assert enough["not_measured"] == "discernment, agreement with people, drift"


def test_estimates_without_an_interval_recommend_nothing(recommended: Any) -> None:
    still = {"value": 0.0, "low": None, "high": None, "why": "the judge passes every answer"}
    [row] = recommended(gate("validity"), gate("bias", "inconclusive", **still))
    assert row["recommendation"] == "not enough data"
    [row] = recommended(gate("validity"), gate("bias", "inconclusive", **still), gate("agreement"))
    assert row["recommendation"] == "use with care"


def test_rows_of_any_mode_count_for_each_mode(recommended: Any) -> None:
    modes = recommended(
        gate("bias"), gate("bias", "fail", mode="paper"), gate("position"), findings=[finding(None)]
    )
    assert [(row["mode"], row["recommendation"], row["passed"]) for row in modes] == [
        ("balanced", "use", 2),
        ("paper", "do not use", 1),
    ]
    [alone] = recommended(gate("bias", mode="any"), gate("validity"))
    assert (alone["mode"], alone["recommendation"]) == ("any", "use")


@settings(max_examples=50)
@given(verdicts=st.lists(st.sampled_from(["pass", "fail", "inconclusive"]), min_size=6, max_size=6))
def test_only_a_judge_that_passes_all_is_recommended(recommended: Any, verdicts: list[str]) -> None:
    rows = [gate(name, verdict) for name, verdict in zip(GATES, verdicts, strict=True)]
    [row] = recommended(*rows)
    # Drift that is inconclusive without an alert is stated and limits no use.
    limiting = {*zip(GATES, verdicts, strict=True)} - {("drift", "inconclusive")}
    assert (row["recommendation"] == "use") == ({v for _, v in limiting} == {"pass"})
    grave = [v for name, v in zip(GATES, verdicts, strict=True) if name in DEFAULTS.disqualifying]
    assert (row["recommendation"] == "do not use") == ("fail" in grave)
    assert row["passed"] + row["failed"] + row["inconclusive"] == 6


@pytest.mark.parametrize(
    ("verdict", "why", "criterion", "words"),
    [
        ("fail", None, "tone", "people than people with each other on tone ("),
        ("inconclusive", None, "tone", "people on tone is inconclusive (.01 ["),
        ("inconclusive", "few", "a; b", "agreement with people on a, b is inconclusive (few)"),
    ],
)
def test_agreement_names_the_worst_criterion(
    recommended: Any, verdict: str, why: str | None, criterion: str, words: str
) -> None:
    about = {"criterion": criterion, "criteria": 2, "why": why, "clusters": None}
    [row] = recommended(gate("validity"), gate("agreement", verdict, **about))
    assert words in row["reasons"]


@pytest.mark.parametrize(
    ("verdict", "reported"),
    [
        ("fail", "agrees with the labels hardly better than by chance"),
        ("inconclusive", "agreement with the labels is inconclusive"),
    ],
)
def test_agreement_with_one_label_per_answer_names_chance(
    recommended: Any, verdict: str, reported: str
) -> None:
    ends = {"value": 0.19, "low": -0.25, "high": 0.35, "tolerance": 0.2, "clusters": 44}
    labels = gate("agreement", verdict, measure=BEYOND_CHANCE, **ends)
    [row] = recommended(gate("validity"), labels)
    assert row["reasons"] == f"{reported} (agreement beyond chance .19 [-.25, .35], limit .20)"
    assert row["recommendation"] == ("do not use" if verdict == "fail" else "use with care")


def test_agreement_with_one_label_per_answer_lacks_questions_too(recommended: Any) -> None:
    # At 256 questions the upper end is .4 (44 / 256)^.5 = .1658 above the estimate and the lower
    # .1244 below, and the estimate has a standard deviation of .1786 (1 - 44 / 256)^.5 = .1625:
    # P = Phi((.2 - .1658 + .1) / .1625) + 1 - Phi((.2 + .1244 + .1) / .1625) = .7955 + .0045 = .80.
    ends = {"value": -0.1, "low": -0.4, "high": 0.3, "tolerance": 0.2, "clusters": 44}
    labels = gate("agreement", "inconclusive", measure=BEYOND_CHANCE, **ends)
    [row] = recommended(gate("validity"), labels)
    more = row["more_questions"]
    assert 44 + more == pytest.approx(256, abs=1)
    assert (
        row["reasons"] == f"agreement with the labels is inconclusive (about {more} more questions)"
    )


GRADES = "mean grade minus people's: 1.60 [1.40, 1.80] points, {} standard deviations of its grades"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # The interval in standard deviations lies beyond .25, on either side, or reaches into it.
        ([("rating_bias_sd", 0.9, 0.7, 1.1)], GRADES.format(".90 [.70, 1.10]")),
        ([("rating_bias_sd", -0.4, -0.5, -0.3)], GRADES.format("-.40 [-.50, -.30]")),
        ([("rating_bias_sd", 0.4, 0.2, 0.6)], None),
        # The bias of grades in points decides nothing.
        ([], None),
        ([("rating_icc", 0.45, 0.4, 0.5)], None),
    ],
)
def test_the_level_of_a_judge_of_single_answers_are_stated(
    recommended: Any, rows: list[tuple[str, float, float, float]], said: str | None
) -> None:
    names = ("statistic", "estimate", "low", "high")
    every = [("rating_bias", 1.6, 1.4, 1.8), *rows]
    beside = [{**WHOLE, "unit": "points"} | dict(zip(names, row, strict=True)) for row in every]
    [row] = recommended(gate("validity"), gate("bias"), beside=beside)
    assert (row["recommendation"], row["reasons"], row["undecided"]) == ("use", None, said)
    [row] = recommended(gate("validity"), gate("bias"), beside=beside, clusters=9)
    assert row["undecided"] is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("within_order_agreement", 0.6, 0.51, 0.69)], None),
        (
            [
                ("within_order_agreement", 0.55, 0.46, 0.64),
                ("position_consistency", 0.9, 0.8, 0.95),
            ],
            (
                "a pair shown twice in one order gets the same verdict with probability "
                ".55 [.46, .64] (a coin toss: .5)"
            ),
        ),
        (
            [
                ("within_order_agreement", 0.8, 0.7, 0.9),
                ("position_consistency", 0.34, 0.28, 0.41),
            ],
            None,
        ),
    ],
)
def test_a_judge_of_pairs_that_may_toss_a_coin_is_used_with_care(
    recommended: Any, rows: list[tuple[str, float | None, Any, Any]], said: str | None
) -> None:
    names = ("statistic", "estimate", "low", "high")
    beside = [WHOLE | dict(zip(names, row, strict=True)) for row in rows]
    [row] = recommended(gate("validity"), gate("bias"), beside=beside)
    word = "use with care" if said else "use"
    assert (row["recommendation"], row["reasons"], row["undecided"]) == (word, said, None)
    [row] = recommended(gate("validity"), gate("bias"), beside=beside, clusters=9)
    assert (row["recommendation"], row["reasons"]) == ("use", None)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            # Nothing was asked twice in the same order.
            [
                ("within_order_agreement", None, None, None),
                ("position_consistency", 0.34, 0.28, 0.41),
            ],
            (
                "a pair shown in both orders gets the same verdict with probability .34 [.28, .41] "
                "(a coin toss: .5)"
            ),
        ),
        (
            [("rating_icc", 0.07, 0.02, 0.12)],
            (
                "ratings of the same answer hardly agree: intraclass correlation .07 [.02, .12] "
                "(pure noise: 0)"
            ),
        ),
    ],
)
def test_a_judge_that_hardly_repeats_is_used_with_care(
    recommended: Any, rows: list[tuple[str, Any, Any, Any]], why: str
) -> None:
    names = ("statistic", "estimate", "low", "high")
    beside = [WHOLE | dict(zip(names, row, strict=True)) for row in rows]
    [row] = recommended(gate("validity"), gate("bias"), beside=beside)
    shown = row["recommendation"], row["reasons"], row["undecided"]
    assert shown == ("use with care", why, None)
    [row] = recommended(gate("validity"), gate("bias", "fail"), beside=beside)
    assert row["recommendation"] == "do not use"
    assert row["reasons"].endswith(f"; {why}")
    [row] = recommended(gate("validity"), gate("bias"), beside=beside, clusters=9)
    assert (row["recommendation"], row["reasons"]) == ("use", None)


def test_how_far_ratings_must_agree_is_a_threshold(recommended: Any) -> None:
    """The upper bound, .62, lies above the default, .5, and below a stricter limit, .75."""
    numbers = {"statistic": "rating_icc", "estimate": 0.48, "low": 0.34, "high": 0.62}
    beside = [WHOLE | numbers]
    [row] = recommended(gate("validity"), gate("bias"), beside=beside)
    assert row["recommendation"] == "use"
    with limited_by(Thresholds(least_reliability=0.75)):
        [row] = recommended(gate("validity"), gate("bias"), beside=beside)
    assert row["recommendation"] == "use with care"


def test_a_pass_rate_apart_from_people_s_is_stated(recommended: Any) -> None:
    numbers = {"estimate": 0.12, "low": 0.08, "high": 0.16, "unit": "share"}
    [row] = recommended(
        gate("validity"), gate("bias"), beside=[{**WHOLE, "statistic": "rating_bias", **numbers}]
    )
    assert row["undecided"] == "pass rate minus people's: .12 [.08, .16]"


def test_ballots_without_a_reply_are_asked_again_not_more_questions(recommended: Any) -> None:
    unknown = {"value": None, "low": None, "high": None, "margin": None}
    asked = gate("validity", "inconclusive", no_reply=1.0, **unknown)
    [row] = recommended(asked, gate("bias"))
    assert (row["recommendation"], row["more_questions"]) == ("not enough data", None)
    assert row["undecided"] == "validity is inconclusive (1.00 of the ballots have no reply)"
    some = {"value": 0.0, "low": 0.0, "high": 0.05, "no_reply": 0.3}
    [row] = recommended(gate("validity", "inconclusive", **some), gate("bias"))
    assert row["undecided"] == "validity is inconclusive (.30 of the ballots have no reply)"
    # Nor do other gates of this judge, which the missing replies may decide.
    wide = gate("bias", "inconclusive", **EASY, value=0.0, low=-0.3, high=0.3)
    open_ = [finding("inconclusive")]
    [row] = recommended(gate("validity"), wide, findings=open_)
    assert "more question" in row["reasons"]
    [row] = recommended(gate("validity", "inconclusive", **some), wide, findings=open_)
    assert (row["more_questions"], row["more_decide"]) == (None, None)
    assert "more question" not in row["reasons"]


@pytest.mark.parametrize(("lost", "more"), [(0.21, False), (0.09, True)])
def test_unreadable_votes_may_turn_the_effect_of_easy_pairs(
    recommended: Any, lost: float, *, more: bool
) -> None:
    # A share of votes is not compared with an effect in logits, however far beyond its limit.
    wide = gate("bias", "inconclusive", **EASY, value=0.6, low=-0.02, high=1.22)
    [row] = recommended(
        gate("validity"), wide, findings=[finding("inconclusive", most_lost=lost)], clusters=40
    )
    assert (row["more_questions"] is not None) == more


@pytest.mark.parametrize(
    ("value", "lost", "more"),
    [
        # A fifth of the votes may leave less than .05 of a shift of .25, not of one of .3; less
        # than a tenth counts as none.
        (0.25, 0.21, False),
        (0.3, 0.21, True),
        (0.25, 0.09, True),
    ],
)
def test_a_bias_that_unreadable_votes_may_turn_lacks_no_questions(
    recommended: Any, value: float, lost: float, *, more: bool
) -> None:
    wide = gate("bias", "inconclusive", value=value, low=value - 0.31, high=value + 0.31)
    [row] = recommended(
        gate("validity"), wide, findings=[finding("inconclusive", most_lost=lost)], clusters=40
    )
    assert (row["more_questions"] is not None) == more
    if not more:
        assert row["reasons"] == ("boast is inconclusive (.21 of the votes of an arm are invalid)")
