from collections.abc import Callable
from typing import Any

import polars as pl

from schemas.curation import PerturbedAnswers
from tasks.conclude import conclude
from tasks.reporting.rows import Without, dropped_rows, result_groups, said, scorecard_rows
from tasks.reporting.wording import reasons

Make = Callable[..., Any]

DEFAULTS = {
    "question_id": "q",
    "recipe": 1,
    "seed": 0,
    "made_by": "template",
    "perturbed": "x",
    "sham": "y",
}


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


WAVES = ("n1", "n2")


def test_waves_are_not_averaged(make_estimates: Make) -> None:
    shifts = [
        {
            "judge": judge,
            "wave": wave,
            "statistic": "mps",
            "estimate": shift,
            "clusters": 20,
            "n": 20,
            "standard_error": 0.01,
            "low": shift - 0.02,
            "high": shift + 0.02,
            "p_value": 0.5,
        }
        for judge in ("ada", "bea", "cid")
        for wave, shift in (("n1", 0.1), ("n2", 0.3))
    ]
    means = [
        {
            "judge": "judges/all",
            "wave": wave,
            "statistic": "mean_shift",
            "subgroup": subgroup,
            "estimate": shift,
        }
        for wave, shift in (("n1", 0.1), ("n2", 0.3))
        for subgroup in ("", "kept")
    ]
    estimates = make_estimates([*shifts, *means])
    without = Without({("demo", "bea", "plain", wave): "ties" for wave in WAVES}, {})
    (group,) = result_groups(conclude(estimates), estimates, without)
    assert [(row.judge, row.texts[0].text) for row in group.means] == [
        ("Mean of 3 judges / n1, including the 1 left out", ".10"),
        ("Mean of 2 judges / n1, without the 1 left out", ".10"),
        ("Mean of 3 judges / n2, including the 1 left out", ".30"),
        ("Mean of 2 judges / n2, without the 1 left out", ".30"),
    ]
    # The mean of one judge would repeat its row, with another interval.
    two = {("demo", judge, "plain", wave): "ties" for judge in ("ada", "bea") for wave in WAVES}
    (group,) = result_groups(conclude(estimates), estimates, Without(two, {}))
    names = [f"Mean of 3 judges / {wave}, including the 2 left out" for wave in WAVES]
    assert [row.judge for row in group.means] == names


def test_people_have_no_part_in_means_nor_formulas_beside_real_judges(make_estimates: Make) -> None:
    shifts = [
        {
            "judge": judge,
            "statistic": "mps",
            "estimate": 0.1,
            "clusters": 20,
            "n": 20,
            "standard_error": 0.01,
            "low": 0.08,
            "high": 0.12,
            "p_value": 0.5,
            "simulated": judge == "bea",
        }
        for judge in ("ada", "bea", "cid", "dan", "people/ann", "Ben")
    ]
    estimates = make_estimates(shifts)
    out = Without({("demo", "cid", "plain", ""): "ties"}, {})
    (group,) = result_groups(conclude(estimates), estimates, out, {"Ben"})
    assert [(row.judge, row.simulated) for row in group.means] == [
        ("Mean of 3 judges, including the 1 left out, not counting 1 simulated", False),
        ("Mean of 2 judges, without the 1 left out, not counting 1 simulated", False),
    ]
    # Nor does a formula that is left out.
    out = Without({("demo", "bea", "plain", ""): "ties"}, {})
    assert result_groups(conclude(estimates), estimates, out, {"Ben"})[0].means == []
    # A person that is left out changes no mean.
    out = Without({("demo", "people/ann", "plain", ""): "ties"}, {})
    (group,) = result_groups(conclude(estimates), estimates, out, {"Ben"})
    assert group.means == []


def test_a_long_reason_of_several_cells_of_the_scorecard_is_a_footnote() -> None:
    why = "nothing qualifies: no sample has a score"
    gates = pl.DataFrame(
        {
            "dataset": "demo",
            "judge": "people/ann",
            "prompt": "plain",
            "wave": "",
            "gate": ["bias", "bias", "position"],
            "perturbation": ["boast", "calm", None],
            "verdict": "inconclusive",
            "value": None,
            "low": None,
            "high": None,
            "reason": [why, why, "few"],
            "simulated": False,
        }
    )
    columns, (row,), footnotes = scorecard_rows(gates)
    assert columns == ["position", "boast", "calm"]
    assert [text.note for text in row.texts] == ["few", "note 1", "note 1"]
    assert footnotes == [why]
    # So is a longer one of a single cell, which would make the row high.
    long = f"{why}, and the mean preference moves to the flaw"
    _, (row,), footnotes = scorecard_rows(gates.with_columns(reason=pl.Series(["few", long, None])))
    assert ([text.note for text in row.texts], footnotes) == (["", "few", "note 1"], [long])
