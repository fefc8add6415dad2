from typing import Any

import polars as pl
import pytest

from schemas.results import Findings
from tasks.reporting.summary import REFUSED, finding_words, summary

DEFAULTS = {
    "dataset": "bloom",
    "judge": "a",
    "prompt": "pair_v1",
    "wave": "",
    "mode": "balanced",
    "perturbation": "padding",
    "kind": "promote",
    "statistic": "mps",
    "estimate": 0.1,
    "minimum": 0.05,
    "finding": "biased",
    "simulated": False,
}


DETECTS = {"finding": "detects", "estimate": -0.4}


def said(*rows: dict[str, Any]) -> list[str]:
    frame = pl.DataFrame([DEFAULTS | row for row in rows], infer_schema_length=None)
    return summary(Findings.of(frame), 60)


def test_the_most_moved_judge_comes_first() -> None:
    assert said(
        {"judge": "a"},
        {"judge": "b", "estimate": -0.3, "simulated": True},
        {"judge": "b", "estimate": 0.2, "perturbation": "rich", "simulated": True},
        {"judge": "c", "finding": "inconclusive", "estimate": 0.04},
    ) == [
        "3 judges faced 2 perturbations on 60 questions.",
        (
            "2 of 3 judges are biased by a change that should not matter:"
            " b (simulated) by padding and rich; a by padding."
        ),
        "1 of 4 combinations of judge and perturbation neither passes nor fails (1 inconclusive).",
    ]


def test_a_judge_that_has_changed_is_named() -> None:
    about = DEFAULTS | {"perturbation": None, "simulated": True, "gate": "drift"}
    gates = [
        {**about, "verdict": "fail", "reason": "alert: texts of replies"},
        {**about, "judge": "b", "verdict": "pass", "reason": None},
    ]
    frame = Findings.of(pl.DataFrame([DEFAULTS]))
    found = summary(frame, 60, gates=pl.DataFrame(gates))
    assert found[1] == "a (simulated) has changed (alert: texts of replies)."


@pytest.mark.parametrize(
    ("measure", "which"),
    [
        ("mean share detected", " on average: the mean share detected"),
        (
            "best share detected over kinds of flaws",
            ": the best share detected over kinds of flaws",
        ),
        ("share detected in mean scores (D)", ": the share detected in mean scores (D)"),
    ],
)
def test_a_judge_that_fails_to_detect_flaws_is_named_beside_single_kinds(
    measure: str, which: str
) -> None:
    unsure = DEFAULTS | {"kind": "detract", "perturbation": "error", "finding": "inconclusive"}
    numbers = {"value": -0.37, "low": -0.85, "high": 0.12, "tolerance": 0.2, "measure": measure}
    gates = [
        {**DEFAULTS, **numbers, "perturbation": None, "gate": "discernment", "verdict": verdict}
        | {"judge": judge}
        for judge, verdict in (("a", "fail"), ("b", "pass"))
    ]
    frame = Findings.of(pl.DataFrame([unsure]))
    found = summary(frame, 60, gates=pl.DataFrame(gates))
    assert found[1:3] == [
        (
            "No judge was found to overlook or reward any single kind of flaw;"
            " the flaw was detected in no cell."
        ),
        (
            f"a does not detect flaws{which} is \N{MINUS SIGN}.37 [\N{MINUS SIGN}.85,"
            "\N{NO-BREAK SPACE}.12], limit .20."
        ),
    ]


def test_flaws_overlooked_and_rewarded() -> None:
    detract = {"kind": "detract", "perturbation": "error"}
    assert said(
        detract | {"judge": "a", "finding": "overlooks", "estimate": 0.0},
        detract | {"judge": "b", "finding": "rewards", "estimate": 0.4},
        detract | DETECTS | {"judge": "c"},
    )[1:] == [
        "1 of 3 judges detects each flaw: c.",
        "2 of 3 judges overlook or reward a flaw: b rewards error; a overlooks error.",
    ]


