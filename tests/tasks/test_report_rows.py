from typing import Any

import polars as pl

from schemas.curation import PerturbedAnswers
from tasks._report_rows import dropped_rows, reasons, said

DEFAULTS = {
    "question_id": "q", "recipe": 1, "seed": 0, "made_by": "template", "perturbed": "x",
    "sham": "y",
}  # fmt: skip


def dropped(*rows: dict[str, Any]) -> list[list[str]]:
    numbered = [DEFAULTS | {"answer_id": f"q/{i}"} | row for i, row in enumerate(rows)]
    return dropped_rows(PerturbedAnswers.of(pl.DataFrame(numbered, infer_schema_length=None)))


def test_reasons_that_differ_in_numbers_are_one() -> None:
    texts = pl.Series(["keeps 0.64 of 9, needs 0.70", "identical", "keeps 0.5 of 10, needs 0.70"])
    assert reasons(texts) == [
        (2, "keeps 0.5 to 0.64 of 9 to 10, needs 0.70"),
        (1, "identical"),
    ]


def test_dropped_answers_and_missing_shams_are_told_apart() -> None:
    error, padding = {"perturbation": "error"}, {"perturbation": "padding"}
    assert dropped(
        error | {"failure": "empty", "sham_failure": "no text"},
        error | {"failure": None, "sham_failure": "too long"},
        error,
        padding,
    ) == [
        ["error", "3", "1", "the answer", "1", "empty"],
        ["", "", "", "its sham only", "1", "too long"],
        ["padding", "1", "0", "", "", "nothing dropped"],
    ]


def test_no_perturbed_answers_give_no_rows() -> None:
    assert dropped_rows(PerturbedAnswers.empty()) == []


def test_a_null_has_its_reason() -> None:
    null = {"estimate": None, "low": None, "high": None}
    assert tuple(said(null | {"reason": "too few"})) == ("not estimable", "(too few)")
    assert tuple(said(null | {"reason": None})) == ("not estimable", "(no reason was recorded)")
    alone = {"estimate": 0.5, "low": None, "high": None, "reason": "a single cluster"}
    assert tuple(said(alone)) == (".50", "no interval (a single cluster)")
    assert tuple(said(None)) == ("not measured", "")
