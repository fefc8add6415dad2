"""Whether to use each judge, in words."""

from typing import Any

import polars as pl
import pytest

from schemas.keys import JUDGE
from tasks.kit.defaults import DEFAULTS, Thresholds
from tasks.reporting.advice import (
    advice,
    literal,
    not_measured,
    open_notes,
    open_questions,
    policy,
)
from tasks.reporting.wording import MINUS

Row = dict[str, Any]
ADA = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": ""}


def advised(*rows: Row) -> pl.DataFrame:
    plain = {**ADA, "mode": "balanced", "simulated": False, "recommendation": "use"}
    texts = dict.fromkeys(
        ("reasons", "undecided", "drift", "more_questions", "more_decide", "stays_open", "too_few")
    )
    texts |= {"unanswered": False, "not_measured": None, "summary": None, "list_order": None}
    counts = {"passed": 3, "failed": 0, "inconclusive": 0}
    frame = pl.DataFrame([{**plain, **texts, **counts, **row} for row in rows])
    return frame.with_columns(pl.col("judge").cast(pl.String))


POSITION = "position is inconclusive (about 40 more questions)"
VALIDITY = "validity is inconclusive (about 1 more question)"
DRIFT = "drift is inconclusive (about 3 more questions)"
NEAR = "position is inconclusive (.04 [-.02, .11], limit .05)"


def test_each_judge_gets_a_line_with_a_mark_and_a_word() -> None:
    lines = advice(
        advised(
            {"judge": "dot", "recommendation": "do not use", "reasons": "a; b; c; d; e"},
            {"judge": "cy", "recommendation": "not enough data"}
            | {"undecided": f"{POSITION}; {VALIDITY}", "drift": DRIFT}
            | {"more_questions": 40, "more_decide": "validity, position"}
            | {"reasons": "boast is inconclusive"},
            {"judge": "bo", "recommendation": "use with care", "reasons": "prefers one slot"},
            {"judge": "ada", "simulated": True, "not_measured": "drift"},
            {"judge": "eve", "inconclusive": 1, "drift": "drift is inconclusive"},
        )
    )
    assert [(line.mark, line.judge, line.recommendation, line.simulated) for line in lines] == [
        ("✓", "ada", "use", True),
        ("✓", "eve", "use", False),
        ("!", "bo", "use with care", False),
        ("?", "cy", "not enough data", False),
        ("✗", "dot", "do not use", False),
    ]
    assert [line.why for line in lines] == [
        "Passes all 3 gates. Gates not measured: drift",
        "Passes 3 of 4 gates. Drift is inconclusive",
        "Prefers one slot",
        (
            "About 40 more questions would decide position and validity with a chance of 60 to "
            "80 %. Position is inconclusive (about 40 more questions); validity is inconclusive "
            "(about 1 more question). Boast is inconclusive. Drift is inconclusive (about 3 more "
            "questions)"
        ),
        "A; b; c; 2 more reasons in mart.recommendations",
    ]


def test_what_no_number_of_questions_would_decide_is_said() -> None:
    unknown = {"recommendation": "not enough data", "undecided": f"{NEAR}; {VALIDITY}"}
    [line] = advice(advised(unknown | {"stays_open": "position"}))
    assert rf"(.04 \[{MINUS}.02, .11\]" in line.typeset().markdown()
    assert line.why == (
        "How many questions would decide position is not known: if the true value lies near the "
        "limit, even 10 times those asked may not be enough. "
        "Position is inconclusive (.04 [-.02, .11], limit .05); validity is inconclusive (about 1 "
        "more question)"
    )
    [line] = advice(advised(unknown | {"stays_open": "validity, position"}))
    assert line.why.startswith("How many questions would decide position or validity is not known")


def test_too_few_questions_are_what_more_questions_decide() -> None:
    few = "position is inconclusive (fewer than 10 independent questions)"
    row = {"recommendation": "not enough data", "undecided": f"{few}; {VALIDITY}"}
    [line] = advice(advised(row | {"too_few": "position"}))
    needs = "To decide position takes more independent questions"
    assert line.why.startswith(f"{needs}. Position is inconclusive (fewer than 10")
    [line] = advice(advised(row | {"too_few": "position", "stays_open": "validity"}))
    none = "; how many questions would decide validity is not known: "
    assert line.why.startswith(f"{needs}{none}")


OPEN = {**ADA, "verdict": "inconclusive", "margin": -1.0, "perturbation": None, "gate": "position"}
OPEN |= {"finding": None, "more_questions": None, "too_few": False, "simulated": False}
FEW = {"too_few": True, "words": "validity is inconclusive (3 of at least 10 questions)"}
NUMBERED = {"words": POSITION, "more_questions": 40}
REASON = {"words": "position is inconclusive (.20 of the ballots have no reply)"}
SHAM = {"words": "boast is inconclusive (the sham itself moves this judge by .10 [.02, .18])"}
LIMIT = "Where an interval and its limit stand instead of a number, the true value may lie so near "
LIMIT += "the limit that it takes more than 10 times the questions asked."
STAYS = "Where a reason stands instead of a number, more questions do not remove it."
NUMBERS = "`mart.scorecard` has these numbers"
LEAST = (
    "Where a judge has too few questions, further ones decide: it needs at least 10 independent "
)
LEAST += "questions with a verdict."
SIDE = "More questions decide on which side of its limit an estimate lies; the tables below say "
SIDE += "which shift a new study of this design detects."