def test_judges_that_pass_with_every_finding_are_named() -> None:
    fine = {"finding": "no relevant bias", "estimate": 0.0}
    flaw = DETECTS | {"kind": "detract", "perturbation": "error"}
    position = {"kind": "position", "perturbation": None, "statistic": "position_gap"}
    rows = [
        row | {"judge": judge}
        for judge in "abcd"
        for row in (fine, flaw, fine | position)
        # c has no finding about flaws
        if (judge, row) != ("c", flaw)
    ]
    leaning = {"judge": "d", "finding": "biased", "estimate": 0.3} | position
    reported = said(*rows[:-1], leaning, {"judge": "people/ann"} | fine | flaw)
    assert reported[1] == (
        "2 of 4 judges have no relevant bias (position included) and detect each flaw: a and b."
    )


def test_a_position_gap_towards_the_second_slot_keeps_its_sign() -> None:
    position = {"kind": "position", "perturbation": None, "statistic": "position_gap"}
    ends = {"estimate": -0.3, "low": -0.4, "high": -0.1}
    reported = said({"judge": "a", "finding": "biased"} | position | ends)
    minus = "\N{MINUS SIGN}"
    gap = f"position gap {minus}.30 [{minus}.40,\N{NO-BREAK SPACE}{minus}.10]"
    assert reported[-1].endswith(f": a the second ({gap}).")


def test_cells_that_neither_pass_nor_fail_are_named_and_counted_as_the_gate_does() -> None:
    detract = {"kind": "detract", "perturbation": "error"}
    assert said(
        {"finding": "mixed", "estimate": 0.0},
        detract | {"finding": "detects some", "estimate": -0.2},
        detract | {"finding": "detects some", "estimate": -0.1, "perturbation": "slur"},
        detract | {"judge": "b", "finding": "inconclusive", "estimate": 0.0},
        detract | {"judge": "b", "finding": "overlooks", "estimate": 0.0, "perturbation": "slur"},
    )[2:] == [
        "Shifts that differ between questions or categories (mixed): a by padding.",
        "1 of 2 judges overlooks or rewards a flaw: b overlooks slur.",
        "Flaws detected in part, perhaps too few: a detects some error and slur.",
        (
            "4 of 5 combinations of judge and perturbation neither pass nor fail"
            " (2 with some flaws detected, 1 inconclusive and 1 mixed)."
        ),
    ]


def test_a_judge_that_nothing_could_bias_is_not_called_unbiased() -> None:
    slot = {"kind": "position", "perturbation": None, "finding": "no relevant bias"}
    flaw = DETECTS | {"kind": "detract", "perturbation": "error"}
    assert "1 of 1 judge has no relevant position bias and detects each flaw: a." in said(
        slot | {"estimate": 0.0}, flaw
    )


def test_nothing_found_is_not_called_unbiased() -> None:
    assert said(
        {"finding": "no relevant bias", "estimate": 0.0},
        {"judge": "b", "finding": None, "reason": "too few", "estimate": 0.0},
        {"judge": "c", "finding": "inconclusive", "kind": "detract", "perturbation": "error"},
        DETECTS | {"kind": "detract", "perturbation": "error"},
    )[1:] == [
        "1 of 3 judges has no relevant bias and detects each flaw: a.",
        (
            "No judge was found biased by a change that should not matter;"
            " 1 of 2 cells demonstrated the absence of relevant bias."
        ),
        (
            "No judge was found to overlook or reward any single kind of flaw;"
            " the flaw was detected in 1 of 2 cells."
        ),
        (
            "2 of 4 combinations of judge and perturbation neither pass nor fail"
            " (1 inconclusive and 1 without a finding: too few)."
        ),
    ]


def test_what_was_shown_nowhere_is_said_plainly() -> None:
    unsure = {"finding": "inconclusive", "estimate": 0.0}
    _, promote, detract, _ = said(unsure, unsure | {"kind": "detract", "perturbation": "error"})
    assert promote.endswith("; no cell demonstrated the absence of relevant bias.")
    assert detract.endswith("; the flaw was detected in no cell.")


def test_where_every_cell_is_refused_nothing_is_concluded() -> None:
    refused = {"finding": None, "reason": "too few"}
    assert said(refused, refused | {"kind": "detract", "perturbation": "error"}) == [
        "No conclusion is possible: no cell has enough data.",
        "1 judge faced 2 perturbations on 60 questions.",
        (
            "2 of 2 combinations of judge and perturbation neither pass nor fail"
            " (2 without a finding: too few)."
        ),
    ]


