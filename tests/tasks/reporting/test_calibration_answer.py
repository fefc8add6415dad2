"""The answer of a calibration: which judges may replace people, or agree with them."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.calibration import AltTests, ConfusionMatrix, Disagreements, HumanAgreement
from tasks.agreement.compare import ComparisonWithPeople
from tasks.agreement.measures import DESCRIPTIVE
from tasks.kit.defaults import CalibrationThresholds, calibrated_by
from tasks.reporting.advice import Advice
from tasks.reporting.calibration_answer import calibration_advice, calibration_policy

Make = Callable[..., pl.DataFrame]
CELL = {
    "dataset": "demo",
    "judge": "ada",
    "prompt": "none",
    "wave": "",
    "kind": "pass_fail",
    "level": 0.95,
    "method": "linearised",
    "n": 100,
    "clusters": 100,
    **dict.fromkeys(("missing", "invalid", "unlabelled", "tied"), 0),
}
KAPPA = {"statistic": "kappa", "estimate": 0.6, "low": 0.4, "high": 0.8, "finding": "agrees"}
APART = KAPPA | {"estimate": 0.05, "low": -0.1, "high": 0.2, "finding": "does not agree"}
OPEN = KAPPA | {"estimate": 0.4, "low": 0.1, "high": 0.7, "finding": "inconclusive"}
BIAS = {"statistic": "bias", "estimate": 0.1, "low": 0.02, "high": 0.18, "finding": "biased"}
CLEAR = BIAS | {"estimate": 0.0, "low": -0.02, "high": 0.02, "finding": "no relevant bias"}
UNDECIDED = BIAS | {"low": -0.02, "finding": "inconclusive"}
PASSES = {"judge": "ada"}
FAILS = PASSES | {"winning_rate": 0.0, "passed": False}
UNTESTED = PASSES | {
    **dict.fromkeys(("winning_rate", "passed", "advantage_probability", "tied", "low", "high")),
    "human_advantage_probability": None,
    "reason": "no person has 30 items",
}


@pytest.fixture
def said(make_alt_tests: Make) -> Callable[..., list[Advice]]:
    def answer(
        test: dict[str, Any] | None, *rows: dict[str, Any], word: str = "pass"
    ) -> list[Advice]:
        schema = HumanAgreement.dtypes()
        of_labels = {**dict.fromkeys(ConfusionMatrix.dtypes()), "human_label": word}
        of_labels |= {"items": 1, "share_of_human_label": 1.0, "judge_label": word}
        own = {name: CELL[name] for name in ("dataset", "judge", "prompt", "wave")}
        words = pl.DataFrame([of_labels | own], schema=ConfusionMatrix.dtypes())
        measures = pl.DataFrame(
            [{**dict.fromkeys(schema), **CELL, **row} for row in rows], schema=schema
        )
        tests = AltTests.empty() if test is None else make_alt_tests([{"dataset": "demo", **test}])
        return calibration_advice(
            tests,  # type: ignore[arg-type]
            ComparisonWithPeople(
                HumanAgreement.of(measures), ConfusionMatrix.of(words), Disagreements.empty()
            ),
        )

    return answer


@pytest.mark.parametrize(
    ("test", "rows", "mark", "word"),
    [
        (None, [KAPPA, CLEAR], "✓", "agrees with people"),
        (None, [KAPPA, BIAS], "!", "agrees with people, with care"),
        (None, [KAPPA, UNDECIDED], "!", "agrees with people, with care"),
        (None, [APART, CLEAR], "✗", "does not agree with people"),
        (None, [OPEN, CLEAR], "?", "not enough data"),
        (None, [], "", ""),
        (PASSES, [KAPPA, CLEAR], "✓", "may replace people"),
        (PASSES, [KAPPA, UNDECIDED], "✓", "may replace people"),
        (PASSES, [KAPPA, BIAS], "!", "may replace people, with care"),
        (PASSES, [APART], "✗", "does not agree with people"),
        (PASSES | {"reason": "2 people"}, [KAPPA], "!", "may replace people, with care"),
        (FAILS, [KAPPA, CLEAR], "?", "not shown that it may replace people"),
        (FAILS, [APART], "✗", "does not agree with people"),
        (UNTESTED, [OPEN], "?", "not enough data"),
        (UNTESTED, [KAPPA, CLEAR], "✓", "agrees with people"),
        (UNTESTED, [APART], "✗", "does not agree with people"),
    ],
)
def test_each_answer(
    said: Any, test: dict[str, Any] | None, rows: list[Any], mark: str, word: str
) -> None:
    assert [each[:2] for each in said(test, *rows)] == ([(mark, word)] if mark else [])


def test_an_agreement_without_a_finding_is_concluded_by_the_next_calibration(said: Any) -> None:
    """As in a warehouse of an earlier version, which knew no finding of agreement."""
    earlier = KAPPA | {"finding": None}
    again = (
        "An earlier version saved this agreement without a conclusion: run `voirdire calibrate` on "
        "the same labels again"
    )
    [line] = said(None, earlier, CLEAR)
    assert line[:2] == ("?", "not enough data")
    assert (
        line.why.replace("\N{NO-BREAK SPACE}", " ") == f"Kappa .60 [.40, .80] (limit .20). {again}"
    )
    [line] = said(PASSES, earlier, CLEAR)
    assert line[:2] == ("!", "may replace people, with care")
    assert line.why.endswith(again)
    # Without an interval there is no finding in any version.
    [line] = said(PASSES, earlier | {"low": None, "high": None, "reason": "2 items"})
    assert line[:2] == ("✓", "may replace people")
    # Of pairs the gate decides.
    [line] = said(None, earlier | {"kind": "name"}, word="anchor")
    assert again not in line.why


@pytest.mark.parametrize(
    ("test", "row", "mark", "word"),
    [
        (None, APART, "?", "not decided here"),
        (None, KAPPA, "?", "not decided here"),
        (FAILS, APART, "?", "not shown that it may replace people"),
        (PASSES, KAPPA, "✓", "may replace people"),
    ],
)
def test_of_pairs_the_gate_decides_which_counts_each_vote(
    said: Any, test: dict[str, Any] | None, row: dict[str, Any], mark: str, word: str
) -> None:
    [line] = said(test, {**row, "kind": "name"}, word="anchor")
    assert line[:2] == (mark, word)
    assert ("gate agreement counts each vote, and decides" in line.why) == (test is None)


def test_one_criterion_that_is_open_or_apart_decides(said: Any) -> None:
    parts = [{**row, "criterion": each} for each, row in (("tone", KAPPA), ("facts", OPEN))]
    [line] = said(None, *parts)
    assert (line.mark, line.why[:6]) == ("?", "Kappa ")
    assert " on facts (limit .20)" in line.why
    [line] = said(None, *parts, {**APART, "criterion": "style"})
    assert line.mark == "✗"
    assert line.why.endswith(" on style (limit .20)")


def test_the_reasons_have_their_numbers(said: Any) -> None:
    [line] = said(FAILS, OPEN, BIAS)
    assert line.why.startswith("Winning rate .00 among 3 people; advantage probability .90 [.80")
    plain = line.why.replace("\N{NO-BREAK SPACE}", " ")
    assert "bias .10 [.02, .18] (biased); kappa .40 [.10, .70] (limit .20)" in plain


def test_labels_that_would_decide(said: Any) -> None:
    more = KAPPA | {"statistic": "labels_to_decide", "low": None, "high": None, "finding": None}
    [line] = said(None, OPEN, more | {"estimate": 360.0})
    assert ". About 360 more labelled items like these would decide the agreement" in line.why
    # Where the test fails, an agreement that is decided does not change the answer.
    [line] = said(FAILS, OPEN, more | {"estimate": 360.0})
    assert "more labelled items" not in line.why
    [line] = said(None, OPEN)
    assert "more labelled items" not in line.why
    # Of two open criteria, one that no number decides leaves the answer open.
    parts = [{**OPEN, "criterion": each} for each in ("tone", "facts")]
    [line] = said(None, *parts, more | {"estimate": 360.0, "criterion": "tone"})
    assert "more labelled items" not in line.why


@pytest.mark.parametrize(
    ("estimates", "numbers", "expected"),
    [
        # All above the limit of .20: the last one decides.
        ((0.3, 0.4), (1985, 113), "1 985"),
        # One below it is enough to say that the judge does not agree.
        ((0.14, -0.07), (1985, 113), "113"),
        ((0.4, 0.1), (50, 700), "700"),
        ((None, 0.1), (None, 700), "700"),
    ],
)
def test_one_criterion_below_the_limit_decides(
    said: Any, estimates: tuple[Any, Any], numbers: tuple[Any, Any], expected: str
) -> None:
    more = KAPPA | {"statistic": "labels_to_decide", "low": None, "high": None, "finding": None}
    rows = []
    for criterion, estimate, number in zip(("tone", "facts"), estimates, numbers, strict=True):
        rows.append(
            {**OPEN, "criterion": criterion, "estimate": 0.3 if estimate is None else estimate}
        )
        if number is not None:
            rows.append({**more, "criterion": criterion, "estimate": float(number)})
    [line] = said(None, *rows)
    plain = line.why.replace("\u202f", " ")
    assert f"About {expected} more labelled items like these would decide" in plain


def test_usable_judges_come_first(said: Any) -> None:
    rows = [{**row, "judge": name} for name, row in (("a", APART), ("b", OPEN), ("c", KAPPA))]
    assert [line.judge for line in said(None, *rows)] == ["c", "b", "a"]


def test_the_limits_are_those_of_the_calibration(said: Any) -> None:
    with calibrated_by(CalibrationThresholds(least_agreement=0.45, least_winning_rate=0.75)):
        assert "lies above .45" in calibration_policy(tested=False)
        assert "winning rate of at least .75" in calibration_policy(tested=True)
        [line] = said(None, OPEN)
    assert "(limit .45)" in line.why


def test_grades_beside_pairs_of_one_dataset_are_answered_as_grades(said: Any) -> None:
    # The labels that both gave are those of pairs; the other prompt has none.
    other = {"prompt": "single_v1"}
    [graded] = said(None, KAPPA | other, CLEAR | other, word="anchor")
    assert graded.recommendation == "agrees with people"
    [compared] = said(None, KAPPA | {"kind": "name"}, word="anchor")
    assert compared.recommendation == "not decided here"


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"estimate": None, "low": None, "high": None}, "Kappa not known."),
        ({"low": None, "high": None}, "Kappa .60 without an interval."),
    ],
)
def test_what_is_not_known_is_said_once(said: Any, numbers: Any, expected: str) -> None:
    [line] = said(None, KAPPA | {"kind": "name", "estimate": 0.6} | numbers, word="anchor")
    assert line.why.startswith(expected)


def test_one_label_of_people_asks_for_another_label_and_not_for_more(said: Any) -> None:
    share = KAPPA | {"statistic": "majority_share", "estimate": 1.0, "finding": None}
    more = KAPPA | {"statistic": "labels_to_decide", "estimate": 415.0, "finding": None}
    [line] = said(None, OPEN, more, share)
    assert "label items that deserve another one" in line.why
    assert "415" not in line.why


def test_a_description_is_no_reason(said: Any) -> None:
    described = KAPPA | {"statistic": "agreement_by_chance", "finding": None, "reason": DESCRIPTIVE}
    alike = OPEN | {"estimate": None, "low": None, "high": None, "reason": "all are alike"}
    [line] = said(None, described, alike | {"finding": None})
    assert line.why == "All are alike"
