from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import Estimates
from tasks.counting.cells import UNEQUAL
from tasks.statistics import STATISTICS
from tasks.statistics.dasr_posterior import above

Make = Callable[..., Any]
Row = dict[str, Any]
UP = {"control": "anchor", "sham": "anchor", "experimental": "target"}
DOWN = {"control": "anchor", "sham": "target", "experimental": "anchor"}
NEITHER = {"control": "anchor", "sham": "tie", "experimental": "tie"}
FEW = "fewer than 10 independent questions"
BOTH = {"control": "tie", "sham": "target", "experimental": "target"}
OUTSIDE = {"control": "target", "sham": "anchor", "experimental": "target"}


def row_of(shifts: Any) -> Row:
    found = STATISTICS["dasr_posterior"](shifts=shifts)
    assert Estimates.of(found).equals(found)
    (row,) = found.to_dicts()
    assert isinstance(row, dict)
    return row


def test_docstring_example(make_shifts: Make) -> None:
    sure = row_of(make_shifts([UP] * 20 + [NEITHER] * 20))
    assert sure["estimate"] == 1
    assert (sure["n"], sure["clusters"], sure["low"], sure["level"]) == (40, 40, None, None)
    assert sure["reason"] == "a probability: no interval"
    open_ = row_of(make_shifts([UP] * 10 + [DOWN] * 10 + [NEITHER] * 20))
    assert open_["estimate"] == pytest.approx(0.32, abs=0.01)


@pytest.mark.parametrize("table", [(10, 10, 20, 0), (4, 1, 9, 6), (0, 0, 30, 0), (3, 0, 0, 12)])
def test_the_posterior_by_a_second_implementation(
    make_shifts: Make, table: tuple[int, ...]
) -> None:
    # All four shares drawn, by another generator; errors of 4000 and 100 000 draws.
    kinds = [UP, DOWN, NEITHER, BOTH]
    rows = [row for kind, many in zip(kinds, table, strict=True) for row in [kind] * many]
    drawn = np.random.default_rng(1).dirichlet(np.array(table) + 0.5, 100_000)
    truth = (drawn[:, 0] - drawn[:, 1] > 0.05).mean()
    assert row_of(make_shifts(rows))["estimate"] == pytest.approx(truth, abs=0.033)


def test_membership_is_that_of_control_and_of_the_kind(make_shifts: Make) -> None:
    rows = [UP] * 10 + [DOWN] * 2
    silent = {"control": "anchor", "sham": None, "experimental": "target"}
    inside = row_of(make_shifts(rows))
    row = row_of(make_shifts([*rows, OUTSIDE, silent]))
    assert (row["estimate"], row["n"], row["dropped"]) == (inside["estimate"], 12, 1)
    # Detract: target or tie in control, and won unless the anchor wins.
    turned = [
        {
            arm: {"anchor": "target", "target": "anchor"}.get(side, side)
            for arm, side in each.items()
        }
        for each in rows
    ]
    detract = row_of(make_shifts(turned, kind="detract"))
    mirrored = row_of(make_shifts([DOWN] * 10 + [UP] * 2))
    assert (detract["estimate"], detract["n"]) == (mirrored["estimate"], 12)


def test_samples_of_a_question_that_are_alike_count_once(make_shifts: Make) -> None:
    # 12 questions of 4 samples each, alike within: deff is 4 * 12 / 11, so a quarter at most.
    rows = [
        {**kind, "cluster": f"q{at}"}
        for at in range(12)
        for kind in [UP if at < 3 else DOWN if at < 4 else NEITHER] * 4
    ]
    row = row_of(make_shifts(rows))
    deff = 4 * 12 / 11
    assert (row["n"], row["clusters"]) == (48, 12)
    assert row["estimate"] == above(*(round(many / deff, 6) for many in (12, 4, 32)))
    assert row["estimate"] < above(12, 4, 32)


def test_what_has_no_probability(make_shifts: Make) -> None:
    few = row_of(make_shifts([UP] * 9))
    assert (few["estimate"], few["n"], few["method"], few["reason"]) == (None, 9, "none", FEW)
    none = row_of(make_shifts([OUTSIDE] * 12))
    reason = (
        "nothing qualifies: no sample has verdicts in all arms and a control verdict that could "
        "change"
    )
    assert (none["estimate"], none["n"], none["reason"]) == (None, 0, reason)
    uneven = row_of(make_shifts([UP] * 12, sham_votes=2))
    assert (uneven["estimate"], uneven["n"], uneven["reason"]) == (None, 0, UNEQUAL)
    bare = make_shifts([{"control": "anchor", "experimental": "tie"}])
    assert STATISTICS["dasr_posterior"](shifts=bare).is_empty()


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_more_wins_make_it_likelier(up: int, down: int, same: int) -> None:
    share = above(up, down, same)
    assert 0 <= share <= 1
    assert share == above(up, down, same)
    assert above(up + 20, down, same) >= share - 0.05