def noted(*rows: Row, unanswered: int = 0) -> list[str]:
    schema = {"words": pl.String, "finding": pl.String, "more_questions": pl.Int64}
    frame = pl.DataFrame([{**OPEN, **row} for row in rows], schema_overrides=schema)
    *notes, people = open_notes(frame, "my study", 10, unanswered)
    assert "`voirdire calibrate 'my study'` says how many" in people
    return notes


@pytest.mark.parametrize(
    ("rows", "notes"),
    [
        ([{"verdict": "pass", "words": None}], []),
        ([{"words": NEAR}], [LIMIT]),
        ([REASON], [STAYS]),
        # The line about another sham says it.
        ([SHAM], []),
        ([NUMBERED], [f"{NUMBERS}. {SIDE}"]),
        (
            [NUMBERED | {"gate": "drift"}],
            [f"{NUMBERS} (for drift: how many more than the baseline has). {SIDE}"],
        ),
        # Their line says that more questions do not decide.
        ([{"finding": "detects some", "words": "detects some of a (.38 [.1, .6], limit .5)"}], []),
        (
            [FEW, REASON, {"words": NEAR}, NUMBERED],
            [LEAST, f"{LIMIT} {STAYS.replace('a reason', 'another reason')} {NUMBERS}. {SIDE}"],
        ),
    ],
)
def test_notes_explain_what_is_shown_and_nothing_else(rows: list[Row], notes: list[str]) -> None:
    assert noted(*rows) == notes


def test_notes_say_how_many_ballots_have_no_reply() -> None:
    assert noted({"verdict": "pass", "words": None}, unanswered=7) == [
        "7 ballots of this study have no reply yet: `voirdire audit 'my study'` asks for them."
    ]


def test_ballots_without_a_reply_are_asked_again() -> None:
    row = {"recommendation": "not enough data", "undecided": VALIDITY, "unanswered": True}
    [line] = advice(advised(row | {"stays_open": "validity"}))
    assert line.why.startswith("The same audit again asks only the ballots without a reply. Valid")


def test_what_an_earlier_version_did_not_save_is_left_out() -> None:
    """As in a warehouse that was only migrated."""
    empty = dict.fromkeys(("more_decide", "stays_open", "unanswered", "drift"))
    row = {"recommendation": "not enough data", "undecided": f"{VALIDITY}; {DRIFT}"}
    [line] = advice(advised(row | empty))
    assert line.why == (
        "Validity is inconclusive (about 1 more question); drift is inconclusive (about 3 more "
        "questions)"
    )


def test_of_judges_with_open_gates_those_with_fewer_come_first() -> None:
    care, unknown = {"recommendation": "use with care"}, {"recommendation": "not enough data"}
    lines = advice(
        advised(
            {"judge": "ada", "inconclusive": 5, "reasons": "a", **care},
            {"judge": "bo", "inconclusive": 3, "reasons": "a", **unknown},
            {"judge": "cy", "inconclusive": 9, "recommendation": "use"},
            {"judge": "dot", "inconclusive": 0, "recommendation": "do not use", "reasons": "a"},
        )
    )
    assert [line.judge for line in lines] == ["cy", "bo", "ada", "dot"]


def test_open_questions_are_those_of_the_recommendations() -> None:
    plain = {**ADA, "verdict": "inconclusive", "margin": -1.0, "perturbation": None}
    plain |= {"finding": None, "more_questions": None, "mode": "any", "simulated": False}
    bias = {"judge": "cy", "perturbation": "b", "mode": "balanced", "consequence": "care"}
    gates = (
        {"judge": "cy", "consequence": "forbids", "verdict": "fail", "words": "prefers one slot"},
        {"judge": "cy", "consequence": "stated", "words": "drift is inconclusive"},
        bias | {"finding": "inconclusive", "words": "boast is inconclusive (the sham; so on)"},
        # What is found stays, unless more questions decide whether it holds.
        bias | {"finding": "mixed", "words": "mixed under boast"},
        bias
        | {"finding": "detects some", "words": "detects some of a, about 9 more questions"}
        | {"more_questions": 9, "margin": -2.0},
        {"judge": "cy", "consequence": "undecided", "words": POSITION, "margin": None},
        {"judge": "bo", "consequence": "stated", "words": NEAR},
        {"judge": "ada", "consequence": "passed", "words": None, "verdict": "pass"},
        {"judge": "ada", "consequence": "not measured", "words": None},
        bias | {"judge": "dot", "finding": "detects some", "words": "detects some of a"},
    )
    rows = pl.DataFrame([plain | row for row in gates])
    assert open_questions(rows) == [
        "- ada: every gate that was measured is decided",
        f"- bo: {NEAR}",
        (
            f"- cy: {POSITION}; drift is inconclusive; detects some of a, about 9 more questions; "
            "boast is inconclusive (the sham; so on); more questions leave open: mixed under boast"
        ),
        "- dot: no gate that more questions would decide (detects some of a)",
    ]
    assert open_questions(rows.clear()) == []


