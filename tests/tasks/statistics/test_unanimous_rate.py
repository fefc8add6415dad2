from collections.abc import Callable
from typing import Any

from tasks.inference.intervals import wilson
from tasks.statistics.unanimous_rate import unanimous_rate

Make = Callable[..., Any]


def test_docstring_example(make_shifts: Make) -> None:
    scores = [0.0, 1.0, 0.5, 1.0, None]
    rows = [{"control_score": score, "experimental_score": 0.5} for score in scores]
    row = unanimous_rate(shifts=make_shifts(rows)).to_dicts()[0]
    assert (row["estimate"], row["hits"], row["n"], row["dropped"]) == (0.75, 3, 4, 1)
    # Cluster-adjusted, so n_eff of Wilson's (.301, .954) has t for z.
    assert row["low"] < wilson(3, 4)[0] + 0.01
    assert row["high"] > 0.9


def test_pairs_that_nobody_judged_have_a_reason(make_shifts: Make) -> None:
    row = unanimous_rate(shifts=make_shifts([{"control_score": None}])).to_dicts()[0]
    assert row["estimate"] is None
    assert "no sample has a score of two ballots or more in control" in row["reason"]


def test_one_ballot_is_no_unanimity(make_shifts: Make) -> None:
    of_one = {"control_score": 1.0, "votes": 1, "control_votes": 1}
    row = unanimous_rate(shifts=make_shifts([of_one])).to_dicts()[0]
    assert (row["estimate"], row["n"], row["dropped"]) == (None, 0, 1)
    both = [of_one | {"sample": "a"}, {"control_score": 0.5, "sample": "b"}]
    row = unanimous_rate(shifts=make_shifts(both)).to_dicts()[0]
    assert (row["estimate"], row["n"], row["dropped"]) == (0.0, 1, 1)
