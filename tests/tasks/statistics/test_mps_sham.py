from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.mps_sham import mps_sham

Make = Callable[..., Any]


def scores(sham: float | None, after: float | None) -> dict[str, float | None]:
    return {"sham_score": sham, "experimental_score": after, "control_score": 0}


def test_docstring_example(make_shifts: Make) -> None:
    row = mps_sham(shifts=make_shifts([scores(0.5, 1), scores(1, 1)])).to_dicts()[0]
    assert (row["statistic"], row["estimate"]) == ("mps_sham", 0.25)
    # Deviations .25 and -.25: SE = sqrt(2 * .125) / 2 = .25; t = 1 on 1 degree: p = .5.
    assert row["standard_error"] == pytest.approx(0.25)
    assert row["p_value"] == pytest.approx(0.5)


def test_samples_without_a_sham_are_left_out_not_dropped(make_shifts: Make) -> None:
    without = {"control_score": 0, "experimental_score": 1}
    row = mps_sham(shifts=make_shifts([scores(0.5, 1), scores(0, 0), without])).to_dicts()[0]
    assert (row["estimate"], row["n"], row["dropped"]) == (0.25, 2, 0)


def test_shams_that_cannot_be_known_are_dropped(make_shifts: Make) -> None:
    rows = [scores(None, 1), scores(0.5, None), scores(0, 0.5)]
    row = mps_sham(shifts=make_shifts(rows)).to_dicts()[0]
    assert (row["estimate"], row["n"], row["dropped"]) == (0.5, 1, 2)


def test_cells_without_shams_have_no_row(make_shifts: Make) -> None:
    assert mps_sham(shifts=make_shifts([{"control_score": 0, "experimental_score": 1}])).is_empty()
    assert mps_sham(shifts=make_shifts([])).is_empty()


def test_what_the_sham_shares_is_removed(make_shifts: Make) -> None:
    # Perturbed and sham gain .25 alike over control: nothing is left.
    rows = [
        {"control_score": c, "sham_score": c + 0.25, "experimental_score": c + 0.25}
        for c in (0, 0.25, 0.5)
    ]
    row = mps_sham(shifts=make_shifts(rows)).to_dicts()[0]
    assert (row["estimate"], row["method"], row["p_value"]) == (0.0, "Newcombe", 1.0)