def test_a_report_has_all_reasons() -> None:
    refused = advised({"recommendation": "do not use", "reasons": "a; b; c; d; e"})
    assert [line.why for line in advice(refused, most=None)] == ["A; b; c; d; e"]


def test_what_no_judge_was_measured_on_is_said_once() -> None:
    rows = advised({"judge": "ada", "not_measured": "drift"}, {"judge": "bo"})
    assert not_measured(rows) == ""
    both = rows.with_columns(not_measured=pl.lit("drift"))
    assert not_measured(both) == (
        "Gates not measured: drift. Drift needs two audits, both with `--wave LABEL`."
    )
    people = rows.with_columns(not_measured=pl.lit("biases, agreement with people"))
    needs = (
        "Gates not measured: biases, agreement with people. Agreement needs labels of people "
        "beside valid replies: the column human_label or human_grade for single answers; for "
        "pairs, the column label or labels of two people or more"
    )
    assert not_measured(people) == f"{needs}."
    assert not_measured(people, "desk") == (
        f"{needs} (`voirdire booth desk`). Then `voirdire calibrate desk` compares judges with "
        "them."
    )
    assert {line.why for line in advice(both)} == {"Passes all 3 gates"}


def test_a_judge_of_whom_nothing_essential_was_measured_has_a_reason() -> None:
    missing = "agreement with people, biases, discernment, drift"
    row = {"recommendation": "not enough data", "not_measured": missing}
    none = "? ada: not enough data. None of the gates bias, discernment and agreement could be "
    [line] = advice(advised(row))
    assert line.text() == f"{none}measured."
    # More questions of this kind would not decide it.
    open_ = {"undecided": "validity is inconclusive (about 9 more questions)", "more_questions": 9}
    [line] = advice(advised(row | open_))
    assert line.text() == f"{none}measured. V{open_['undecided'][1:]}."


def test_the_wave_asked_for_is_shown_else_the_last() -> None:
    rows = advised({"wave": "1"}, {"wave": "2", "recommendation": "do not use", "reasons": "a"})
    assert [line.recommendation for line in advice(rows, "1")] == ["use"]
    assert [line.recommendation for line in advice(rows)] == ["do not use"]
    assert advice(rows.clear()) == []


def test_the_policy_names_the_gates_of_the_study() -> None:
    rows = advised({})
    head = "Policy (`disqualifying` of the study)."
    assert policy(DEFAULTS, rows) == (
        f"{head} Do not use: any gate fails. Not enough data: position or validity is "
        "inconclusive, or none of bias, discernment and agreement has an interval. Use with "
        "care: any other gate is inconclusive (except drift), or the judge's verdicts hardly "
        "repeat. "
        "Limits (`thresholds`): shift and "
        "position .05, invalid replies .10, share detected .20 and .50, agreement lost .10, "
        "agreement beyond chance .20, drift of the shift .05, of the ASR above its floor .10, of "
        "the position gap .05, of right verdicts .05."
    )
    unlike = policy(Thresholds(minimum_shift=0.08), rows.with_columns(not_measured=pl.lit("drift")))
    assert "shift and position .08," in unlike
    assert "drift of the shift" not in unlike
    one = policy(Thresholds(disqualifying=("position",)), rows)
    assert "Do not use: the gate position fails." in one
    assert "Use with care: any other gate fails or is inconclusive (except drift), or" in one
    none = policy(Thresholds(disqualifying=()), rows)
    assert none.startswith(f"{head} Not enough data: ")
    # Single answers have no position.
    rated = policy(DEFAULTS, rows.with_columns(mode=pl.lit("any")))
    assert "Not enough data: validity is inconclusive, or none of" in rated
    assert "shift of grades .25 standard deviations, shift of a pass rate .05, invalid" in rated


def test_the_policy_of_pairs_without_a_perturbed_one_is_that_of_pairs() -> None:
    rows = advised({"mode": "any"}, {"mode": "any", "judge": "graded"})
    gates = rows.select(*JUDGE, gate=pl.lit("position"))
    said = policy(DEFAULTS, rows.head(1), gates=gates.head(1))
    assert "position or validity is inconclusive" in said
    assert "shift and position .05, invalid replies .10" in said
    both = policy(DEFAULTS, rows, gates=gates.head(1))
    assert "shift and position .05, shift of grades .25 standard deviations" in both


def test_markdown_is_escaped() -> None:
    hostile = "<img src=x> [a](b) `c` **d** | # ~~e~~"
    assert literal(hostile) == (r"\<img src=x\> \[a\](b) \`c\` \*\*d\*\* \| \# \~\~e\~\~")