def test_people_are_counted_apart_from_judges() -> None:
    rows = [
        {"judge": "a"},
        {"judge": "a", "perturbation": "rich", "finding": "inconclusive"},
        {"judge": "people/ann", "finding": None, "reason": "few"},
        {"judge": "Ben", "finding": "inconclusive"},
    ]
    frame = Findings.of(pl.DataFrame([DEFAULTS | row for row in rows], infer_schema_length=None))
    reported = summary(frame, 60, {"Ben"}, 12)
    assert reported[0] == (
        "1 judge faced 2 perturbations on 60 questions;"
        " 2 people faced 1 perturbation on 12 questions at most."
    )
    assert reported[1].startswith("1 of 1 judge and 0 of 1 person are biased by a change")
    calm = Findings.of(frame.filter(pl.col("finding").ne_missing(pl.lit("biased"))))
    first, second, _ = summary(calm, 60, {"Ben"})
    assert first.endswith("2 people faced 1 perturbation without enough votes to measure a shift.")
    assert second.startswith("No judge and no person was found biased")
    alone = Findings.of(frame.filter(pl.col("judge") == "people/ann"))
    assert summary(alone, 0, (), 1)[1] == "1 person faced 1 perturbation on 1 question at most."


def test_a_reason_is_cut_between_words_only() -> None:
    why = "no sample has a score " * 9
    (*_, reported) = said({"finding": None, "reason": why})
    assert "(1 without a finding: no sample has a score no sample" in reported
    assert reported.endswith(" has a score no\N{HORIZONTAL ELLIPSIS}).")
    whole = "nothing qualifies: no sample has a score in the experimental arm and in the other"
    assert said({"finding": None, "reason": whole})[-1].endswith(f"(1 without a finding: {whole}).")


def test_many_judges_are_counted_not_listed() -> None:
    sentence = said(*({"judge": f"j{i}", "estimate": 0.2 + i / 100} for i in range(9)))[1]
    assert sentence.startswith("9 of 9 judges")
    assert sentence.endswith(
        "j8 by padding; j7 by padding; j6 by padding; j5 by padding; and 5 others."
    )


def test_without_findings() -> None:
    assert summary(Findings.empty(), 0) == ["No cell was measured, so there are no findings."]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, ("biased", "toward the changed answer")),
        ({"estimate": -0.1}, ("biased", "away from the changed answer")),
        ({"kind": "detract", "finding": "rewards"}, ("rewards", "")),
        (
            DETECTS
            | {"detected": 0.64, "detected_low": 0.52, "detected_high": 0.76}
            | {"detected_by": "detection_power"},
            ("detects", "DP .64 [.52,\N{NO-BREAK SPACE}.76]"),
        ),
        ({"finding": "overlooks", "detected": 0.1}, ("overlooks", "D .10")),
        ({"finding": "inconclusive"}, ("inconclusive", "")),
        ({"finding": None, "reason": "no votes"}, (REFUSED, "no votes")),
    ],
)
def test_a_finding_has_its_direction_share_or_reason(
    row: dict[str, Any], words: tuple[str, str]
) -> None:
    unknown = dict.fromkeys(("reason", "detected", "detected_low", "detected_high", "detected_by"))
    assert finding_words({**DEFAULTS, **unknown, **row}) == words


def test_a_judge_of_two_waves_is_one_judge() -> None:
    reported = said({"wave": "n1", "finding": "biased"}, {"wave": "n2", "finding": "biased"})
    assert reported[0].startswith("1 judge faced")
    assert reported[1].startswith("1 of 1 judge is biased")
    assert "/ n1" in reported[1]
    assert "/ n2" in reported[1]


def test_judges_with_several_prompts_are_counted_with_them() -> None:
    found = said(
        {"prompt": "brief", "finding": "no relevant bias"},
        {"prompt": "long", "finding": "biased"},
        {"judge": "b", "prompt": "brief", "finding": "biased"},
        {"judge": "b", "prompt": "long", "finding": "biased"},
    )
    assert "1 of 4 combinations of judge and prompt has no relevant bias: a / brief." in found
