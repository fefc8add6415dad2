from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.statistics.mps import mps

Make = Callable[..., Any]


def scores(before: float | None, after: float | None) -> dict[str, float | None]:
    return {"control_score": before, "experimental_score": after}


def test_docstring_example(make_shifts: Make) -> None:
    shifts = make_shifts([scores(0.5, 1), scores(0, 0.5), scores(1, 1)])
    row = mps(shifts=shifts).to_dicts()[0]
    assert row["estimate"] == pytest.approx(1 / 3)
    # Deviations 1/6, 1/6, -1/3: SE = sqrt(3/2 * 1/6) / 3 = 1/6; t = 2 on 2 degrees of freedom,
    # whose p is 1 - 2 / sqrt(2 + 4) = .183503; t_.975,2 = 4.302653, half .717109, cut at 1.
    assert row["standard_error"] == pytest.approx(1 / 6)
    assert row["p_value"] == pytest.approx(0.183503, abs=5e-7)
    assert (row["low"], row["high"]) == pytest.approx((-0.383776, 1.0), abs=5e-6)
    assert (row["n"], row["clusters"], row["dropped"], row["hits"]) == (3, 3, 0, None)
    assert row["method"] == "cluster linearisation, t"


def test_clusters_by_hand(make_shifts: Make) -> None:
    # Shifts .5, .5 | 0 | -.25, .25: MPS .2; cluster sums 1, 0, 0 of 2, 1, 2 samples;
    # u = .6, -.2, -.4, by CR2: SE = sqrt(5/3 * .36 + 5/4 * .04 + 5/3 * .16) / 5 = .191485.
    rows = [
        {**scores(0, 0.5), "cluster": "q1"},
        {**scores(0.25, 0.75), "cluster": "q1"},
        {**scores(1, 1), "cluster": "q2"},
        {**scores(0.5, 0.25), "cluster": "q3"},
        {**scores(0.5, 0.75), "cluster": "q3"},
    ]
    row = mps(shifts=make_shifts(rows)).to_dicts()[0]
    assert row["estimate"] == pytest.approx(0.2)
    assert row["standard_error"] == pytest.approx(0.191485, abs=5e-7)
    assert (row["n"], row["clusters"]) == (5, 3)


def test_scores_that_cannot_be_known_are_dropped(make_shifts: Make) -> None:
    rows = [scores(0, 0.5), scores(None, 1), scores(1, None), scores(None, None), scores(0.5, 0.5)]
    row = mps(shifts=make_shifts(rows)).to_dicts()[0]
    assert (row["estimate"], row["n"], row["clusters"], row["dropped"]) == (0.25, 2, 2, 3)


def test_no_scores_are_null_with_a_reason(make_shifts: Make) -> None:
    row = mps(shifts=make_shifts([scores(None, 1), scores(1, None)])).to_dicts()[0]
    assert (row["estimate"], row["p_value"], row["n"], row["dropped"]) == (None, None, 0, 2)
    assert row["reason"].startswith("nothing qualifies: ")


def test_one_cluster_has_no_interval(make_shifts: Make) -> None:
    row = mps(shifts=make_shifts([scores(0, 1), scores(0, 0)], cluster="q")).to_dicts()[0]
    assert (row["estimate"], row["low"], row["p_value"]) == (0.5, None, None)
    assert row["reason"] == "a single cluster: no interval"


def test_equal_shifts_get_newcombe(make_shifts: Make) -> None:
    # Four of four after none of four, see test_intervals.
    row = mps(shifts=make_shifts([scores(0, 1)] * 4)).to_dicts()[0]
    assert row["method"] == "Newcombe"
    assert (row["estimate"], row["standard_error"]) == (1.0, None)
    assert (row["low"], row["high"]) == pytest.approx((0.307190, 1), abs=5e-7)
    assert row["p_value"] == 0.125


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda s: (s[0] / 12, s[1] / 12)),
        min_size=2,
        max_size=30,
    )
)
def test_independent_samples_against_the_paired_t_test(
    make_shifts: Make, pairs: list[tuple[float, float]]
) -> None:
    row = mps(shifts=make_shifts(scores(*pair) for pair in pairs)).to_dicts()[0]
    difference = np.array([after - before for before, after in pairs])
    assert row["estimate"] == pytest.approx(difference.mean(), abs=1e-12)
    assert -1 <= row["estimate"] <= 1
    if row["standard_error"] is not None:
        expected = stats.ttest_1samp(difference, 0)
        assert row["p_value"] == pytest.approx(expected.pvalue, abs=1e-9)
        interval = expected.confidence_interval(0.95)
        cut = (max(-1, interval.low), min(1, interval.high))
        assert (row["low"], row["high"]) == pytest.approx(cut, abs=1e-9)
