from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.mps import mps
from tasks.statistics.mps_sham import mps_sham
from tasks.statistics.sham_shift import sham_shift

Make = Callable[..., Any]


def scores(control: float, sham: float | None, experimental: float) -> dict[str, Any]:
    return {"control_score": control, "sham_score": sham, "experimental_score": experimental}


def test_docstring_example(make_shifts: Make) -> None:
    row = sham_shift(shifts=make_shifts([scores(0.5, 0, 1), scores(1, 1, 1)])).to_dicts()[0]
    assert row["estimate"] == pytest.approx(-0.25)
    # Deviations -1/4 and 1/4: SE = sqrt(2 * 1/8) / 2 = 1/4
    assert row["standard_error"] == pytest.approx(0.25)
    assert (row["n"], row["dropped"]) == (2, 0)


def test_it_is_the_shift_over_control_less_that_over_the_sham(make_shifts: Make) -> None:
    shifts = make_shifts([scores(0.5, 0.25, 1), scores(0, 0.5, 0.5), scores(1, 1, 0.75)])
    over_control, over_sham, of_sham = (
        statistic(shifts=shifts)["estimate"].item() for statistic in (mps, mps_sham, sham_shift)
    )
    assert of_sham == pytest.approx(over_control - over_sham)


def test_without_shams_there_is_no_row(make_shifts: Make) -> None:
    assert sham_shift(shifts=make_shifts([{"control": "tie", "experimental": "tie"}])).is_empty()
    lost = sham_shift(shifts=make_shifts([scores(0.5, None, 1)])).to_dicts()[0]
    assert (lost["estimate"], lost["dropped"]) == (None, 1)
    assert "no sample has a score in the sham and in control" in lost["reason"]
