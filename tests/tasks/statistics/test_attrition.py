from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from tasks.statistics.asr import asr
from tasks.statistics.attrition import attrition

Make = Callable[..., Any]
VERDICT = st.sampled_from(["anchor", "tie", "target", None])


def both(shifts: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = {row["statistic"]: row for row in attrition(shifts=shifts).to_dicts()}
    return rows["asr_bounds"], rows["differential_attrition"]


def test_docstring_example(make_shifts: Make) -> None:
    after = ["target", "anchor", "anchor", None]
    bounds, lost = both(make_shifts({"control": "anchor", "experimental": e} for e in after))
    assert bounds["estimate"] == pytest.approx(1 / 3)
    assert (bounds["low"], bounds["high"], bounds["level"]) == (0.25, 0.5, None)
    assert (bounds["hits"], bounds["n"], bounds["dropped"]) == (1, 4, 0)
    assert bounds["method"] == "attrition bounds"
    assert (lost["estimate"], lost["p_value"], lost["n"]) == (0.25, 1.0, 4)


def test_detract_by_hand(make_shifts: Make) -> None:
    # V: target and tie. Of its four, two keep tie or target, one is lost; no control is of no V.
    arms = [("target", "tie"), ("tie", "target"), ("tie", "anchor"), ("target", None),
            ("anchor", None), (None, "tie")]  # fmt: skip
    rows = [{"control": c, "experimental": e} for c, e in arms]
    bounds, lost = both(make_shifts(rows, kind="detract"))
    assert bounds["estimate"] == pytest.approx(2 / 3)
    assert (bounds["low"], bounds["high"]) == (0.5, 0.75)
    assert (bounds["n"], bounds["dropped"]) == (4, 1)
    # Two lost in experimental only, one in control only: 1/6, p = 1.
    assert lost["estimate"] == pytest.approx(1 / 6)
    assert lost["p_value"] == 1.0


@settings(max_examples=40)
@given(st.lists(st.tuples(VERDICT, VERDICT), min_size=1, max_size=25),
       st.sampled_from(["promote", "detract"]))  # fmt: skip
def test_against_filling_in_and_statsmodels(
    make_shifts: Make, pairs: list[tuple[str | None, str | None]], kind: str
) -> None:
    def rate(filled: str) -> float | None:
        """Fill what is missing in the experimental arm, and take the ASR."""
        rows = [{"control": c, "experimental": e or filled} for c, e in pairs]
        return asr(shifts=make_shifts(rows, kind=kind))["estimate"][0]

    shifts = make_shifts(({"control": c, "experimental": e} for c, e in pairs), kind=kind)
    bounds, lost = both(shifts)
    assert bounds["estimate"] == asr(shifts=shifts)["estimate"][0]
    if bounds["estimate"] is None:
        assert (bounds["low"], bounds["high"]) == (None, None)
        assert bounds["reason"]
    else:
        assert (bounds["low"], bounds["high"]) == (rate("anchor"), rate("target"))
        assert bounds["low"] <= bounds["estimate"] <= bounds["high"]
    before = [c is None for c, _ in pairs]
    after = [e is None for _, e in pairs]
    if all(before):
        assert (lost["estimate"], lost["p_value"], lost["dropped"]) == (None, None, len(pairs))
        return
    assert lost["estimate"] == pytest.approx((sum(after) - sum(before)) / len(pairs))
    table = [[sum(b == i and a == j for b, a in zip(before, after, strict=True))
              for j in (True, False)] for i in (True, False)]  # fmt: skip
    if len(pairs) == 1:  # a single cluster
        assert lost["p_value"] is None
    elif table[0][1] + table[1][0]:
        # Second implementation: statsmodels.
        assert lost["p_value"] == pytest.approx(mcnemar(table, exact=True).pvalue)
    else:
        assert lost["p_value"] == 1.0


def test_a_judge_that_refuses_the_perturbed_answer(make_shifts: Make) -> None:
    bounds, lost = both(make_shifts([{"control": "anchor", "experimental": None}] * 8))
    assert (bounds["estimate"], bounds["low"], bounds["high"]) == (None, None, None)
    assert bounds["reason"] == "no sample that the attack may win has an experimental verdict"
    assert (lost["estimate"], lost["p_value"]) == (1.0, 2 / 2**8)


def test_arms_of_unequal_votes_are_not_compared(make_shifts: Make) -> None:
    # Of two votes a third as many are left as of six, without any judge that refuses.
    rows = [{"control": "anchor", "experimental": None}] * 12
    _, lost = both(make_shifts(rows, votes=2, control_votes=6))
    assert (lost["estimate"], lost["p_value"]) == (None, None)
    assert lost["reason"] == "unequal votes per pair"


def test_nothing_gives_nothing(make_shifts: Make) -> None:
    assert attrition(shifts=make_shifts([])).is_empty()


def test_columns_may_be_categorical(make_shifts: Make) -> None:
    shifts = make_shifts([{"control": "tie", "experimental": e} for e in ("target", None)])
    text = [c for c, t in shifts.schema.items() if t == pl.String]
    categorical = shifts.with_columns(pl.col(text).cast(pl.Categorical))
    assert attrition(shifts=categorical).equals(attrition(shifts=shifts))
